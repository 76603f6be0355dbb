"""Where and how Resize samples one axis: coordinates in the input, and the elements and weights around them.

Coordinates are float32, as exporters and other engines compute them: 16 / 3.2 has to be 5, so that flooring finds element 5.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["AxisResize", "AxisTaps", "blend_taps", "nearest_index", "original_coordinates"]


@dataclasses.dataclass(frozen=True, slots=True)
class AxisResize:
    """How one axis is resized."""

    size: int
    """Length of the input."""
    output: int
    """Length of the output."""
    scale: float
    """Output elements per input element; output / size but for rounding."""
    start: float = 0.0
    """Where the region of interest starts, 0 to 1; read by tf_crop_and_resize only."""
    end: float = 1.0
    """Where it ends."""


@dataclasses.dataclass(frozen=True, slots=True)
class AxisTaps:
    """For every output of an axis the input elements that it blends."""

    index: Array
    """Element numbers (taps, output), inside the axis."""
    weight: Array
    """Their float32 weights (taps, output)."""


def _half_pixel(x: Array, axis: AxisResize) -> Array:
    return (x + np.float32(0.5)) / np.float32(axis.scale) - np.float32(0.5)


def _half_pixel_symmetric(x: Array, axis: AxisResize) -> Array:
    adjustment = np.float32(axis.output) / (np.float32(axis.scale) * np.float32(axis.size))
    offset = np.float32(axis.size / 2) * (np.float32(1) - adjustment)
    return offset + (x + np.float32(0.5)) / np.float32(axis.scale) - np.float32(0.5)


def _pytorch_half_pixel(x: Array, axis: AxisResize) -> Array:
    return _half_pixel(x, axis) if axis.output > 1 else np.zeros_like(x)


def _align_corners(x: Array, axis: AxisResize) -> Array:
    """Map as the cases that come with the standard do: a fractional scale * size counts as the output's length."""
    if axis.output <= 1:
        return np.zeros_like(x)
    if axis.scale == 1.0:
        return x
    return x * np.float32(axis.size - 1) / np.float32(axis.scale * axis.size - 1)


def _asymmetric(x: Array, axis: AxisResize) -> Array:
    return x / np.float32(axis.scale)


def _tf_half_pixel_for_nn(x: Array, axis: AxisResize) -> Array:
    return (x + np.float32(0.5)) / np.float32(axis.scale)


def _tf_crop_and_resize(x: Array, axis: AxisResize) -> Array:
    last = np.float32(axis.size - 1)
    if axis.output <= 1:
        return np.full_like(x, np.float32(0.5 * (axis.start + axis.end)) * last)
    return np.float32(axis.start) * last + x * np.float32(axis.end - axis.start) * last / np.float32(axis.output - 1)


_TRANSFORMATIONS: dict[str, Callable[[Array, AxisResize], Array]] = {
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_crop_and_resize": _tf_crop_and_resize,
    "tf_half_pixel_for_nn": _tf_half_pixel_for_nn,
}
"""coordinate_transformation_mode -> coordinates in the input of output elements (ONNX Resize-19; the last of Resize-11)."""


def original_coordinates(axis: AxisResize, mode: str) -> Array:
    """Return the float32 coordinate in the input of each element of the output; raises InvalidArgument for an unknown mode."""
    transform = _TRANSFORMATIONS.get(mode)
    if transform is None:
        raise InvalidArgument(f"coordinate_transformation_mode = {mode!r}, expected one of {sorted(_TRANSFORMATIONS)}")
    return transform(np.arange(axis.output, dtype=np.float32), axis)


_ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_prefer_ceil": lambda x: np.asarray(np.floor(x + np.float32(0.5))),
    "round_prefer_floor": lambda x: np.asarray(np.ceil(x - np.float32(0.5))),
}


def nearest_index(coordinates: Array, size: int, mode: str) -> Array:
    """Return the element nearest to each coordinate on an axis of `size`, as nearest_mode rounds (ONNX Resize-19)."""
    rounding = _ROUNDINGS.get(mode)
    if rounding is None:
        raise InvalidArgument(f"nearest_mode = {mode!r}, expected one of {sorted(_ROUNDINGS)}")
    return np.clip(rounding(coordinates), 0, size - 1).astype(np.intp)


def _triangle(distance: Array, a: float) -> Array:
    return np.asarray(np.maximum(0, 1 - np.abs(distance)))


def _cubic(distance: Array, a: float) -> Array:
    """Return the cubic convolution kernel of R. Keys (1981), equation 4, with coefficient a."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return np.asarray(np.where(d <= 1, near, np.where(d < 2, far, 0)))


_FILTERS: dict[str, tuple[int, Callable[[Array, float], Array]]] = {"cubic": (2, _cubic), "linear": (1, _triangle)}
"""mode -> how far the filter reaches, in elements, and the filter."""


def blend_taps(
    coordinates: Array, axis: AxisResize, mode: str, *, cubic_coeff_a: float, antialias: bool, exclude_outside: bool
) -> AxisTaps:
    """Return the elements that "linear" or "cubic" blends for each coordinate, and their weights (ONNX Resize-19).

    An element beyond the end of the axis reads the last one there is or, with exclude_outside, weighs nothing. Antialiasing
    stretches the filter by 1 / scale where that is more than 1.
    """
    reach, weigh = _FILTERS[mode]
    shrink = min(1.0, axis.scale) if antialias else 1.0
    side = math.ceil(reach / shrink)
    below = np.floor(coordinates)
    fraction = (coordinates - below).astype(np.float64)
    steps = np.arange(1 - side, side + 1)[:, None]
    weight = weigh((steps - fraction) * shrink, cubic_coeff_a)
    index = below.astype(np.int64) + steps
    if exclude_outside:
        weight = np.where((index >= 0) & (index < axis.size), weight, 0)
    if antialias or exclude_outside:
        weight = weight / weight.sum(axis=0)
    return AxisTaps(np.clip(index, 0, axis.size - 1), weight.astype(np.float32))
