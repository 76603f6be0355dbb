"""Reference kernels of resampling on a grid of its own: Resize, Upsample."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array, DataType, is_float, is_integer
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.resize import Resize
from sardonyx.providers.reference.algorithms.dimensions import as_ints, check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.algorithms.requantize import integer_limits
from sardonyx.providers.reference.algorithms.resize_taps import (
    AxisResize,
    AxisTaps,
    blend_taps,
    nearest_index,
    original_coordinates,
)
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_LARGEST_TAPS = 1 << 16
"""Antialiasing reads no more elements than this for one output element along one axis."""


@kernel("Upsample", view=Resize)
@kernel("Upsample", since=7, view=Resize)
@kernel("Upsample", since=9, view=Resize)
@kernel("Resize", since=10, view=Resize)
def resize_10(node: Call, x: Array, scales: Array | None = None, *, view: Resize) -> Array:
    """Resize x by one scale per axis; element i of the output lies at i / scale. Source: ONNX Resize-10, Upsample-1 to -9.

    "nearest" takes the element below or, on an axis that shrinks, above. What the standard leaves open is as in ONNX Runtime.
    """
    factors = np.asarray(view.scales, np.float32) if isinstance(view.scales, tuple) else scales
    plan = _plan(x, view, None, factors, None)
    check_output_size([axis.output for axis in plan], x.dtype.itemsize)
    coordinates = [original_coordinates(axis, view.coordinates) for axis in plan]
    if view.mode == "nearest":
        rounding = ["ceil" if axis.scale < 1 else "floor" for axis in plan]
        return _take(x, [nearest_index(at, axis.size, how) for at, axis, how in zip(coordinates, plan, rounding, strict=True)])
    if view.mode != "linear":
        raise InvalidArgument(f"mode = {view.mode!r}, expected nearest or linear")
    return _blend(x, view, plan, coordinates)


@kernel("Resize", since=11, view=Resize)
@quiet
def resize(
    node: Call,
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    view: Resize,
) -> Array:
    """Resample x (any rank) along `axes`, all by default, by `scales` or to `sizes`. Source: ONNX Resize-19.

    "nearest" takes any type; "linear" and "cubic" blend numbers in float32 or the wider type of x, and truncate to integers.
    """
    plan = _plan(x, view, roi, scales, sizes)
    check_output_size([axis.output for axis in plan], x.dtype.itemsize)
    coordinates = [original_coordinates(axis, view.coordinates) for axis in plan]
    if view.mode == "nearest":
        y = _take(x, [nearest_index(at, axis.size, view.rounding) for at, axis in zip(coordinates, plan, strict=True)])
    else:
        y = _blend(x, view, plan, coordinates)
    return _extrapolated(y, plan, coordinates, view.extrapolation) if view.crops else y


def _plan(x: Array, view: Resize, roi: Array | None, scales: Array | None, sizes: Array | None) -> list[AxisResize]:
    """Return how each axis of x is resized."""
    named = view.places(x.ndim)
    region = _region(roi, len(named)) if view.crops else [(0.0, 1.0)] * len(named)
    by_sizes = sizes is not None and sizes.size > 0
    by_scales = scales is not None and scales.size > 0
    if by_sizes == by_scales:
        raise InvalidArgument(f"{'both' if by_sizes else 'neither'} of scales and sizes given, expected one of them")
    plan = [AxisResize(size, size, 1.0) for size in x.shape]
    if sizes is not None and by_sizes:
        factors = _resize_to(x, named, as_ints(sizes, "sizes"), view.policy)
    else:
        assert scales is not None, "one of scales and sizes is there"
        factors = _resize_by(x, named, scales)
    for axis, (output, scale), (start, end) in zip(named, factors, region, strict=True):
        if output and not x.shape[axis]:
            raise InvalidArgument(f"axis {axis} of X, of shape {x.shape}, is empty and cannot grow to {output} elements")
        plan[axis] = AxisResize(x.shape[axis], output, scale, start, end)
    return plan


def _region(roi: Array | None, rank: int) -> list[tuple[float, float]]:
    if roi is None or roi.shape != (2 * rank,):
        found = "missing" if roi is None else f"of shape {roi.shape}"
        raise InvalidArgument(f"roi is {found}; tf_crop_and_resize expects ({2 * rank},): starts, then ends, of {rank} axes")
    values = roi.astype(np.float64).tolist()
    return list(zip(values[:rank], values[rank:], strict=True))


def _resize_by(x: Array, axes: Sequence[int], scales: Array) -> list[tuple[int, float]]:
    """Return lengths floor(size * scale) in float32: a region of interest does not change them, in shape inference as here."""
    if scales.shape != (len(axes),) or not bool(np.all((scales > 0) & (scales < 2**31))):
        raise InvalidArgument(f"scales = {scales.tolist()}, expected {len(axes)} positive numbers, one per resized axis")
    return [
        (int(np.floor(np.float32(x.shape[axis]) * scale)), float(scale))
        for axis, scale in zip(axes, scales.astype(np.float32), strict=True)
    ]


def _resize_to(x: Array, axes: Sequence[int], sizes: Sequence[int], policy: str) -> list[tuple[int, float]]:
    if len(sizes) != len(axes) or any(size < 0 for size in sizes):
        raise InvalidArgument(f"sizes = {list(sizes)}, expected {len(axes)} lengths, one per resized axis")
    lengths = [max(1, x.shape[axis]) for axis in axes]
    ratios = [size / length for size, length in zip(sizes, lengths, strict=True)]
    if policy == "stretch":
        return list(zip(sizes, ratios, strict=True))
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [(int(np.floor(ratio * x.shape[axis] + 0.5)), ratio) for axis in axes]


def _take(x: Array, indices: Sequence[Array]) -> Array:
    for axis in sorted(range(x.ndim), key=lambda axis: len(indices[axis]) - x.shape[axis]):
        if not np.array_equal(indices[axis], np.arange(x.shape[axis])):
            x = np.take(x, indices[axis], axis=axis)
    return x


@quiet
def _blend(x: Array, view: Resize, plan: Sequence[AxisResize], coordinates: Sequence[Array]) -> Array:
    mode, antialias = view.mode, view.antialiases
    kind = DataType.from_numpy(x.dtype)
    if not is_float(kind) and not is_integer(kind):
        raise InvalidArgument(f"mode {mode} blends numbers, X is of type {kind}; use mode nearest")
    y = widen(x) if is_float(kind) else x.astype(np.float32 if x.dtype.itemsize < 4 else np.float64)
    for number in sorted(range(x.ndim), key=lambda number: plan[number].output - plan[number].size):
        axis, at = plan[number], coordinates[number]
        if axis.output == axis.size and np.array_equal(at, np.arange(axis.size)):
            continue
        if antialias and axis.scale * _LARGEST_TAPS < 1:
            raise InvalidArgument(f"scale {axis.scale} of axis {number} is too small to antialias, expected 2^-16 or more")
        taps = blend_taps(
            at,
            axis,
            mode,
            cubic_coeff_a=view.cubic_coefficient,
            antialias=antialias,
            exclude_outside=view.excludes_outside,
        )
        y = _blend_axis(y, number, taps)
    if is_float(kind):
        return y.astype(x.dtype, copy=False)
    low, high = integer_limits(x.dtype)
    return np.asarray(np.clip(np.rint(y) if antialias else y, low, high)).astype(x.dtype)


def _blend_axis(x: Array, axis: int, taps: AxisTaps) -> Array:
    """Return the weighted sum of the taps along `axis`, in blocks of leading axes that stay in cache."""
    output, inner = taps.index.shape[1], math.prod(x.shape[axis + 1 :])
    source = x.reshape(math.prod(x.shape[:axis]), x.shape[axis], inner)
    y = np.empty((len(source), output, inner), x.dtype)
    weights = taps.weight.astype(x.dtype, copy=False)[:, :, None]
    step = max(1, _BLOCK_ELEMENTS // max(1, output * inner))
    for start in range(0, len(source), step):
        check_cancelled()
        block, target = source[start : start + step], y[start : start + step]
        np.multiply(np.take(block, taps.index[0], axis=1), weights[0], out=target)
        for index, weight in zip(taps.index[1:], weights[1:], strict=True):
            if weight.any():
                term = np.take(block, index, axis=1)
                term *= weight
                target += term
    return y.reshape(*x.shape[:axis], output, *x.shape[axis + 1 :])


_BLOCK_ELEMENTS = 65_536
"""Elements of the output that are made at a time."""


def _extrapolated(y: Array, plan: Sequence[AxisResize], coordinates: Sequence[Array], value: float) -> Array:
    """Put `value` wherever a coordinate lies outside the input."""
    outside = np.zeros((), np.bool_)
    for axis, at in zip(plan, coordinates, strict=True):
        outside = outside[..., None] | (at < 0) | (at > axis.size - 1)
    return np.where(outside, np.asarray(value).astype(y.dtype), y)
