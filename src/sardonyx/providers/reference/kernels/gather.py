"""Operators that read from, or write to, places which another tensor names."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import as_int, check_output_size, normalize_axis, normalize_position
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


def _checked(indices: Array, length: int, what: str = "indices") -> Array:
    """Return `indices` counted from the front, as int64; raises InvalidArgument for one outside [-length, length)."""
    if indices.dtype.kind not in "iu":
        raise InvalidArgument(f"{what} have type {indices.dtype}; expected integers")
    if indices.size == 0:
        return indices.astype(np.int64, copy=False)
    low, high = int(indices.min()), int(indices.max())
    if low < -length or high >= length:
        raise InvalidArgument(f"{what} lie in [{low}, {high}]; an axis of length {length} has [{-length}, {length - 1}]")
    indices = indices.astype(np.int64, copy=False)
    return np.where(indices < 0, indices + length, indices) if low < 0 else indices


_MOST_TAKEN = 1 << 20
"""How many elements are taken at a time."""
_FEW_INDICES = 64
"""Up to how many indices NumPy checks them sooner itself."""


@kernel("Gather")
def gather(_node: Call, data: Array, indices: Array, *, axis: int = 0) -> Array:
    """Take entries of `axis`: output shape is data's with that axis replaced by indices' shape. ONNX Gather-1, -11."""
    if data.ndim == 1 and indices.ndim and indices.size <= _FEW_INDICES:
        try:
            few: Array = data[indices]
            return few
        except IndexError:
            pass  # worded below
    at = normalize_axis(axis, data.ndim)
    if indices.ndim == 0:
        position = normalize_position(as_int(indices, "indices"), data.shape[at], "indices")
        return data[(slice(None),) * at + (position,)]
    check_output_size((*data.shape[:at], *indices.shape, *data.shape[at + 1 :]), data.itemsize)
    return _taken(data, _checked(indices, data.shape[at]), at)


def _taken(data: Array, indices: Array, axis: int) -> Array:
    """Return numpy.take(data, indices, axis), many rows of a large result at a time; ends where the run is to end."""
    rows = max(1, _MOST_TAKEN // max(math.prod(data.shape[1:]), 1))
    if axis or indices.size <= rows:
        return np.take(data, indices, axis=axis)
    y, places = np.empty((indices.size, *data.shape[1:]), data.dtype), indices.reshape(-1)
    for start in range(0, indices.size, rows):
        check_cancelled()
        y[start : start + rows] = data[places[start : start + rows]]
    return y.reshape(*indices.shape, *data.shape[1:])


def _axis_grid(indices: Array, axis: int) -> tuple[Array, ...]:
    """Return the coordinates that `indices` of `axis` name, the others running over indices' own shape."""
    grid = list(np.ogrid[tuple(slice(length) for length in indices.shape)])
    grid[axis] = indices
    return tuple(grid)


def _check_fits(indices: Array, data: Array, axis: int) -> None:
    if indices.ndim != data.ndim or any(
        have > limit for k, (have, limit) in enumerate(zip(indices.shape, data.shape, strict=True)) if k != axis
    ):
        raise InvalidArgument(
            f"indices of shape {indices.shape} for data of shape {data.shape}; "
            f"expected the same rank and, except along axis {axis}, no greater length"
        )


@kernel("GatherElements", since=11)
def gather_elements(_node: Call, data: Array, indices: Array, *, axis: int = 0) -> Array:
    """Take for each place of `indices` the entry of `axis` that it names; output has indices' shape. ONNX GatherElements-11."""
    at = normalize_axis(axis, data.ndim)
    _check_fits(indices, data, at)
    return data[_axis_grid(_checked(indices, data.shape[at]), at)]


def _tuple_grid(data: Array, indices: Array, batch_dims: int = 0) -> tuple[Array, ...]:
    """Return the coordinates that the k-tuples in the last axis of `indices` name, after `batch_dims` axes in common."""
    if indices.ndim < 1 or not 0 <= batch_dims < indices.ndim or batch_dims > data.ndim:
        raise InvalidArgument(f"batch_dims={batch_dims}, data of shape {data.shape}, indices of shape {indices.shape} do not fit")
    depth = indices.shape[-1]
    if batch_dims + depth > data.ndim or data.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise InvalidArgument(
            f"indices of shape {indices.shape} for data of shape {data.shape} with batch_dims={batch_dims}; expected equal "
            f"batch lengths and a last length of at most {data.ndim - batch_dims}"
        )
    parts = [_checked(indices[..., k], data.shape[batch_dims + k], f"indices[..., {k}]") for k in range(depth)]
    trailing = indices.ndim - 1
    batches = [np.arange(data.shape[k]).reshape((-1,) + (1,) * (trailing - 1 - k)) for k in range(batch_dims)]
    return (*batches, *parts)


