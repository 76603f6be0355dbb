"""Facts about casts."""

from __future__ import annotations

import numpy as np
from support.infer_op import A, dtype_of, error_of, floats, infer_op, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import known


def test_cast_changes_the_type_alone() -> None:
    """Shape and known elements survive a cast."""
    assert infer_shape("Cast", floats(A, 3), to=7) == (A, 3)
    assert dtype_of("Cast", floats(A), to=7) is DataType.INT64
    assert infer_op("Cast", ints(3, A), to=int(DataType.FLOAT))[0].elements == [3, A]


def test_floats_are_truncated() -> None:
    """A known float becomes the integer toward zero; one that may not fit is unknown."""
    values = known(DataType.FLOAT, np.array([2.7, -2.7], np.float32))
    assert infer_op("Cast", values, to=7)[0].elements == [2, -2]
    assert infer_op("Cast", known(DataType.FLOAT, np.array([1e20], np.float32)), to=7)[0].elements is None


def test_opset_1_names_the_type() -> None:
    """Before opset 6 the type was a string."""
    assert dtype_of("Cast", floats(A), version=1, to="INT64") is DataType.INT64


def test_unknown_type_is_refused() -> None:
    """A number that is no type raises."""
    assert "attribute 'to' is 99" in error_of("Cast", floats(A), to=99)


def test_cast_like_takes_the_type_of_the_second_input() -> None:
    """The second input gives the type alone."""
    assert dtype_of("CastLike", floats(A), ints(1)) is DataType.INT64


def test_bit_cast_scales_the_last_dimension() -> None:
    """Bits are kept, so narrower elements are more."""
    assert infer_shape("BitCast", floats(A, 3), to=int(DataType.UINT8)) == (A, 12)
    assert infer_shape("BitCast", floats(A, 3), to=int(DataType.INT32)) == (A, 3)
