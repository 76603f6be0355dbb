"""Operators of com.microsoft on images."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank, unknown_shape
from sardonyx.ops.shapes.conv import conv_transpose
from sardonyx.ops.shapes.elements import ints_of
from sardonyx.ops.shapes.pool import pool

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("ConvTransposeWithDynamicPads", domain=_MICROSOFT)
def conv_transpose_with_dynamic_pads(
    call: ShapeCall,
    x: Fact,
    w: Fact,
    pads: Fact | None = None,
    b: Fact | None = None,
    *,
    kernel_shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    group: int = 1,
    output_padding: Sequence[int] | None = None,
) -> Fact | tuple[Fact, ...]:
    """As ConvTranspose where the padding is known; else the spatial sizes are not."""
    padding = None if pads is None else ints_of(pads)
    if pads is not None and padding is None:
        shape, weights = require_rank(x, "X", 3), require_rank(w, "W", 3)
        head = (anonymous() if shape is None else shape[0], anonymous() if weights is None else weights[1] * group)
        rank = len(shape or weights or ()) - 2
        return tensor(x.dtype, None if rank < 0 else (*head, *unknown_shape(rank)))
    return conv_transpose(
        call,
        x,
        w,
        b,
        kernel_shape=kernel_shape,
        strides=strides,
        dilations=dilations,
        pads=padding,
        auto_pad=auto_pad,
        group=group,
        output_padding=output_padding,
    )


@shape_function("CropAndResize", domain=_MICROSOFT)
def crop_and_resize(call: ShapeCall, x: Fact, rois: Fact, batch_indices: Fact, crop_size: Fact) -> Fact:
    """(N, C, H, W) and regions (R, 4) -> (R, C, height, width)."""
    shape, regions = require_rank(x, "X", 4, 4), require_rank(rois, "rois", 2, 2)
    size = ints_of(crop_size)
    head = (anonymous() if regions is None else regions[0], anonymous() if shape is None else shape[1])
    return tensor(x.dtype, (*head, *(unknown_shape(2) if size is None or len(size) != 2 else size)))


@shape_function("MaxpoolWithMask", domain=_MICROSOFT)
def maxpool_with_mask(
    call: ShapeCall,
    x: Fact,
    mask: Fact,
    *,
    kernel_shape: Sequence[int] = (),
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
) -> Fact:
    """As MaxPool."""
    found = pool(call, x, kernel_shape=kernel_shape, strides=strides, pads=pads, auto_pad=auto_pad)
    return found[0] if isinstance(found, tuple) else found
