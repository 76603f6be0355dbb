"""How a store reads what it needs besides a product of bytes."""

import pytest

from sardonyx.codegen.emit.types import F32, I8, U8
from sardonyx.codegen.kernels.quantized.byte_gemm import COLUMN, ROW, SCALAR, WHOLE
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.ir import TensorType, Value
from sardonyx.providers.cpu.kernels.byte_product import PackBytesKernel, PrepareRowsKernel, placeholder, way_of


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
