"""Facts about element-wise operators of several inputs."""

from __future__ import annotations

import numpy as np
from support.infer_op import A, B, dtype_of, error_of, floats, infer_op, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import UNKNOWN, known, tensor


def test_inputs_are_broadcast() -> None:
    """The output has the shape that both inputs broadcast to."""
    assert infer_shape("Add", floats(A, 1, 3), floats(5, 1)) == (A, 5, 3)
    assert "do not broadcast" in error_of("Mul", floats(2), floats(3))


def test_type_is_that_of_the_inputs() -> None:
    """Arithmetic keeps the type, comparisons give bool."""
    assert dtype_of("Sub", UNKNOWN, tensor(DataType.INT32, ())) is DataType.INT32
    assert dtype_of("Pow", tensor(DataType.FLOAT, ()), tensor(DataType.INT64, ())) is DataType.FLOAT
    assert dtype_of("Less", floats(), floats()) is DataType.BOOL


def test_known_elements_are_computed() -> None:
    """Sizes survive arithmetic."""
    assert infer_op("Mul", ints(A, 3), ints(B, 2))[0].elements == [A * B, 6]
    assert infer_op("Max", ints(1, 5), ints(3), ints(4))[0].elements == [4, 5]


def test_remainder_follows_fmod() -> None:
    """Mod is computed with the divisor's sign, and not at all with fmod."""
    assert infer_op("Mod", ints(-7), ints(3))[0].elements == [2]
    assert infer_op("Mod", ints(-7), ints(3), fmod=1)[0].elements is None


def test_before_opset_7_the_first_shape_holds() -> None:
    """The old one-directional broadcasting keeps the first input's shape."""
    assert infer_shape("Add", floats(2, 3, 4), floats(3), version=6) == (2, 3, 4)
    assert dtype_of("Equal", ints(1), ints(1), version=1) is DataType.BOOL


def test_where_picks_known_elements() -> None:
    """The idiom that replaces -1 in a target shape by 1 is understood."""
    sizes, ones = ints(A, -1), ints(1, 1)
    condition = infer_op("Equal", sizes, ints(-1))[0]
    assert infer_op("Where", condition, ones, sizes)[0].elements == [A, 1]


def test_where_broadcasts_all_three() -> None:
    """Condition and both choices are broadcast."""
    assert infer_shape("Where", tensor(DataType.BOOL, (A, 1)), floats(3), floats()) == (A, 3)


def test_overflow_wraps_as_in_the_kernel() -> None:
    """Known integers are computed in their own type."""
    small = known(DataType.INT8, np.array([127], np.int8))
    assert infer_op("Add", small, small)[0].elements == [-2]
