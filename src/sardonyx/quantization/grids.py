"""The grids that numbers are rounded to.

A grid maps x to clip(round(x / scale) + zero_point), rounded half to even, as QuantizeLinear does: with one scale and zero point
for a tensor, or one for each index along an axis. Codes of float8 are the nearest such numbers to x / scale, ties to even, and the
greatest for what is beyond; they have no zero point.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.quantization.kinds import LIMITS, limits_of

__all__ = ["Grid", "compute_scale_zp", "compute_scale_zp_float8", "grid_of_range", "grid_of_spread", "grid_of_weights"]


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """Where numbers of a tensor are rounded to."""

    dtype: DataType
    """The type of the quantized numbers."""
    scale: Array
    """float32 or float16, of shape () or (size of the axis,); above 0."""
    zero_point: Array
    """Of `dtype`, shaped as `scale`."""
    axis: int | None = None
    """The axis that scales go along; None for one of the whole tensor."""

    def quantize(self, array: Array) -> Array:
        """Return the quantized numbers of an array, of `dtype` in its shape."""
        if self.dtype not in LIMITS:
            return _to_float8(array, self._along(array, self.scale), self.dtype)
        scale, zero = self._along(array, self.scale), self._along(array, self.zero_point.astype(np.int64))
        low, high = LIMITS[self.dtype]
        codes = np.clip(np.rint(array / scale).astype(np.float64) + zero, low, high)
        return codes.astype(np.int32).astype(self.dtype.numpy)

    def dequantize(self, codes: Array) -> Array:
        """Return the numbers that codes stand for, of the type of `scale`."""
        if self.dtype not in LIMITS:
            product: Array = codes.astype(self.scale.dtype) * self._along(codes, self.scale)
            return product
        scale, zero = self._along(codes, self.scale), self._along(codes, self.zero_point.astype(np.int64))
        result: Array = ((codes.astype(np.int64) - zero) * scale).astype(self.scale.dtype)
        return result

    def _along(self, array: Array, numbers: Array) -> Array:
        if self.axis is None:
            return numbers
        shape = [1] * array.ndim
        shape[self.axis] = numbers.size
        return numbers.reshape(shape)


def compute_scale_zp(
    rmin: object, rmax: object, qmin: object, qmax: object, symmetric: bool = False, min_real_range: float | None = None
) -> list[Array]:
    """Return [zero point, scale] of a grid whose codes qmin to qmax cover rmin to rmax, and 0.

    Args:
        rmin: the least number, or one for each index along an axis.
        rmax: the greatest.
        qmin: the least code, at most 0.
        qmax: the greatest code, at least 0.
        symmetric: whether the range is widened so that 0 is in the middle.
        min_real_range: the range is at least as wide as this.

    Raises:
        ValueError: a bound is NaN or infinite, or qmin and qmax do not enclose 0.
    """
    low, high = np.minimum(np.asarray(rmin), 0), np.maximum(np.asarray(rmax), 0)
    least, most = int(np.asarray(qmin)), int(np.asarray(qmax))
    if least > 0 or most < 0:
        raise ValueError(f"codes from {least} to {most} do not enclose 0")
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError(f"the range {low} to {high} is not finite: the calibration data, or a weight, holds NaN or infinities")
    if min_real_range is not None:
        high = np.maximum(high, low + min_real_range)
    if symmetric:
        high = np.maximum(high, -low)
        low = -high
    kind = high.dtype if high.dtype.kind == "f" else np.dtype(np.float32)
    scale = (high.astype(np.float64) - low.astype(np.float64)) / (most - least)
    if kind == np.float16:
        is_flat = scale.astype(kind) == 0
    else:
        is_flat = scale < np.finfo(kind).tiny
    scale = np.where(is_flat, 1.0, scale)
    zero = np.full(scale.shape, np.rint((least + most) / 2.0)) if symmetric else np.rint(least - low / scale)
    return [np.where(is_flat, 0, zero).astype(np.int64), scale.astype(kind)]


def grid_of_range(
    dtype: DataType, low: object, high: object, *, symmetric: bool = False, reduced: bool = False, least_range: float | None = None
) -> Grid:
    """Return the grid of a tensor whose values lie from `low` to `high`; raises ValueError where these are not finite."""
    kind = np.asarray(high).dtype
    kind = kind if kind == np.float16 else np.dtype(np.float32)
    zero, scale = compute_scale_zp(
        np.asarray(low, kind),
        np.asarray(high, kind),
        *limits_of(dtype, reduced=reduced, symmetric=symmetric),
        symmetric,
        least_range,
    )
    bottom, top = LIMITS[dtype]
    return Grid(dtype, scale.astype(kind), np.clip(zero, bottom, top).astype(np.int32).astype(dtype.numpy))


def grid_of_weights(
    array: Array,
    dtype: DataType,
    *,
    axis: int | None = None,
    symmetric: bool = True,
    reduced: bool = False,
    least_range: float | None = None,
) -> Grid:
    """Return the grid that spans the elements of a constant; of float8 the one that their standard deviation says.

    Args:
        array: its elements, floats.
        dtype: the type of the quantized numbers.
        axis: the axis that each has a scale of its own along; None for one scale.
        symmetric: whether the zero point is 0, for signed types, or the middle.
        reduced: whether a bit is left unused.
        least_range: the range is at least as wide as this.

    Raises:
        ValueError: an element is NaN or infinite.
    """
    if axis is not None:
        axis %= max(array.ndim, 1)
    others = None if axis is None else tuple(place for place in range(array.ndim) if place != axis)
    if dtype not in LIMITS:
        spread = np.std(array.astype(np.float64), axis=others) if array.size else np.zeros(())
        return dataclasses.replace(grid_of_spread(spread.astype(array.dtype)), axis=axis)
    if array.size:
        low, high = array.min(axis=others), array.max(axis=others)
    else:
        low = high = np.zeros(() if axis is None else array.shape[axis], array.dtype)
    grid = grid_of_range(dtype, low, high, symmetric=symmetric, reduced=reduced, least_range=least_range)
    return dataclasses.replace(grid, axis=axis)


def _to_float8(array: Array, scale: Array, dtype: DataType) -> Array:
    """Return array / scale in a type of float8: rounded to nearest, ties to even, and the greatest number for what is beyond."""
    most = float(_finite(dtype).max())
    codes: Array = np.clip(array / scale, -most, most).astype(dtype.numpy)
    return codes


def _finite(dtype: DataType) -> Array:
    """Return all finite numbers of a type of float8, as float32."""
    numbers = np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32)
    return numbers[np.isfinite(numbers)]


def compute_scale_zp_float8(element_type: int, std: object) -> list[Array]:
    """Return [zero point, scale] by which numbers are spread as those of float8 are: the scale is the ratio of the deviations.

    Args:
        element_type: the number of FLOAT8E4M3FN in onnx.TensorProto.
        std: the standard deviation of the numbers; 0 of numbers that are all equal, whose scale is 1.

    Raises:
        InvalidArgument: it is another type.
        ValueError: the deviation is NaN or infinite.
    """
    if element_type != int(DataType.FLOAT8E4M3FN):
        raise InvalidArgument(f"codes that are floats are of FLOAT8E4M3FN, {int(DataType.FLOAT8E4M3FN)}, got {element_type!r}")
    given = np.asarray(std)
    if not np.isfinite(given).all():
        raise ValueError(f"the standard deviation {std} is not finite: the calibration data, or a weight, holds NaN or infinities")
    kind = given.dtype if given.dtype.kind == "f" else np.dtype(np.float32)
    scale = (given / np.std(_finite(DataType.FLOAT8E4M3FN))).astype(kind)
    return [np.zeros((), DataType.FLOAT8E4M3FN.numpy), np.where(scale > 0, scale, 1).astype(kind)]


def grid_of_spread(std: object) -> Grid:
    """Return the grid of float8 for numbers of a standard deviation; raises ValueError where that is not finite."""
    zero, scale = compute_scale_zp_float8(int(DataType.FLOAT8E4M3FN), std)
    scale = scale if scale.dtype == np.float16 else scale.astype(np.float32)
    return Grid(DataType.FLOAT8E4M3FN, scale, np.broadcast_to(zero, scale.shape).copy())
