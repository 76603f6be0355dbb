"""Operators of com.microsoft on images."""

from __future__ import annotations

from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank, unknown_shape
from sardonyx.ops.shapes.conv import conv_transpose_fact
from sardonyx.ops.shapes.elements import ints_of
from sardonyx.ops.shapes.pool import pool
from sardonyx.ops.views.conv import ConvTranspose

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("ConvTransposeWithDynamicPads", domain=_MICROSOFT)
def conv_transpose_with_dynamic_pads(
    call: ShapeCall,
    x: Fact,
    w: Fact,
    pads: Fact | None = None,
    b: Fact | None = None,
) -> Fact | tuple[Fact, ...]:
    """Infer as for ConvTranspose where the padding is known; else the spatial sizes are not."""
    view, padding = ConvTranspose.of(call), () if pads is None else ints_of(pads)
    if padding is None:
        shape, weights = require_rank(x, "X", 3), require_rank(w, "W", 3)
        head = (anonymous() if shape is None else shape[0], anonymous() if weights is None else weights[1] * view.group)
        rank = len(shape or weights or ()) - 2
        return tensor(x.dtype, None if rank < 0 else (*head, *unknown_shape(rank)))
    auto_pad = "NOTSET" if view.sliding.auto_pad == "VALID" else view.sliding.auto_pad
    return conv_transpose_fact(view._replace(sliding=view.sliding._replace(pads=padding, auto_pad=auto_pad)), x, w)


@shape_function("CropAndResize", domain=_MICROSOFT)
def crop_and_resize(call: ShapeCall, x: Fact, rois: Fact, batch_indices: Fact, crop_size: Fact) -> Fact:
    """Infer (N, C, H, W) and regions (R, 4) -> (R, C, height, width)."""
    shape, regions = require_rank(x, "X", 4, 4), require_rank(rois, "rois", 2, 2)
    size = ints_of(crop_size)
    head = (anonymous() if regions is None else regions[0], anonymous() if shape is None else shape[1])
    return tensor(x.dtype, (*head, *(unknown_shape(2) if size is None or len(size) != 2 else size)))


@shape_function("MaxpoolWithMask", domain=_MICROSOFT)
def maxpool_with_mask(call: ShapeCall, x: Fact, mask: Fact) -> Fact:
    """Infer as for MaxPool."""
    found = pool(call, x)
    return found[0] if isinstance(found, tuple) else found
