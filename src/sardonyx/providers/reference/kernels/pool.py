"""Reference kernels of pooling over windows: AveragePool, LpPool, MaxPool, and the global ones.

Windows are boxes, so a maximum or a sum over one is taken along one axis after another; padding is never materialised: a tap
that would read it is left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sardonyx.cancellation import check_cancelled, checked
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.pool import Norm, Pool
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.algorithms.window import PlacedWindow, place_window
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_MOST_STEPS = 1 << 20
"""More taps and outputs than this along one axis are refused: pooling takes one step per tap or per output."""


@kernel("MaxPool", view=Pool)
@quiet
def max_pool(
    node: Call,
    x: Array,
    *,
    view: Pool,
) -> Array | tuple[Array, Array]:
    """Compute the maximum of each window of x (N, C, *spatial) and, where used, its index in x flattened. Source: ONNX MaxPool-22.

    Of equal maxima the first in row-major order counts. With storage_order 1 an index counts the spatial axes column-major.
    """
    window = _pool_window(x, view)
    if len(node.present) > 1 and node.present[1]:
        return _max_with_indices(x, window, view.counts_by_column)
    return _slide(x, window, np.maximum, _lowest(x.dtype))


@kernel("AveragePool", view=Pool)
@quiet
def average_pool(
    node: Call,
    x: Array,
    *,
    view: Pool,
) -> Array:
    """Compute the mean of each window of x (N, C, *spatial); half types are summed in float32. Source: ONNX AveragePool-22.

    A window counts its elements inside x or, with count_include_pad, inside the declared padding.
    """
    window = _pool_window(x, view)
    counts = np.ones((), np.int64)
    for axis, size in enumerate(x.shape[2:]):
        counts = counts[..., None] * _count_taps(size, window, axis, include_padding=view.counts_padding)
    total = _slide(widen(x), window, np.add, 0)
    mean: Array = total / counts.astype(total.dtype)
    return mean.astype(x.dtype, copy=False)


@kernel("LpPool", view=Pool)
@quiet
def lp_pool(
    node: Call,
    x: Array,
    *,
    view: Pool,
) -> Array:
    """Compute the p-norm of each window of x (N, C, *spatial); half types in float32. Source: ONNX LpPool-22."""
    window = _pool_window(x, view)
    return _root(_slide(_powers(widen(x), view.order), window, np.add, 0), view.order).astype(x.dtype, copy=False)


@kernel("GlobalAveragePool")
@quiet
def global_average_pool(node: Call, x: Array) -> Array:
    """Compute the mean of x (N, C, *spatial) over the spatial axes, as (N, C, 1, ...). Source: ONNX GlobalAveragePool-22."""
    mean: Array = widen(x).mean(axis=_spatial_axes(x), keepdims=True)
    return mean.astype(x.dtype, copy=False)


@kernel("GlobalMaxPool")
def global_max_pool(node: Call, x: Array) -> Array:
    """Compute the maximum of x (N, C, *spatial) over the spatial axes, as (N, C, 1, ...). Source: ONNX GlobalMaxPool-22."""
    y: Array = np.max(x, axis=_spatial_axes(x), keepdims=True, initial=_lowest(x.dtype))
    return y


@kernel("GlobalLpPool", view=Norm)
@quiet
def global_lp_pool(node: Call, x: Array, *, view: Norm) -> Array:
    """Compute the p-norm of x (N, C, *spatial) over the spatial axes, as (N, C, 1, ...). Source: ONNX GlobalLpPool-22."""
    p = view.order
    powers = _powers(widen(x), p)
    return _root(powers.sum(axis=_spatial_axes(x), keepdims=True), p).astype(x.dtype, copy=False)


def _spatial_axes(x: Array) -> tuple[int, ...]:
    if x.ndim < 2:
        raise InvalidArgument(f"X has shape {x.shape}, expected (N, C, *spatial)")
    return tuple(range(2, x.ndim))


def _pool_window(x: Array, view: Pool) -> PlacedWindow:
    if x.ndim < 3:
        raise InvalidArgument(f"X has shape {x.shape}, expected (N, C, *spatial) of rank 3 or more")
    window = place_window(x.shape[2:], view.window)
    check_output_size((*x.shape[:2], *window.output), x.dtype.itemsize)
    return window


def _lowest(dtype: np.dtype[Any]) -> float | int:
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else -np.inf


def _slide(x: Array, window: PlacedWindow, combine: np.ufunc, neutral: float | int) -> Array:
    """Combine the elements of each window of x (N, C, *spatial) into (N, C, *output); `neutral` where there are none."""
    for axis in range(len(window.kernel)):
        if window.kernel[axis] > 1 or window.strides[axis] > 1 or window.output[axis] != x.shape[axis + 2]:
            x = _slide_axis(x, axis, window, combine, neutral)
    return x


def _slide_axis(x: Array, axis: int, window: PlacedWindow, combine: np.ufunc, neutral: float | int) -> Array:
    output = window.output[axis]
    if output == 0:
        return np.empty((*x.shape[: axis + 2], 0, *x.shape[axis + 3 :]), x.dtype)
    if min(output, window.kernel[axis]) > _MOST_STEPS:
        raise InvalidArgument(
            f"kernel_shape = {list(window.kernel)} over an output of {list(window.output)}; one of the two may be at most 2^20"
        )
    before = (slice(None),) * (axis + 2)
    if output < window.kernel[axis]:
        return _reduce_windows(x, axis, window, combine, neutral)
    taps = [_tap_slices(x.shape[axis + 2], window, axis, tap) for tap in range(window.kernel[axis])]
    taps.sort(key=lambda tap: tap[0] != slice(0, output))
    inside, source = taps[0]
    if inside == slice(0, output):
        y = x[(*before, source)].copy()
        taps = taps[1:]
    else:
        y = np.full((*x.shape[: axis + 2], output, *x.shape[axis + 3 :]), neutral, x.dtype)
    for inside, source in taps:
        check_cancelled()
        target = y[(*before, inside)]
        combine(target, x[(*before, source)], out=target)
    return y


def _reduce_windows(x: Array, axis: int, window: PlacedWindow, combine: np.ufunc, neutral: float | int) -> Array:
    """Combine window by window along an axis that has fewer of them than taps."""
    size, dilation = x.shape[axis + 2], window.dilations[axis]
    parts = []
    for output in checked(range(window.output[axis])):
        start = output * window.strides[axis] - window.begins[axis]
        stop = start + (window.kernel[axis] - 1) * dilation + 1
        first = start if start >= 0 else start % dilation
        elements = x[(*(slice(None),) * (axis + 2), slice(first, max(first, min(stop, size)), dilation))]
        parts.append(combine.reduce(elements, axis=axis + 2, keepdims=True, initial=neutral, dtype=x.dtype))
    return np.concatenate(parts, axis=axis + 2)


def _tap_slices(size: int, window: PlacedWindow, axis: int, tap: int) -> tuple[slice, slice]:
    """Return the outputs whose `tap` reads an element of an axis of `size`, and those elements."""
    stride, offset = window.strides[axis], tap * window.dilations[axis] - window.begins[axis]
    first = max(0, -(offset // stride))
    last = min(window.output[axis] - 1, (size - 1 - offset) // stride)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(first * stride + offset, last * stride + offset + 1, stride)


def _count_taps(size: int, window: PlacedWindow, axis: int, *, include_padding: bool) -> Array:
    """Count for each output of `axis` how many taps read x or, with include_padding, x or its declared padding."""
    begin, taps, dilation = window.begins[axis], window.kernel[axis], window.dilations[axis]
    starts = np.arange(window.output[axis]) * window.strides[axis] - begin
    low, high = (-begin, size + window.ends[axis]) if include_padding else (0, size)
    before, until = (np.clip(-((starts - bound) // dilation), 0, taps) for bound in (low, high))
    return np.asarray(until - before)


def _max_with_indices(x: Array, window: PlacedWindow, counts_by_column: bool) -> tuple[Array, Array]:
    spatial = x.shape[2:]
    numbers = np.arange(math.prod(spatial), dtype=np.int64)
    numbers = numbers.reshape(spatial[::-1]).T if counts_by_column else numbers.reshape(spatial)
    best = np.full((*x.shape[:2], *window.output), _lowest(x.dtype), x.dtype)
    index = np.zeros(best.shape, np.int64)
    found = np.zeros(window.output, np.bool_)
    for taps in np.ndindex(*window.kernel):
        check_cancelled()
        pairs = [_tap_slices(size, window, axis, tap) for axis, (size, tap) in enumerate(zip(spatial, taps, strict=True))]
        inside, source = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        whole = (slice(None), slice(None))
        candidate, target = x[whole + source], best[whole + inside]
        better = (candidate > target) | ~found[inside] | (np.isnan(candidate) & ~np.isnan(target))
        np.copyto(target, candidate, where=better)
        np.copyto(index[whole + inside], numbers[source], where=better)
        found[inside] = True
    planes = np.arange(x.shape[0] * x.shape[1], dtype=np.int64) * numbers.size
    index += planes.reshape(*x.shape[:2], *(1,) * len(spatial))
    return best, index


def _powers(x: Array, p: float) -> Array:
    if p == 2:
        return x * x
    magnitudes = np.abs(x)
    if p != 1:
        np.power(magnitudes, x.dtype.type(p), out=magnitudes)
    return magnitudes


def _root(total: Array, p: float) -> Array:
    if p == 2:
        np.sqrt(total, out=total)
    elif p != 1:
        np.power(total, total.dtype.type(1 / p), out=total)
    return total
