"""Sorting and selecting."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import replace_dim, size_of, unknown_shape
from sardonyx.ops.shapes.elements import dims_of
from sardonyx.ops.views.axes import normalize_axis

__all__: list[str] = []


@shape_function("TopK", since=10)
def top_k(call: ShapeCall, x: Fact, k: Fact, *, axis: int = -1) -> tuple[Fact, ...]:
    """Give the axis k elements, for values and int64 indices."""
    count = (dims_of(k) or [None])[0]
    return _top_k(x, count, axis)


@shape_function("TopK")
def top_k_before_10(call: ShapeCall, x: Fact, *, k: int = 1, axis: int = -1) -> tuple[Fact, ...]:
    """Return the same, with k as an attribute."""
    return _top_k(x, k, axis)


def _top_k(x: Fact, count: Dim | None, axis: int) -> tuple[Fact, ...]:
    if x.shape is None:
        return tensor(x.dtype), tensor(DataType.INT64)
    place = normalize_axis(axis, len(x.shape))
    dim = x.shape[place]
    if isinstance(dim, int) and isinstance(count, int) and count > dim:
        raise InvalidGraph(f"k is {count}, but axis {axis} of shape {dims_text(x.shape)} has {dim} elements")
    shape = replace_dim(x.shape, place, anonymous() if count is None else count)
    return tensor(x.dtype, shape), tensor(DataType.INT64, shape)


@shape_function("NonMaxSuppression")
def non_max_suppression(call: ShapeCall, *inputs: Fact | None) -> Fact:
    """Return (boxes kept, 3), which depends on the data."""
    return tensor(DataType.INT64, (anonymous(), 3))


@shape_function("Unique")
def unique(call: ShapeCall, x: Fact, *, axis: int | None = None) -> tuple[Fact, ...]:
    """Return as many elements, or slices along the axis, as differ, with three vectors of indices and counts."""
    count = anonymous()
    vector = tensor(DataType.INT64, (count,))
    if axis is None:
        inverse = anonymous() if x.shape is None else size_of(x.shape)
        return tensor(x.dtype, (count,)), vector, tensor(DataType.INT64, (inverse,)), vector
    if x.shape is None:
        return tensor(x.dtype), vector, tensor(DataType.INT64, unknown_shape(1)), vector
    place = normalize_axis(axis, len(x.shape))
    return tensor(x.dtype, replace_dim(x.shape, place, count)), vector, tensor(DataType.INT64, (x.shape[place],)), vector
