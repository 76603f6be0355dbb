"""Operators that read or write at places that an input names."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Expr
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, known, shape_function, tensor
from sardonyx.ops.shapes.axes import replace_dim, size_of
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.gather import Gather, OneHot

__all__: list[str] = []


@shape_function("Gather")
def gather(call: ShapeCall, data: Fact, indices: Fact) -> Fact:
    """Replace the axis of the data by the dimensions of the indices."""
    if data.shape is None or indices.shape is None:
        return tensor(data.dtype)
    if not data.shape:
        raise InvalidGraph("the data is a scalar; expected a tensor of rank 1 or more to gather from")
    place = Gather.of(call).place(len(data.shape))
    _check_indices(indices, data.shape[place], f"axis {place} of shape {dims_text(data.shape)}")
    shape = data.shape[:place] + indices.shape + data.shape[place + 1 :]
    if data.value is None or indices.constant is None:
        return tensor(data.dtype, shape)
    return known(data.dtype, _taken(data.value, indices.constant, place))


def _taken(data: Array, indices: Array, axis: int) -> Array:
    """Return np.take that gives an array for a scalar index of a symbolic vector too."""
    taken: object = data.take(indices, axis)
    if isinstance(taken, np.ndarray):
        return taken
    result = np.empty((), data.dtype)
    result[()] = taken
    return result


def _check_indices(indices: Fact, size: Dim, what: str) -> None:
    constant = indices.constant
    if constant is None or not constant.size or not isinstance(size, int):
        return
    least, most = int(constant.min()), int(constant.max())
    if least < -size or most >= size:
        raise InvalidGraph(f"index {most if most >= size else least} is outside [{-size}, {size - 1}], the range of {what}")


@shape_function("GatherElements")
def gather_elements(call: ShapeCall, data: Fact, indices: Fact) -> Fact:
    """Give the output the shape of the indices."""
    if data.shape is not None and indices.shape is not None and len(data.shape) != len(indices.shape):
        raise InvalidGraph(f"data and indices have ranks {len(data.shape)} and {len(indices.shape)}, expected one rank")
    return tensor(data.dtype, indices.shape)


@shape_function("GatherND", domain="com.microsoft")
@shape_function("GatherND")
def gather_nd(call: ShapeCall, data: Fact, indices: Fact) -> Fact:
    """Infer the shape where the last dimension of the indices addresses that many axes of the data, after the batch."""
    if data.shape is None or indices.shape is None or not indices.shape:
        return tensor(data.dtype)
    depth, batch_dims = indices.shape[-1], Gather.of(call).batch_axes
    if not isinstance(depth, int):
        return tensor(data.dtype)
    if batch_dims + depth > len(data.shape):
        raise InvalidGraph(
            f"indices of shape {dims_text(indices.shape)} address {depth} axes after {batch_dims} of batch, "
            f"but the data has shape {dims_text(data.shape)}"
        )
    shape = indices.shape[:-1] + data.shape[batch_dims + depth :]
    if data.value is None or indices.constant is None or batch_dims:
        return tensor(data.dtype, shape)
    found: object = data.value[tuple(np.moveaxis(indices.constant, -1, 0))]
    return known(data.dtype, np.asarray(found, dtype=data.value.dtype))


@shape_function("Scatter", "ScatterElements", "ScatterND")
def scatter(call: ShapeCall, data: Fact, indices: Fact, updates: Fact) -> Fact:
    """Give the output the shape and type of the data."""
    return tensor(data.dtype, data.shape)


@shape_function("TensorScatter")
def tensor_scatter(call: ShapeCall, past: Fact, update: Fact, write_indices: Fact | None = None) -> Fact:
    """Give the output the shape and type of the cache."""
    return tensor(past.dtype, past.shape)


@shape_function("Compress")
def compress(call: ShapeCall, x: Fact, condition: Fact, *, axis: int | None = None) -> Fact:
    """Return as many entries of the axis, or of all elements, as the condition has True."""
    kept = condition.constant
    limit = None if x.shape is None else size_of(x.shape) if axis is None else x.shape[normalize_axis(axis, len(x.shape))]
    count = anonymous() if kept is None or not isinstance(limit, int) else int(np.count_nonzero(kept[:limit]))
    if axis is None:
        return tensor(x.dtype, (count,))
    return tensor(x.dtype, None if x.shape is None else replace_dim(x.shape, normalize_axis(axis, len(x.shape)), count))


@shape_function("NonZero")
def non_zero(call: ShapeCall, x: Fact) -> Fact:
    """Return (rank, how many elements are not 0), which depends on the data."""
    if x.constant is not None and x.constant.ndim and x.constant.dtype.kind in "iufb":
        return known(DataType.INT64, np.array(np.nonzero(x.constant), np.int64))
    return tensor(DataType.INT64, (anonymous() if x.shape is None else len(x.shape), anonymous()))


@shape_function("OneHot")
def one_hot(call: ShapeCall, indices: Fact, depth: Fact, values: Fact) -> Fact:
    """Insert a dimension of size `depth` at the axis."""
    if indices.shape is None:
        return tensor(values.dtype)
    size = (depth.elements or [None])[0]
    place = OneHot.of(call).place(len(indices.shape) + 1)
    dim: Dim = anonymous() if size is None or isinstance(size, str) else size if isinstance(size, Expr) else int(size)
    return tensor(values.dtype, (*indices.shape[:place], dim, *indices.shape[place:]))
