"""Facts about operators of com.microsoft on images."""

from __future__ import annotations

from typing import Any

from support.infer_op import UNKNOWN_DIM, A, B, floats, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, tensor


def shape_of(op_type: str, *inputs: Fact | None, **attributes: Any) -> Shape | None:
    """The output's shape."""
    return infer_shape(op_type, *inputs, domain="com.microsoft", **attributes)


def test_padding_that_is_known_gives_the_size() -> None:
    """Another leaves the spatial axes open."""
    x, w = floats(A, 2, 5, 5), floats(2, 3, 3, 3)
    assert shape_of("ConvTransposeWithDynamicPads", x, w, ints(1, 0, 1, 2)) == (A, 3, 5, 5)
    assert shape_of("ConvTransposeWithDynamicPads", x, w) == (A, 3, 7, 7)
    open_pads = tensor(DataType.INT64, (4,))
    assert shape_of("ConvTransposeWithDynamicPads", x, w, open_pads) == (A, 3, UNKNOWN_DIM, UNKNOWN_DIM)


def test_crops_have_the_size_that_is_asked_for() -> None:
    """One for each region."""
    x, rois, of = floats(A, 3, 9, 9), floats(B, 4), tensor(DataType.INT32, (B,))
    assert shape_of("CropAndResize", x, rois, of, ints(2, 5)) == (B, 3, 2, 5)
    assert shape_of("CropAndResize", x, rois, of, tensor(DataType.INT32, (2,))) == (B, 3, UNKNOWN_DIM, UNKNOWN_DIM)


def test_a_masked_pool_has_the_size_of_a_pool() -> None:
    """The mask changes values only."""
    x, mask = floats(A, 3, 8, 8), tensor(DataType.INT32, (1, 1, 8, 8))
    assert shape_of("MaxpoolWithMask", x, mask, kernel_shape=(2, 2), strides=(2, 2)) == (A, 3, 4, 4)
