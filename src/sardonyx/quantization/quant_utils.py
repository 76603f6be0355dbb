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
from sardonyx.quantization.onnx_helpers import (
    add_infer_metadata,
    add_pre_process_metadata,
    attribute_to_kwarg,
    find_by_name,
    generate_identified_filename,
    get_elem_index,
    get_mul_node,
    get_opset_version,
    load_model_with_shape_infer,
    model_has_external_data,
    model_has_infer_metadata,
    model_has_pre_process_metadata,
    save_and_reload_model_with_shape_infer,
    tensor_proto_to_array,
)

__all__ = [
    "DEQUANT_OP_NAME",
    "DEQUANT_OUTPUT_SUFFIX",
    "QUANT_INPUT_SUFFIX",
    "QUANT_OP_NAME",
    "TENSOR_NAME_QUANT_SUFFIX",
    "CalibrationMethod",
    "Grid",
    "QuantFormat",
    "QuantType",
    "QuantizationMode",
    "add_infer_metadata",
    "add_pre_process_metadata",
    "attribute_to_kwarg",
    "compute_data_quant_params",
    "compute_scale_zp",
    "find_by_name",
    "generate_identified_filename",
    "get_elem_index",
    "get_mul_node",
    "get_opset_version",
    "get_qmin_qmax_for_qType",
    "get_qrange_for_qType",
    "grid_of_range",
    "grid_of_weights",
    "limits_of",
    "load_model_with_shape_infer",
    "model_has_external_data",
    "model_has_infer_metadata",
    "model_has_pre_process_metadata",
    "ms_domain",
    "normalize_axis",
    "onnx_domain",
    "pack_bytes_to_4bit",
    "quantize_data",
    "quantize_nparray",
    "save_and_reload_model_with_shape_infer",
    "tensor_proto_to_array",
]

ms_domain, onnx_domain = "com.microsoft", "ai.onnx"
QUANT_OP_NAME, DEQUANT_OP_NAME = "QuantizeLinear", "DequantizeLinear"
QUANT_INPUT_SUFFIX, DEQUANT_OUTPUT_SUFFIX = "_QuantizeLinear_Input", "_DequantizeLinear_Output"
TENSOR_NAME_QUANT_SUFFIX = "_quantized"
"""The names that onnxruntime's tools give."""


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


def get_qmin_qmax_for_qType(  # noqa: N802  onnxruntime's name
    qType: int,
    reduce_range: bool = False,
    symmetric: bool = False,
) -> tuple[Array, Array]:
    """Return the least and the greatest code of a type, as scalars of it.

    Args:
        qType: a number of onnx.TensorProto.DataType.
        reduce_range: as `reduced` of `limits_of`.
        symmetric: see there.

    Raises:
        InvalidArgument: it is no type of integers of up to 32 bits.
    """
    dtype = _integers(qType)
    low, high = limits_of(dtype, reduced=reduce_range, symmetric=symmetric)
    return np.asarray(low, np.int64).astype(dtype.numpy), np.asarray(high, np.int64).astype(dtype.numpy)


def get_qrange_for_qType(  # noqa: N802  onnxruntime's name
    qType: int,
    reduce_range: bool = False,
    symmetric: bool = False,
) -> int:
    """Return how far the codes of a type reach; arguments and errors are those of `get_qmin_qmax_for_qType`."""
    low, high = limits_of(_integers(qType), reduced=reduce_range, symmetric=symmetric)
    return high - low


def _integers(number: int) -> DataType:
    found = next((dtype for dtype in _LIMITS if int(dtype) == number), None)
    if found is None:
        raise InvalidArgument(f"expected the number of a type of integers that codes may have, got {number!r}")
    return found


def normalize_axis(axis: int, rank: int) -> tuple[bool, int]:
    """Return whether a tensor of a rank has an axis, and its number from the front."""
    found = axis + rank if axis < 0 else axis
    return 0 <= found < rank, found


def pack_bytes_to_4bit(src_8bit: bytes) -> bytearray:
    """Return numbers of 4 bits, one in each byte, two in each: the first in the low half."""
    codes = np.frombuffer(src_8bit, np.uint8) & 0x0F
    codes = np.pad(codes, (0, codes.size % 2))
    return bytearray((codes[::2] | codes[1::2] << 4).tobytes())


def compute_data_quant_params(
    data: Array,
    quant_type: int,
    symmetric: bool,
    reduce_range: bool = False,
    min_real_range: float | None = None,
    rmin_override: float | None = None,
    rmax_override: float | None = None,
) -> tuple[Array, Array]:
    """Return the zero point and the scale for the elements of an array.

    Args:
        data: floats.
        quant_type: a number of onnx.TensorProto.DataType, of integers.
        symmetric: whether 0 is in the middle of the range.
        reduce_range: whether a bit is left unused.
        min_real_range: the range is at least as wide as this.
        rmin_override: takes the place of the least element.
        rmax_override: takes the place of the greatest.

    Raises:
        InvalidArgument: the type is none of integers.
        ValueError: an element is NaN or infinite.
    """
    array = np.asarray(data)
    low = (array.min() if array.size else 0.0) if rmin_override is None else rmin_override
    high = (array.max() if array.size else 0.0) if rmax_override is None else rmax_override
    kind = array.dtype if array.dtype.kind == "f" else np.dtype(np.float32)
    ends = kind.type(low), kind.type(high)
    grid = grid_of_range(_integers(quant_type), *ends, symmetric=symmetric, reduced=reduce_range, least_range=min_real_range)
    return grid.zero_point, grid.scale


def quantize_data(
    data: Array,
    qType: int,
    symmetric: bool,
    reduce_range: bool = False,
    min_real_range: float | None = None,
    rmin_override: float | None = None,
    rmax_override: float | None = None,
) -> tuple[Array, Array, Array]:
    """Return the zero point, the scale and the codes of an array; arguments and errors are those of `compute_data_quant_params`."""
    zero, scale = compute_data_quant_params(data, qType, symmetric, reduce_range, min_real_range, rmin_override, rmax_override)
    return zero, scale, quantize_nparray(qType, np.asarray(data), scale, zero)


def quantize_nparray(
    qType: int,
    arr: Array,
    scale: object,
    zero_point: object,
    low: object = None,
    high: object = None,
) -> Array:
    """Return the codes of an array: round(x / scale) + zero_point, cut off at the ends of the type.

    Args:
        qType: a number of onnx.TensorProto.DataType, of integers.
        arr: floats.
        scale: floats that broadcast with the array.
        zero_point: integers that do.
        low: the least code, where that is more than the type's.
        high: the greatest, where that is less.

    Raises:
        InvalidArgument: the type is none of integers.
    """
    dtype = _integers(qType)
    least, most = limits_of(dtype)
    least = least if low is None else max(least, int(np.asarray(low)))
    most = most if high is None else min(most, int(np.asarray(high)))
    steps = np.rint(np.asarray(arr, np.float32) / np.asarray(scale, np.float32)) + np.asarray(zero_point).astype(np.float64)
    codes: Array = np.clip(steps, least, most).astype(np.int64).astype(dtype.numpy)
    return codes
