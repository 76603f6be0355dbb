"""Maps over arrays: broadcasting, strides, tasks, aliases."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import OPERATORS, argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, F32, F64, I64, U8
from sardonyx.codegen.kernels.elementwise import Access, MapParams, short_row, write_map
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_ORDERED, _FIXED, _STRIDED = Access.ORDERED, Access.FIXED, Access.STRIDED


def _strides(array: Array, shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in np.broadcast_to(array, shape).strides)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Kernels of x * y + x, with y walked in each way and everything strided."""
    x, y = argument(0, F32), argument(1, F32)
    module = Module(target)
    for symbol, accesses in _KERNELS.items():
        write_map(module, symbol, [F32, F32], [x * y + x], accesses)
    engine = Engine(target)
    engine.add(module)
    return engine


_KERNELS = {
    "ordered": (_ORDERED, _ORDERED, _ORDERED),
    "fixed": (_ORDERED, _FIXED, _ORDERED),
    "strided": (_STRIDED, _STRIDED, _STRIDED),
}


def _run(engine: Engine, symbol: str, x: Array, y: Array, out: Array, threads: int = 1) -> int:
    accesses = _KERNELS[symbol]
    params = MapParams.over(out.shape, [_strides(array, out.shape) for array in (x, y, out)], accesses, threads=threads)
    for task in reversed(range(params.tasks())):
        call(engine, symbol, [x, y, out], params.words(), task, task + 1)
    return params.tasks()


_SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()),
    ((1,), (1,)),
    ((7,), (7,)),
    ((0,), (0,)),
    ((3, 0, 2), (3, 0, 2)),
    ((33,), (1,)),
    ((5, 17), (17,)),
    ((5, 17), (5, 1)),
    ((5, 1), (5, 1)),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((2, 3, 4, 5), (3, 1, 5)),
    ((2, 3, 4, 5), (2, 1, 4, 1)),
    ((4, 3, 65), (3, 65)),
    ((2, 2, 2, 2, 2, 3), (2, 1, 2, 1, 3)),
]


