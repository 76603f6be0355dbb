"""The product of matrices: every tail, every block, the same bits wherever a row stands."""

import dataclasses
import itertools

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, of_dtype
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.kernels.gemm import gemm_symbol, tiling, write_gemm
from sardonyx.codegen.kernels.gemm_params import BLOCK_K, PARAMS_COUNT, PART_TASKS, GemmParams, chain_for
from sardonyx.codegen.kernels.pack import pack_columns
from sardonyx.codegen.kernels.panels import NumberPanels
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import Buffer, KernelCall, StepTable
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import replace

_RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with the plain kernel."""
    module = Module(target)
    write_gemm(module, gemm_symbol(target))
    engine = Engine(target)
    engine.add(module)
    return engine


def _random(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


def _product(engine: Engine, a: Array, b: Array, params: GemmParams, tasks: range | None = None) -> Array:
    """A @ B with guard elements around C that must stay."""
    c = np.full((params.M + 1) * params.ldc + 64, 7, np.float32)
    packed = pack_columns(b, tiling(engine.target).panel)
    tasks = tasks or range(params.tasks())
    call(engine, gemm_symbol(engine.target), [a, packed, c], params.words(), tasks.start, tasks.stop)
    rows = c[: params.M * params.ldc].reshape(params.M, params.ldc)
    assert (rows[:, params.N :] == 7).all()
    assert (c[params.M * params.ldc :] == 7).all()
    return rows[:, : params.N].copy()


def _close(result: Array, a: Array, b: Array) -> bool:
    exact = a.astype(np.float64) @ b
    bound = 1e-6 * (np.abs(a).astype(np.float64) @ np.abs(b)) + 1e-30
    return bool((np.abs(result - exact) <= bound).all())


@pytest.mark.parametrize("M", [0, 1, 2, 3, 5, 6, 7, 13])
@pytest.mark.parametrize("N", [1, 3, 4, 8, 9, 12, 15, 16, 17, 24, 25, 31, 33, 48, 63, 64, 65, 127])
def test_tails_of_m_and_n(engine: Engine, M: int, N: int) -> None:
    """Sizes around each tile boundary are exact to the order of fp32 sums, and nothing else is written."""
    a, b = _random(M, 19), _random(19, N)
    assert _close(_product(engine, a, b, GemmParams.blocked(engine.target, M, N, 19)), a, b)


@pytest.mark.parametrize("K", [0, 1, 2, 3, 4, 5, 767, 768, 769, 1600])
def test_any_k(engine: Engine, K: int) -> None:
    """K may be nothing, below the unrolling, and more than a block."""
    a, b = _random(7, K), _random(K, 70)
    assert _close(_product(engine, a, b, GemmParams.blocked(engine.target, 7, 70, K)), a, b)


def test_blocks_do_not_change_bits(engine: Engine) -> None:
    """A sum is made of the same chains in the order of K, however C and K are cut."""
    a, b = _random(61, 100), _random(100, 150)
    panel = tiling(engine.target).panel
    whole = _product(engine, a, b, GemmParams(61, 150, 100, 100, 150, 1, 1, 1024, 32))
    cut = _product(engine, a, b, GemmParams(61, 150, 100, 100, 150, 6, -(-150 // panel), 32, 32))
    assert whole.tobytes() == cut.tobytes()


@pytest.mark.parametrize("M", [1, 2, 5, 40])
def test_sums_may_be_made_part_by_part(engine: Engine, M: int) -> None:
    """The tasks of a part are far from those of the next, those between do nothing, and the bits are the same."""
    a, b = _random(M, 4000), _random(4000, 150)
    whole = GemmParams.blocked(engine.target, M, 150, 4000, threads=2)
    cut = replace(whole, block_k=min(whole.block_k, 2 * BLOCK_K), part_k=2 * BLOCK_K, part_blocks=whole.tasks())
    assert cut.tasks() == 2 * PART_TASKS + whole.tasks()
    assert _product(engine, a, b, cut).tobytes() == _product(engine, a, b, whole).tobytes()


@pytest.mark.parametrize("K", [128, 1024, 4096, 5000])
def test_a_sum_is_made_of_chains(engine: Engine, K: int) -> None:
    """What is lost beside a large number is lost in its own chain only."""
    a, b = np.ones((3, K), np.float32), np.ones((K, 40), np.float32)
    a[:, 0] = 1e8
    chain = chain_for(K)
    expected = 1e8 + 8 * sum(min(chain, K - first) // 8 for first in range(chain, K, chain))
    assert (_product(engine, a, b, GemmParams.blocked(engine.target, 3, 40, K)) == np.float32(expected)).all()


def test_threads_do_not_change_bits(engine: Engine) -> None:
    """Blocks chosen for more threads give the same numbers."""
    a, b = _random(200, 64), _random(64, 200)
    results = [_product(engine, a, b, GemmParams.blocked(engine.target, 200, 200, 64, threads=n)) for n in (1, 2, 7)]
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


def test_the_cache_does_not_change_bits(engine: Engine) -> None:
    """Where all panels stay in it, rows are cut into more blocks, with the same numbers."""
    a, b, M, N, K = _random(300, 64), _random(64, 400), 300, 400, 64
    targets = [dataclasses.replace(engine.target, cache_bytes=size) for size in (160 << 10, 1 << 21)]
    whole, blocks = (GemmParams.blocked(target, M, N, K) for target in targets)
    assert whole.tasks() == 1
    assert blocks.tasks() > 1
    assert _product(engine, a, b, whole).tobytes() == _product(engine, a, b, blocks).tobytes()


def test_threads_share_panels_that_do_not_stay_in_the_cache(engine: Engine) -> None:
    """Each block of rows goes through all panels, so that there is one; where all panels stay, there is one for each task."""
    small, large = (
        GemmParams.blocked(dataclasses.replace(engine.target, cache_bytes=size), 100, 640, 64, threads=2)
        for size in (1 << 16, 1 << 21)
    )
    assert (small.pieces_m, large.pieces_m) == (1, 8)
    assert min(small.tasks(), large.tasks()) >= 2
    a, b = _random(100, 64), _random(64, 640)
    assert _product(engine, a, b, small).tobytes() == _product(engine, a, b, large).tobytes()


@pytest.mark.parametrize("M", [1, 2, 7])
@pytest.mark.parametrize("N", [200, 1000])
def test_few_rows_are_shared_by_columns(engine: Engine, M: int, N: int) -> None:
    """Where there are fewer rows than tasks the columns are cut for the threads, between panels."""
    a, b = _random(M, 19), _random(19, N)
    params = GemmParams.blocked(engine.target, M, N, 19, threads=2)
    assert params.pieces_n > 1
    assert _close(_product(engine, a, b, params), a, b)


def test_a_row_has_the_same_bits_in_a_batch_as_alone(engine: Engine) -> None:
    """The position of a row decides which tile computes it, not what it is."""
    a, b = _random(11, 40), _random(40, 90)
    together = _product(engine, a, b, GemmParams.blocked(engine.target, 11, 90, 40))
    for row in range(11):
        alone = _product(engine, a[row : row + 1], b, GemmParams.blocked(engine.target, 1, 90, 40))
        assert alone.tobytes() == together[row].tobytes()


@pytest.mark.parametrize("M", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("panels", [1, 2, 3, 4, 5, 9])
def test_rows_that_go_through_several_panels_have_the_bits_of_a_batch(engine: Engine, M: int, panels: int) -> None:
    """How many panels are gone through side by side is not seen, however K is cut and whatever columns are left."""
    a, b, panel = _random(9, 300), _random(300, 9 * tiling(engine.target).panel + 3), tiling(engine.target).panel
    N = panels * panel + 3
    together = _product(engine, a, b[:, :N], GemmParams.blocked(engine.target, 9, N, 300))
    for block_k in (128, 300):
        params = GemmParams(M, N, 300, 300, N + 5, -(-M // 6), 1, block_k, 128)
        assert _product(engine, a[:M], b[:, :N], params).tobytes() == together[:M].tobytes()


def test_tasks_are_independent(engine: Engine) -> None:
    """Each task writes its block and no other."""
    shape = tiling(engine.target)
    panel, height = shape.panel, shape.tiles[0][1][0]
    a, b = _random(2 * height, 10), _random(10, 2 * panel)
    params = GemmParams(2 * height, 2 * panel, 10, 10, 2 * panel, 2, 2, 10, 10)
    whole = _product(engine, a, b, params)
    part = _product(engine, a, b, params, range(3, 4))
    assert params.tasks() == 4
    assert (part[height:, panel:] == whole[height:, panel:]).all()
    assert (part[:height] == 7).all()
    assert (part[height:, :panel] == 7).all()


def test_rows_may_lie_apart(engine: Engine) -> None:
    """The strides of A and C count the elements between rows, wider than the rows."""
    a, b = _random(9, 30), _random(21, 50)
    params = GemmParams.blocked(engine.target, 9, 50, 21, lda=30, ldc=77)
    assert _close(_product(engine, a, b, params), a[:, :21], b)


def test_a_batch_is_one_call(engine: Engine) -> None:
    """Strides lead from matrix to matrix; a stride of 0 shares one."""
    a, b = _random(3, 8, 20), _random(20, 33)
    c = np.zeros((3, 8, 33), np.float32)
    params = GemmParams.blocked(engine.target, 8, 33, 20, stride_a=160, stride_c=8 * 33)
    packed = pack_columns(b, tiling(engine.target).panel)
    call(engine, gemm_symbol(engine.target), [a, packed, c], params.words(), 0, params.tasks(batch=3))
    assert _close(c.reshape(24, 33), a.reshape(24, 20), b)


def test_infinities_and_nan_stay_in_their_row_and_column(engine: Engine) -> None:
    """Padding never meets data: inf * 0 of a tail does not leak."""
    a, b = _random(5, 6), _random(6, 9)
    a[1, 2], a[3, 3] = np.inf, np.nan
    b[:, 4] = np.abs(b[:, 4])
    result = _product(engine, a, b, GemmParams.blocked(engine.target, 5, 9, 6))
    assert np.isfinite(result[[0, 2, 4]]).all()
    assert np.isnan(result[3]).all()
    assert result[1, 4] == np.inf


def test_an_epilogue_sees_each_element_once(target: Target) -> None:
    """Bias per column and row, residual and a parameter are applied where the last block of K is stored."""

    def finish(b: Kernel, sums: Register, row: Register, column: Register, span: Span) -> Register:
        bias, scale, residual = b.buffer(3, F32), b.buffer(4, F32), b.buffer(5, F32)
        place = row * b.param(PARAMS_COUNT) + column
        shifted = sums * scale.load(row) + bias.load(column, span) + residual.load(place, span)
        return _relu(b, shifted)

    def _relu(b: Function, value: Register) -> Register:
        return b.max(b.const(value.type, 0), value)

    module = Module(target)
    symbol = gemm_symbol(target, "scaled")
    write_gemm(module, symbol, finish)
    engine = Engine(target)
    engine.add(module)
    a, b, bias, scale, residual = _random(15, 50), _random(50, 75), _random(75), _random(15), _random(15, 75)
    c = np.zeros((15, 75), np.float32)
    params = GemmParams(15, 75, 50, 50, 75, 1, 1, 16, 16)
    arrays = [a, pack_columns(b, tiling(target).panel), c, bias, scale, residual]
    call(engine, symbol, arrays, [*params.words(), 75], 0, params.tasks())
    exact = np.maximum((a.astype(np.float64) @ b) * scale[:, None] + bias + residual, 0)
    np.testing.assert_allclose(c, exact, atol=1e-4)
    assert c.min() == 0


@pytest.mark.parametrize("M", [1, 2, 3, 4, 5])
def test_a_long_epilogue_of_few_rows_sees_each_element_once(target: Target, M: int) -> None:
    """Where sums are put down before it is applied, row by row of each of the panels that were gone through side by side."""

    def finish(b: Kernel, sums: Register, row: Register, column: Register, span: Span) -> Register:
        total = sums + b.buffer(3, F32).load(row * b.param(PARAMS_COUNT) + column, span)
        for _ in range(45):
            total = total + b.buffer(4, F32).load(column, span)
        return total

    module = Module(target)
    write_gemm(module, "long", finish)
    engine = Engine(target)
    engine.add(module)
    panel = tiling(target).panel
    N = 6 * panel + 5
    a, b, residual, bias = _random(M, 30), _random(30, N), _random(M, N), _random(N)
    c, params = np.zeros((M, N), np.float32), GemmParams.blocked(target, M, N, 30)
    call(engine, "long", [a, pack_columns(b, panel), c, residual, bias], [*params.words(), N], 0, params.tasks())
    np.testing.assert_allclose(c, a.astype(np.float64) @ b + residual + 45 * bias.astype(np.float64), atol=1e-3)


def test_the_pool_gives_the_bits_of_one_thread(engine: Engine) -> None:
    """Shared by two threads, run after run, a product is what one thread computes."""
    a, b = _random(150, 64), _random(64, 300)
    alone = _product(engine, a, b, GemmParams.blocked(engine.target, 150, 300, 64))
    params = GemmParams.blocked(engine.target, 150, 300, 64, threads=2)
    packed, c = pack_columns(b, tiling(engine.target).panel), np.zeros((150, 300), np.float32)
    step = KernelCall(engine.address(gemm_symbol(engine.target)), [Buffer(1), Buffer(2), Buffer(3)], params.words(), params.tasks())
    table = StepTable([step], 3, threads=2)
    table.set_bases([array.ctypes.data for array in (a, packed, c)])
    run = Driver(engine.target).prepare(table)
    for _ in range(50):
        c[:] = 0
        assert run() == -1
        assert c.tobytes() == alone.tobytes()


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize(("M", "K", "N"), [(1, 1, 1), (6, 5, 8), (7, 130, 33), (13, 769, 65), (5, 0, 3), (0, 4, 3)])
def test_other_numbers(target: Target, dtype: str, M: int, K: int, N: int) -> None:
    """Of their own type: float64 as exact as that is, integers modulo 2 to the power of their bits."""
    kind, rng = of_dtype(np.dtype(dtype)), np.random.default_rng(M + K + N)
    module, engine = Module(target), Engine(target)
    write_gemm(module, "product", panels=NumberPanels(kind))
    engine.add(module)
    sides = (rng.standard_normal(shape) * 2.0**31 for shape in ((M, K), (K, N)))
    a, b = (side.astype("int64").astype(dtype) if kind.is_integer else side for side in sides)
    c, params = np.full(M * N + 64, 7, dtype), GemmParams.blocked(target, M, N, K)
    packed = pack_columns(b, tiling(target, kind).panel, dtype)
    call(engine, "product", [a, packed, c], params.words(), 0, params.tasks())
    assert (c[M * N :] == 7).all()
    if kind.is_integer:
        np.testing.assert_array_equal(c[: M * N].reshape(M, N), a @ b)
    else:
        exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
        bound = 1e-14 * (np.abs(a) @ np.abs(b))
        assert (np.abs(c[: M * N].reshape(M, N) - exact) <= bound).all()


@pytest.mark.parametrize("N", [1, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32])
def test_narrow_panels_give_the_bits_of_wide_ones(target: Target, N: int) -> None:
    """As wide as the columns need."""
    a, b = _random(13, 200), _random(200, N)
    results = []
    for columns in (None, N):
        module, engine = Module(target), Engine(target)
        write_gemm(module, "product", columns=columns)
        engine.add(module)
        c, params = np.zeros((13, N), np.float32), GemmParams.blocked(target, 13, N, 200)
        call(engine, "product", [a, pack_columns(b, tiling(target, F32, columns).panel), c], params.words(), 0, params.tasks())
        results.append(c)
    assert results[0].tobytes() == results[1].tobytes()
    assert _close(results[0], a, b)


@pytest.mark.parametrize("counts", [(3, 0, 14, 1), (0, 0, 0, 0), (0, 20)])
def test_grouped_rows_are_multiplied_with_the_matrix_of_their_group(target: Target, counts: tuple[int, ...]) -> None:
    """However many rows a group has; nothing else is written."""
    module, engine, (K, N) = Module(target), Engine(target), (300, 70)
    write_gemm(module, "grouped", is_grouped=True)
    engine.add(module)
    rows, most = sum(counts), max(*counts, 1)
    a, b = _random(max(rows, 1), K), _random(len(counts), K, N)
    packed = np.stack([pack_columns(matrix, tiling(target).panel) for matrix in b])
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    params = GemmParams.blocked(target, most, N, K, threads=2, stride_b=packed[0].size)
    c = np.full((rows + 1, N), 7, np.float32)
    call(engine, "grouped", [a, packed, c, offsets], params.words(), 0, params.tasks(len(counts)))
    assert (c[rows:] == 7).all()
    for matrix, (first, last) in zip(b, itertools.pairwise(offsets), strict=True):
        assert _close(c[first:last], a[first:last], matrix)
