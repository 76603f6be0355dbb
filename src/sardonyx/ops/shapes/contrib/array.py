"""Operators of com.microsoft that arrange, window and compare arrays."""

from __future__ import annotations

import numpy as np

from sardonyx import errors
from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import UNKNOWN, Fact, ShapeCall, known, shape_function, tensor
from sardonyx.ops.shapes.axes import replace_dim, require_rank, unknown_shape
from sardonyx.ops.shapes.constant import range_fact
from sardonyx.ops.shapes.elements import int_of
from sardonyx.ops.shapes.windows import slide
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.pool import Pool
from sardonyx.ops.views.window import Window

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("Inverse", "Trilu", domain=_MICROSOFT)
def same_shape(call: ShapeCall, x: Fact, other: Fact | None = None) -> Fact:
    """Give the output the shape and type of the first input."""
    return tensor(x.dtype, x.shape)


@shape_function("NGramRepeatBlock", domain=_MICROSOFT)
def n_gram_repeat_block(call: ShapeCall, input_ids: Fact, scores: Fact) -> Fact:
    """Give the output the shape and type of the scores."""
    return tensor(scores.dtype, scores.shape)


@shape_function("ExpandDims", domain=_MICROSOFT)
def expand_dims(call: ShapeCall, x: Fact, axis: Fact) -> Fact:
    """Insert a dimension of size 1 at the place that the second input holds."""
    if x.shape is None:
        return tensor(x.dtype)
    place = int_of(axis)
    if place is None:
        return tensor(x.dtype, unknown_shape(len(x.shape) + 1))
    at = normalize_axis(place, len(x.shape) + 1)
    return tensor(x.dtype, (*x.shape[:at], 1, *x.shape[at:]))


@shape_function("CDist", domain=_MICROSOFT)
def cdist(call: ShapeCall, a: Fact, b: Fact, *, metric: str = "sqeuclidean") -> Fact:
    """Infer (M, C) and (K, C) -> (M, K); raises NotImplemented for a metric that onnxruntime does not compute either."""
    if metric not in ("euclidean", "sqeuclidean"):
        raise errors.NotImplemented(f"metric is {metric!r}; only euclidean and sqeuclidean are computed, as in onnxruntime")
    left, right = require_rank(a, "A", 2, 2), require_rank(b, "B", 2, 2)
    return tensor(a.dtype, (anonymous() if left is None else left[0], anonymous() if right is None else right[0]))


@shape_function("DynamicTimeWarping", domain=_MICROSOFT)
def dynamic_time_warping(call: ShapeCall, x: Fact) -> Fact:
    """Return (2, steps), which depends on the data."""
    return tensor(DataType.INT32, (2, anonymous()))


@shape_function("UnfoldTensor", domain=_MICROSOFT)
def unfold_tensor(call: ShapeCall, x: Fact, *, dim: int = -1, size: int, step: int = 1) -> Fact:
    """Return windows along an axis, their elements in a new last axis."""
    if x.shape is None:
        return tensor(x.dtype)
    axis = normalize_axis(dim, len(x.shape), "dim")
    (places,) = slide(Window((size,), (step,), (1,), (0, 0)), (x.shape[axis],))
    return tensor(x.dtype, (*replace_dim(x.shape, axis, places), size))


@shape_function("NhwcMaxPool", domain=_MICROSOFT)
def nhwc_max_pool(call: ShapeCall, x: Fact) -> Fact:
    """Infer (N, spatial…, C) -> (N, places of the window…, C)."""
    window = Pool.of(call).window
    rank = len(window.kernel) + 2
    shape = require_rank(x, "x", rank, rank)
    if shape is None:
        return tensor(x.dtype, unknown_shape(rank))
    return tensor(x.dtype, (shape[0], *slide(window, shape[1:-1]), shape[-1]))


@shape_function("Range", domain=_MICROSOFT)
def range_(call: ShapeCall, start: Fact, limit: Fact, delta: Fact | None = None) -> Fact:
    """Infer as Range of ai.onnx, with steps of 1 by default."""
    one = None if start.dtype is None else known(start.dtype, np.ones((), start.dtype.numpy))
    step = one if delta is None else delta
    return UNKNOWN if step is None else range_fact(start, limit, step)


@shape_function("Unique", domain=_MICROSOFT)
def unique(call: ShapeCall, x: Fact) -> tuple[Fact, ...]:
    """Infer (C) -> what differs, where each element lies among that, and how often it occurs."""
    vector = (anonymous(),)
    return tensor(x.dtype, vector), tensor(DataType.INT64, x.shape), tensor(DataType.INT64, vector)