@kernel("GatherND", since=11)
def gather_nd(_node: Call, data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    """Take the slices of `data` at the k-tuples in indices' last axis. ONNX GatherND-11, -12 (batch_dims)."""
    grid = _tuple_grid(data, indices, batch_dims)
    check_output_size((*indices.shape[:-1], *data.shape[len(grid) :]), data.itemsize)
    if grid:
        return data[grid]
    return np.broadcast_to(data, indices.shape[:-1] + data.shape)


_LONG_SLICE = 128
"""From so many elements on, updates are combined one slice at a time."""

_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _updated(output: Array, grid: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    """Write `updates` at `grid` into `output`, its own array; where places recur, all are combined, or the last one stays."""
    if reduction == "none":
        output[grid] = updates
        return output
    if reduction not in _REDUCTIONS:
        raise InvalidArgument(f"reduction={reduction!r}; expected 'none', {', '.join(map(repr, _REDUCTIONS))}")
    if output.dtype.kind == "O":
        raise InvalidArgument(f"reduction={reduction!r} of strings; only 'none' is defined for them")
    if output.dtype.kind in "biufc" and output.dtype != np.float16:
        _combine(_REDUCTIONS[reduction], output, grid, updates)
        return output
    wide = output.astype(np.float32)
    _combine(_REDUCTIONS[reduction], wide, grid, updates.astype(np.float32))
    return wide.astype(output.dtype)


def _combine(ufunc: np.ufunc, output: Array, grid: tuple[Array, ...], updates: Array) -> None:
    """Combine each update with its place, in their order: slices one by one where they are long, which is vectorised."""
    count = math.prod(np.broadcast_shapes(*(part.shape for part in grid)))
    if updates.size <= count * _LONG_SLICE:
        ufunc.at(output, grid, updates)
        return
    slices = updates.reshape(count, *output.shape[len(grid) :])
    for place, item in zip(zip(*(part.reshape(-1).tolist() for part in grid), strict=True), slices, strict=True):
        ufunc(output[place], item, out=output[place])


@kernel("Scatter", since=9)
@kernel("ScatterElements", since=11)
def scatter_elements(_node: Call, data: Array, indices: Array, updates: Array, *, axis: int = 0, reduction: str = "none") -> Array:
    """Copy `data` and write (or combine) each update at the entry of `axis` that its index names.

    Indices and updates have one shape, no longer than data's off the axis. Repeated places without a reduction keep the last
    update. ONNX Scatter-9, ScatterElements-11, -16 (add, mul), -18 (max, min).
    """
    at = normalize_axis(axis, data.ndim)
    _check_fits(indices, data, at)
    if updates.shape != indices.shape:
        raise InvalidArgument(f"updates have shape {updates.shape}, indices {indices.shape}; expected the same")
    return _updated(data.copy(), _axis_grid(_checked(indices, data.shape[at]), at), updates, reduction)


@kernel("ScatterND", since=11)
def scatter_nd(_node: Call, data: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Array:
    """Copy `data` and write (or combine) updates at the k-tuples in indices' last axis.

    Updates have shape indices.shape[:-1] + data.shape[k:]. ONNX ScatterND-11, -16 (add, mul), -18 (max, min).
    """
    grid = _tuple_grid(data, indices)
    want = indices.shape[:-1] + data.shape[len(grid) :]
    if updates.shape != want:
        raise InvalidArgument(f"updates have shape {updates.shape}; expected {want} for data {data.shape}, indices {indices.shape}")
    if grid:
        return _updated(data.copy(), grid, updates, reduction)
    places = np.zeros(math.prod(indices.shape[:-1]), np.int64)
    whole: Array = _updated(data[None].copy(), (places,), updates.reshape((-1, *data.shape)), reduction)[0]
    return whole


@kernel("TensorScatter", since=24)
def tensor_scatter(
    _node: Call, past_cache: Array, update: Array, write_indices: Array | None = None, *, axis: int = -2, mode: str = "linear"
) -> Array:
    """Copy the cache and write the update's steps from write_indices[batch] on along `axis`; 'circular' wraps.

    Cache (N, ..., S, ...), update (N, ..., T, ...) with T <= S. ONNX TensorScatter-24.
    """
    at = normalize_axis(axis, past_cache.ndim)
    if at == 0:
        raise InvalidArgument(f"axis={axis} is the batch axis; name the sequence axis")
    if update.ndim != past_cache.ndim or update.shape[:at] + update.shape[at + 1 :] != (
        past_cache.shape[:at] + past_cache.shape[at + 1 :]
    ):
        raise InvalidArgument(f"update {update.shape} and cache {past_cache.shape} differ in more than axis {at}")
    N, S, T = past_cache.shape[0], past_cache.shape[at], update.shape[at]
    starts = np.zeros(N, np.int64) if write_indices is None else write_indices
    if starts.shape != (N,):
        raise InvalidArgument(f"write_indices have shape {starts.shape}; expected ({N},), one for each of the batch")
    if mode not in ("linear", "circular"):
        raise InvalidArgument(f"mode={mode!r}; expected 'linear' or 'circular'")
    if T > S or (N and (starts.min() < 0 or (mode == "linear" and starts.max() + T > S))):
        raise InvalidArgument(f"{T} steps from write_indices={starts.tolist()} do not fit a cache of {S} steps in mode {mode!r}")
    steps = (starts[:, None] + np.arange(T)) % max(S, 1)
    output = past_cache.copy()
    np.moveaxis(output, at, 1)[np.arange(N)[:, None], steps] = np.moveaxis(update, at, 1)
    return output


def _one_hot(indices: Array, depth: Array, values: Array, axis: int, *, wraps: bool) -> Array:
    classes = as_int(depth, "depth")
    at = normalize_axis(axis, indices.ndim + 1)
    if classes < 0 or values.size != 2:
        raise InvalidArgument(f"depth={classes}, values of shape {values.shape}; expected depth >= 0 and [off, on]")
    shape = (*indices.shape[:at], classes, *indices.shape[at:])
    check_output_size(shape, values.itemsize)
    off, on = values.reshape(-1)
    places = indices.astype(np.int64, copy=False)
    if wraps:
        places = np.where((places < 0) & (places >= -classes), places + classes, places)
    rows = np.arange(classes).reshape((-1,) + (1,) * (indices.ndim - at))
    hot = np.expand_dims(places, at) == rows
    output = np.full(shape, off, values.dtype)
    output[hot] = on
    return output


@kernel("OneHot", since=9)
def one_hot_9(_node: Call, indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    """Put values[1] at each index of the new `axis`, values[0] elsewhere; outside [0, depth) all are off. ONNX OneHot-9."""
    return _one_hot(indices, depth, values, axis, wraps=False)


@kernel("OneHot", since=11)
def one_hot(_node: Call, indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    """Put values[1] at each index of the new `axis`, values[0] elsewhere; negative ones count from the end. ONNX OneHot-11."""
    return _one_hot(indices, depth, values, axis, wraps=True)


@kernel("NonZero", since=9)
def non_zero(_node: Call, data: Array) -> Array:
    """List the coordinates of the elements that are not zero: int64 of shape (rank, count), row-major. ONNX NonZero-9, -13."""
    if data.ndim == 0:
        return np.zeros((0, int(data != np.zeros((), data.dtype))), np.int64)
    is_set = data if data.dtype.kind in "biufc" else data != ("" if data.dtype.kind == "O" else np.zeros((), data.dtype))
    return np.array(np.nonzero(is_set), np.int64)


@kernel("Compress", since=9)
def compress(_node: Call, data: Array, condition: Array, *, axis: int | None = None) -> Array:
    """Keep the entries of `axis`, or of the flat tensor, where the condition (at most as long) holds. ONNX Compress-9, -11."""
    at = 0 if axis is None else normalize_axis(axis, data.ndim)
    source = data.reshape(-1) if axis is None else data
    if condition.ndim != 1:
        raise InvalidArgument(f"condition has shape {condition.shape}; expected a 1-D tensor of bool")
    kept = np.flatnonzero(condition[: source.shape[at]])
    return np.take(source, kept, axis=at)
