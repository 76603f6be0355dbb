"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank, unknown_shape
from sardonyx.ops.shapes.elements import dims_of
from sardonyx.ops.shapes.windows import slide, slide_back
from sardonyx.ops.views.pool import Pool
from sardonyx.ops.views.window import Window

__all__: list[str] = []


@shape_function("AveragePool", "LpPool", "MaxPool")
def pool(call: ShapeCall, x: Fact) -> tuple[Fact, ...]:
    """Infer (N, C, spatial…) -> (N, C, places of the window…), and for MaxPool where the maxima were."""
    shape = _pool_shape(Pool.of(call).window, x)
    return tensor(x.dtype, shape), tensor(DataType.INT64, shape)


def _pool_shape(window: Window[int], x: Fact) -> Shape:
    shape, kernel = require_rank(x, "X", 3), window.kernel
    if shape is None:
        return unknown_shape(len(kernel) + 2)
    if len(kernel) != len(shape) - 2:
        raise InvalidGraph(f"kernel_shape={list(kernel)} has {len(kernel)} axes for X of shape {dims_text(shape)}")
    return shape[:2] + slide(window, shape[2:])


@shape_function("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def global_pool(call: ShapeCall, x: Fact) -> Fact:
    """Reduce every spatial axis to 1."""
    shape = require_rank(x, "X", 2)
    return tensor(x.dtype, None if shape is None else shape[:2] + (1,) * (len(shape) - 2))


@shape_function("MaxRoiPool")
def max_roi_pool(call: ShapeCall, x: Fact, rois: Fact, *, pooled_shape: Sequence[int] = ()) -> Fact:
    """Infer (N, C, H, W) and regions (R, 5) -> (R, C, pooled…)."""
    regions = anonymous() if not rois.shape else rois.shape[0]
    channels = anonymous() if x.shape is None or len(x.shape) < 2 else x.shape[1]
    return tensor(x.dtype, (regions, channels, *pooled_shape))


@shape_function("RoiAlign")
def roi_align(call: ShapeCall, x: Fact, rois: Fact, batch_indices: Fact, *, output_height: int = 1, output_width: int = 1) -> Fact:
    """Infer (N, C, H, W) and regions (R, 4) -> (R, C, height, width)."""
    regions = rois.shape[0] if rois.shape else batch_indices.shape[0] if batch_indices.shape else anonymous()
    channels = anonymous() if x.shape is None or len(x.shape) < 2 else x.shape[1]
    return tensor(x.dtype, (regions, channels, output_height, output_width))


@shape_function("MaxUnpool")
def max_unpool(call: ShapeCall, x: Fact, indices: Fact, output_shape: Fact | None = None) -> Fact:
    """Return the shape that MaxPool had as its input, or the one that the third input holds."""
    if output_shape is not None:
        target = dims_of(output_shape)
        rank = len(target) if target is not None else None if x.shape is None else len(x.shape)
        if target is None:
            return tensor(x.dtype, None if rank is None else unknown_shape(rank))
        return tensor(x.dtype, tuple([anonymous() if dim is None else dim for dim in target]))
    shape = require_rank(x, "X", 3)
    if shape is None:
        return tensor(x.dtype)
    window = Pool.of(call).window
    return tensor(x.dtype, shape[:2] + slide_back(window, shape[2:], [0] * len(window.kernel)))
