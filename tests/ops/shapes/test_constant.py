"""Facts about constants and shapes as values."""

from __future__ import annotations

import numpy as np
import pytest
from support.infer_op import UNKNOWN_DIM, A, B, dtype_of, error_of, floats, infer_op, infer_shape, ints, scalar

from sardonyx.dtypes import DataType
from sardonyx.ir import SparseTensor, Tensor
from sardonyx.ops.fact import UNKNOWN, tensor


def test_constant_by_attribute() -> None:
    """Each attribute of Constant gives type, shape and elements."""
    assert infer_op("Constant", value=Tensor.from_array(np.array([1.5])))[0].elements == [1.5]
    assert infer_op("Constant", value_int=3)[0].elements == [3]
    assert infer_shape("Constant", value_floats=(1.0, 2.0)) == (2,)
    assert dtype_of("Constant", value_strings=("a", "b")) is DataType.STRING
    sparse = SparseTensor(Tensor.from_array(np.ones(1, np.float32)), Tensor.from_array(np.zeros(1, np.int64)), (3, 4))
    assert infer_shape("Constant", sparse_value=sparse) == (3, 4)
    assert "no attribute gives the value" in error_of("Constant")


def test_shape_gives_dimensions() -> None:
    """Shape makes the dimensions a value, from start to end."""
    assert infer_op("Shape", floats(A, 3, B))[0].elements == [A, 3, B]
    assert infer_op("Shape", floats(A, 3, B), start=-2)[0].elements == [3, B]
    assert infer_op("Shape", floats(A, 3, B), end=9)[0].elements == [A, 3, B]
    assert infer_shape("Shape", UNKNOWN) == (UNKNOWN_DIM,)


def test_size_is_the_product() -> None:
    """Size multiplies the dimensions."""
    assert infer_op("Size", floats(A, 3))[0].elements == [3 * A]
    assert infer_shape("Size", floats(A, 3)) == ()


def test_constant_of_shape() -> None:
    """The input's elements are the output's dimensions."""
    assert infer_shape("ConstantOfShape", ints(A, 3)) == (A, 3)
    assert infer_shape("ConstantOfShape", tensor(DataType.INT64, (2,))) == (UNKNOWN_DIM, UNKNOWN_DIM)
    assert infer_op("ConstantOfShape", ints(2), value=Tensor.from_array(np.array([7])))[0].elements == [7, 7]
    assert infer_op("ConstantOfShape", ints())[0].elements == [0.0]
    assert "negative dimension" in error_of("ConstantOfShape", ints(-1))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((0, 5, 2), [0, 2, 4]),
        ((5, 0, -2), [5, 3, 1]),
        ((0, 0, 1), []),
        ((3, 0, 1), []),
        ((-3, 3, 3), [-3, 0]),
        ((1 - 2**63, 2**63 - 1, 2**63 - 1), [1 - 2**63, 0]),
    ],
)
def test_range_of_integers(bounds: tuple[int, int, int], expected: list[int]) -> None:
    """Known bounds give known elements."""
    assert infer_op("Range", *[scalar(bound) for bound in bounds])[0].elements == expected


def test_range_of_symbols() -> None:
    """A symbolic bound gives a symbolic length."""
    limit = infer_op("Squeeze", ints(A))[0]
    assert infer_shape("Range", scalar(0), limit, scalar(1)) == (A,)
    assert infer_shape("Range", limit, infer_op("Squeeze", ints(A + B))[0], scalar(1)) == (B,)
    assert infer_shape("Range", tensor(DataType.FLOAT, ()), scalar(1.0), scalar(1.0)) == (UNKNOWN_DIM,)
    assert "delta is 0" in error_of("Range", scalar(0), scalar(3), scalar(0))


def test_identity_passes_everything() -> None:
    """Identity passes type and elements."""
    assert infer_op("Identity", ints(A, 2))[0].elements == [A, 2]


def test_eye_like_may_change_the_type() -> None:
    """The attribute wins over the input's type."""
    assert dtype_of("EyeLike", floats(2, 3)) is DataType.FLOAT
    assert dtype_of("EyeLike", floats(2, 3), dtype=7) is DataType.INT64