@pytest.mark.parametrize("symbol", list(_KERNELS))
@pytest.mark.parametrize(("shape", "other"), _SHAPES)
def test_every_kernel_fits_every_shape(engine: Engine, symbol: str, shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    """How arrays are walked decides the speed, never the result."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(shape).astype(np.float32), rng.standard_normal(other).astype(np.float32)
    out = np.full(shape, np.nan, np.float32)
    _run(engine, symbol, x, y, out)
    np.testing.assert_allclose(out, x * y + x, rtol=1e-6, atol=1e-6)


def test_arrays_may_lie_in_any_order(engine: Engine) -> None:
    """Transposed, reversed and spread arrays are read and written where they are."""
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5).transpose(2, 0, 1)
    y = np.arange(120, dtype=np.float32).reshape(5, 3, 8)[:, :, ::2]
    out = np.zeros((3, 4, 5), np.float32).transpose(2, 0, 1)
    _run(engine, "strided", x, y, out)
    np.testing.assert_array_equal(out, x * y + x)


def test_an_output_may_replace_an_argument(engine: Engine) -> None:
    """In place, each element is read before it is written."""
    x, y = np.arange(1000, dtype=np.float32), np.full(1000, 2, np.float32)
    expected = x * y + x
    _run(engine, "ordered", x, y, x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_many_tasks_give_the_bits_of_one(engine: Engine, threads: int) -> None:
    """Large maps are cut along rows or within them; tasks are independent."""
    rng = np.random.default_rng(0)
    for shape in ((100_003,), (400, 257), (3, 50_000)):
        x, y = rng.standard_normal(shape).astype(np.float32), rng.standard_normal(shape[-1:]).astype(np.float32)
        one, many = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        assert _run(engine, "ordered", x, y, one) == 1
        assert _run(engine, "ordered", x, y, many, threads) > 1
        assert one.tobytes() == many.tobytes()


def test_types_may_mix(target: Target) -> None:
    """A chain reads and writes several types in one loop: bools, and integers wider than the floats."""
    mask, x, index = argument(0, BOOL), argument(1, F32), argument(2, I64)
    outputs = [OPERATORS["select"](mask, x, x.to(I64).to(F32)) + index.to(F32), (x > 0) & mask, x.to(F64) * 2]
    module = Module(target)
    accesses = (_ORDERED, _ORDERED, _FIXED, _ORDERED, _ORDERED, _STRIDED)
    write_map(module, "mixed", [BOOL, F32, I64], outputs, accesses)
    engine = Engine(target)
    engine.add(module)
    rng = np.random.default_rng(0)
    for n in (1, 15, 16, 17, 100):
        a, b, c = rng.integers(0, 2, n).astype(np.bool_), (rng.standard_normal(n) * 5).astype(np.float32), np.array([3])
        first, second, third = np.zeros(n, np.float32), np.zeros(n, np.bool_), np.zeros(2 * n, np.float64)
        arrays = [a, b, c, first, second, third]
        params = MapParams.over((n,), [(1,), (1,), (0,), (1,), (1,), (2,)], accesses)
        call(engine, "mixed", arrays, params.words(), 0, params.tasks())
        np.testing.assert_array_equal(first, np.where(a, b, np.trunc(b)) + 3)
        np.testing.assert_array_equal(second, (b > 0) & a)
        np.testing.assert_array_equal(third, np.stack([b.astype(np.float64) * 2, np.zeros(n)], 1).ravel())


@pytest.mark.parametrize("inner", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("key", ["float32", "int64", "uint8", "bool"])
def test_short_rows_share_vectors(target: Target, key: str, inner: int) -> None:
    """Of arguments in order, the same in all rows, of one element for a row, and of one for all; nothing behind is written."""
    kind = {"float32": F32, "int64": I64, "uint8": U8, "bool": BOOL}[key]
    accesses = (_ORDERED, _ORDERED, _FIXED, _FIXED, _ORDERED)
    short = short_row(target, [kind] * 5, accesses, inner)
    if short is None:
        assert 2 * inner > target.lanes(max(kind.bits, 8))
        return
    a, b, c, d = (argument(place, kind) for place in range(4))
    module = Module(target)
    write_map(module, "short", [kind] * 4, [(a ^ b ^ c ^ d) if key == "bool" else a * b + c - d], accesses, short=short)
    engine = Engine(target)
    engine.add(module)
    for rows in (1, 2, 7, 16, 33, 200):
        rng = np.random.default_rng(rows)
        x, y, z, w = (
            rng.integers(0, 2 if key == "bool" else 9, shape).astype(key) for shape in ((rows, inner), (inner,), (rows, 1), (1,))
        )
        out = np.ones(rows * inner + 64, key)
        views = [np.broadcast_to(array, (rows, inner)) for array in (x, y, z, w)]
        strides = [tuple(step // array.itemsize for step in array.strides) for array in views]
        rows_strides = tuple(0 if size == 1 else stride[0] for stride, size in zip(strides, (rows,) * 4, strict=True))
        params = MapParams(inner, rows, (), (1, 1, 0, 0, 1), (*rows_strides, inner), (), inner, min(rows, 48))
        for task in reversed(range(params.tasks())):
            call(engine, "short", [x, y, z, w, out], params.words(), task, task + 1)
        expected = (x ^ y ^ z ^ w) if key == "bool" else x * y + z - w
        np.testing.assert_array_equal(out[: rows * inner].reshape(rows, inner), expected)
        assert (out[rows * inner :] == 1).all()


def test_a_long_chain_is_one_loop(target: Target) -> None:
    """A hundred operators compile to one kernel with one load and one store."""
    x = argument(0, F32)
    chain = x
    for step in range(100):
        chain = OPERATORS["relu"](chain * 1.01 + 0.25) if step % 2 else chain - 0.125
    module = Module(target)
    write_map(module, "chain", [F32], [chain], (_ORDERED, _ORDERED))
    engine = Engine(target)
    engine.add(module)
    data, out = np.linspace(-2, 2, 1001, dtype=np.float32), np.zeros(1001, np.float32)
    params = MapParams.over((1001,), [(1,), (1,)], (_ORDERED, _ORDERED))
    call(engine, "chain", [data, out], params.words(), 0, params.tasks())
    expected = data.astype(np.float64)
    for step in range(100):
        expected = np.maximum(expected * np.float32(1.01) + 0.25, 0) if step % 2 else expected - 0.125
    np.testing.assert_allclose(out, expected, rtol=1e-4)


def test_dimensions_walked_alike_are_one() -> None:
    """A bias over the last two of four dimensions is rows of their product; a shape of ones is one element."""
    params = MapParams.over((2, 3, 4, 5), [(60, 20, 5, 1), (0, 0, 5, 1), (60, 20, 5, 1)], _KERNELS["ordered"])
    assert (params.inner, params.rows, params.outer) == (20, 6, ())
    ones = MapParams.over((1, 1), [(5, 1), (0, 0), (1, 1)], _KERNELS["ordered"])
    assert (ones.inner, ones.rows, ones.tasks()) == (1, 1, 1)


def test_every_element_is_in_one_task() -> None:
    """Blocks of rows and of their elements cover the map exactly."""
    for shape, threads in itertools.product([(1 << 20,), (1000, 1000), (7, 3, 99)], [1, 2, 5]):
        strides = [tuple(int(np.prod(shape[d + 1 :])) for d in range(len(shape)))] * 3
        params = MapParams.over(shape, strides, _KERNELS["ordered"], threads=threads)
        assert params.tasks() == -(-params.rows // params.block_rows) * -(-params.inner // params.block_inner)
