"""How a store reads what it needs besides a product of bytes."""

import itertools

import numpy as np
import pytest
from support.cpu_run import TILES
from support.models import model

from sardonyx import InferenceSession
from sardonyx.codegen.emit.types import F32, I8, U8
from sardonyx.codegen.kernels.quantized.byte_gemm import COLUMN, ROW, SCALAR, WHOLE
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import TensorType, Value
from sardonyx.providers.cpu.kernels.byte_product import PackBytesKernel, PrepareRowsKernel, placeholder, way_of
from sardonyx.providers.cpu.provider import CpuProvider


def _value(*shape: int, dtype: DataType = DataType.FLOAT) -> Value:
    return Value("v", TensorType(dtype, shape))


@pytest.mark.parametrize(
    ("shape", "way"),
    [
        ((), SCALAR),
        ((1, 1), SCALAR),
        ((4,), COLUMN),
        ((1, 4), COLUMN),
        ((3, 1), None),
        ((2, 3, 1), ROW),
        ((2, 3, 4), WHOLE),
        ((3, 4), None),
        ((3,), None),
    ],
)
def test_an_operand_is_read_by_its_shape(shape: tuple[int, ...], way: str | None) -> None:
    """Beside a product of (2, 3, 4): one number, by column, by row of the whole, by element."""
    assert way_of((2, 3, 4), _value(*shape)) == way


def test_a_product_with_a_vector_has_no_columns() -> None:
    """Of its one dimension only single numbers and whole tensors are read."""
    assert [way_of((5, 4), _value(*shape), is_vector=True) for shape in ((4,), (5, 1), (5, 4), (1,))] == [None, None, WHOLE, SCALAR]


def test_some_types_are_not_read() -> None:
    """Elements of more bits than a lane has, and bools."""
    assert way_of((3, 4), _value(4, dtype=DataType.INT64)) is None
    assert way_of((3, 4), _value(4, dtype=DataType.BOOL)) is None
    assert way_of((3, 4), _value(4, dtype=DataType.UINT8)) == COLUMN


def test_placeholders_stand_for_operands() -> None:
    """They are arguments that no tail has."""
    assert [placeholder(index, F32).value for index in range(2)] == [-1, -2]


def test_kernels_are_named_by_their_sign() -> None:
    """What copies signed bytes is another kernel than what copies unsigned ones."""
    names = {kernel(kind).symbol(host_target()) for kernel in (PackBytesKernel, PrepareRowsKernel) for kind in (U8, I8)}
    assert len(names) == 4


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((40, 64), (64, 70)),
        ((15, 64), (64, 20)),
        ((35, 61), (61, 33)),
        ((2, 17, 128), (2, 128, 5)),
        ((3, 6, 9), (9, 18)),
        ((64,), (64, 3)),
    ],
    ids=str,
)
def test_products_in_tiles_are_exact(left: tuple[int, ...], right: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a processor with AMX, emulated, between unmapped pages: of any signs, read in place or not, with one thread and more."""
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    rng = np.random.default_rng(0)
    for signs, zeros in itertools.product(itertools.product(("uint8", "int8"), repeat=2), (False, True)):
        ends = f", az: {signs[0]}[1], bz: {signs[1]}[1]" if zeros else ""
        shapes = [",".join(map(str, shape)) for shape in (left, right)]
        names = "a, b, az, bz" if zeros else "a, b"
        body = f"graph(a: {signs[0]}[{shapes[0]}], b: {signs[1]}[{shapes[1]}]{ends}) -> (y) {{\ny = MatMulInteger({names})\n}}"
        content = to_bytes(model(body))
        sides = zip("ab", (left, right), signs, strict=True)
        feeds = {name: rng.integers(0, 256, shape).astype(np.uint8).view(sign) for name, shape, sign in sides}
        feeds |= {"az": np.array([100], signs[0]), "bz": np.array([77], signs[1])} if zeros else {}
        expected = InferenceSession(content, providers=["ReferenceExecutionProvider"]).run(None, feeds)[0]
        for threads in (1, 2):
            session = InferenceSession(content, providers=[CpuProvider(TILES, threads)])
            assert session.explain()[0].provider == "CPUExecutionProvider"
            np.testing.assert_array_equal(session.run(None, feeds)[0], expected)
