"""The kinds of quantization, and the grids that numbers are rounded to.

A grid maps x to clip(round(x / scale) + zero_point), rounded half to even, as QuantizeLinear does: with one scale and zero point
for a tensor, or one for each index along an axis.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument

__all__ = [
    "CalibrationMethod",
    "Grid",
    "QuantFormat",
    "QuantType",
    "QuantizationMode",
    "compute_scale_zp",
    "grid_of_range",
    "grid_of_weights",
    "limits_of",
]


class QuantizationMode(enum.Enum):
    """Whether activations are quantized in each run, or by scales found beforehand."""

    IntegerOps = 0
    QLinearOps = 1


class QuantFormat(enum.Enum):
    """How a quantized model is written: with quantized operators, or float operators between Q and DQ."""

    QOperator = 0
    QDQ = 1

    def __str__(self) -> str:
        return self.name


class CalibrationMethod(enum.Enum):
    """How the range of a tensor follows from its values."""

    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class QuantType(enum.Enum):
    """The type of quantized numbers."""

    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def from_string(text: str) -> QuantType:
        """Return the type of a name; raises InvalidArgument for another text."""
        if text not in QuantType.__members__:
            raise InvalidArgument(f"a QuantType is one of {', '.join(QuantType.__members__)}, got {text!r}")
        return QuantType[text]

    @property
    def tensor_type(self) -> int:
        """The number of the element type, as in onnx.TensorProto."""
        return int(_DTYPES[self])

    @property
    def dtype(self) -> DataType:
        """The element type.

        Raises:
            InvalidArgument: it is no type of integers.
        """
        dtype = _DTYPES[self]
        if self is QuantType.QFLOAT8E4M3FN:
            raise InvalidArgument("quantization to float8 is not offered here; choose one of the types of integers")
        return dtype


_DTYPES: Mapping[QuantType, DataType] = {
    QuantType.QInt8: DataType.INT8,
    QuantType.QUInt8: DataType.UINT8,
    QuantType.QFLOAT8E4M3FN: DataType.FLOAT8E4M3FN,
    QuantType.QInt16: DataType.INT16,
    QuantType.QUInt16: DataType.UINT16,
    QuantType.QInt4: DataType.INT4,
    QuantType.QUInt4: DataType.UINT4,
}
_LIMITS: Mapping[DataType, tuple[int, int]] = {
    DataType.INT4: (-8, 7),
    DataType.UINT4: (0, 15),
    DataType.INT8: (-128, 127),
    DataType.UINT8: (0, 255),
    DataType.INT16: (-32768, 32767),
    DataType.UINT16: (0, 65535),
    DataType.INT32: (-(1 << 31), (1 << 31) - 1),
}


def limits_of(dtype: DataType, *, reduced: bool = False, symmetric: bool = False) -> tuple[int, int]:
    """Return the least and the greatest number of a type that a grid is laid out for.

    Args:
        dtype: a type of integers.
        reduced: whether a bit is left unused, so that sums of products fit accumulators of 16 bits.
        symmetric: whether the least is the negative of the greatest, for signed types of 8 bits and more.
    """
    low, high = _LIMITS[dtype]
    if reduced:
        return (low // 2, (high + 1) // 2) if low and high > 7 else (low // 2, high // 2)
    return (-high, high) if symmetric and low and high > 7 else (low, high)


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
        scale, zero = self._along(array, self.scale), self._along(array, self.zero_point.astype(np.int64))
        low, high = _LIMITS[self.dtype]
        codes = np.clip(np.rint(array / scale).astype(np.float64) + zero, low, high)
        return codes.astype(np.int32).astype(self.dtype.numpy)

    def dequantize(self, codes: Array) -> Array:
        """Return the numbers that codes stand for, of the type of `scale`."""
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
    bottom, top = _LIMITS[dtype]
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
    """Return the grid that spans the elements of a constant.

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
    if array.size:
        low, high = array.min(axis=others), array.max(axis=others)
    else:
        low = high = np.zeros(() if axis is None else array.shape[axis], array.dtype)
    grid = grid_of_range(dtype, low, high, symmetric=symmetric, reduced=reduced, least_range=least_range)
    return dataclasses.replace(grid, axis=axis)
