"""Facts about operators that ai.onnx had as experiments."""

from __future__ import annotations

import pytest
from support.infer_op import A, B, floats, infer_shape, ints

from sardonyx.errors import InvalidGraph


@pytest.mark.parametrize("op_type", ["Affine", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh"])
def test_elements_stay(op_type: str) -> None:
    """The output is as the input."""
    assert infer_shape(op_type, floats(A, 3, 4, B), version=9) == (A, 3, 4, B)


def test_a_crop_is_what_the_border_leaves() -> None:
    """Or what the scale says."""
    assert infer_shape("Crop", floats(A, 3, 9, 8), version=9, border=(1, 2, 3, 4)) == (A, 3, 3, 4)
    assert infer_shape("Crop", floats(A, 3, B, 8), version=9, border=(1, 2, 0, 0), scale=(5, 6)) == (A, 3, 5, 6)
    with pytest.raises(InvalidGraph, match="expected four values"):
        infer_shape("Crop", floats(A, 3, 9, 8), version=9, border=(1, 2))


def test_a_dynamic_slice_is_a_slice() -> None:
    """Of bounds that are known."""
    assert infer_shape("DynamicSlice", floats(A, 9), ints(2), ints(5), ints(1), version=9) == (A, 3)
