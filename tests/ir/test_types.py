"""The types of values."""

from __future__ import annotations

import pytest

from sardonyx.dtypes import DataType
from sardonyx.ir import MapType, OptionalType, SequenceType, SparseTensorType, TensorType, ValueType, symbol

FLOATS = TensorType(DataType.FLOAT, (1, symbol("n")))


@pytest.mark.parametrize(
    ("value_type", "text"),
    [
        (FLOATS, "tensor(float)"),
        (TensorType(DataType.BFLOAT16), "tensor(bfloat16)"),
        (TensorType(DataType.FLOAT8E4M3FN), "tensor(float8e4m3fn)"),
        (SparseTensorType(DataType.DOUBLE), "sparse_tensor(double)"),
        (SequenceType(FLOATS), "seq(tensor(float))"),
        (SequenceType(None), "seq()"),
        (OptionalType(SequenceType(FLOATS)), "optional(seq(tensor(float)))"),
        (SequenceType(MapType(DataType.INT64, TensorType(DataType.FLOAT))), "seq(map(int64,tensor(float)))"),
        (MapType(DataType.STRING, None), "map(string,)"),
    ],
)
def test_types_print_as_in_onnxruntime(value_type: ValueType, text: str) -> None:
    """`str` is what NodeArg.type holds there."""
    assert str(value_type) == text


def test_types_compare_by_what_they_say() -> None:
    """Equal types are equal and hash alike; a shape of rank 0 is not an unknown one."""
    assert TensorType(DataType.FLOAT, (1, symbol("n"))) == FLOATS
    assert hash(TensorType(DataType.FLOAT, (1, symbol("n")))) == hash(FLOATS)
    assert TensorType(DataType.FLOAT, ()) != TensorType(DataType.FLOAT, None)
    assert TensorType(DataType.FLOAT) != SparseTensorType(DataType.FLOAT)


@pytest.mark.parametrize(
    ("sizes", "expected"), [((1, 5), True), ((1, 0), True), ((2, 5), False), ((1,), False), ((1, 5, 1), False)]
)
def test_sizes_that_a_type_allows(sizes: tuple[int, ...], expected: bool) -> None:
    """Numbers must be equal, symbols are any size; without a shape all is allowed."""
    assert FLOATS.allows(sizes) is expected
    assert TensorType(DataType.FLOAT).allows(sizes)
