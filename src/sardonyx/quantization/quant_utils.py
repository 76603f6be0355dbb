"""The kinds of quantization, and the functions of onnxruntime's `quant_utils` over arrays and their codes."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx_tensor import write_tensor
from sardonyx.formats.protos import Message, protos
from sardonyx.ir import Tensor
from sardonyx.quantization.grids import (
    Grid,
    compute_scale_zp,
    compute_scale_zp_float8,
    grid_of_range,
    grid_of_spread,
    grid_of_weights,
)
from sardonyx.quantization.histogram import smooth_distribution
from sardonyx.quantization.kinds import LIMITS, CalibrationMethod, QuantFormat, QuantizationMode, QuantType, integers_of, limits_of
from sardonyx.quantization.named_values import (
    DEQUANT_OP_NAME,
    DEQUANT_OUTPUT_SUFFIX,
    QUANT_INPUT_SUFFIX,
    QUANT_OP_NAME,
    TENSOR_NAME_QUANT_SUFFIX,
    BiasToQuantize,
    QuantizedInitializer,
    QuantizedValue,
    QuantizedValueType,
    add_dequant_input_suffix,
    add_dequant_output_suffix,
    add_dequant_suffix,
    add_quant_input_suffix,
    add_quant_output_suffix,
    add_quant_suffix,
)
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
from sardonyx.quantization.shape_inference import optimize_model, update_opset_version
from sardonyx.quantization.tensors_data import write_calibration_table
from sardonyx.quantization.type_tables import (
    FLOAT8_TYPES,
    MODEL_SIZE_THRESHOLD,
    ONNX_INT_TYPE_RANGE,
    ONNX_INT_TYPE_REDUCED_RANGE,
    ONNX_INT_TYPE_SYMMETRIC_RANGE,
    ONNX_TYPE_TO_NP_TYPE,
    type_to_name,
)

__all__ = [
    "DEQUANT_OP_NAME",
    "DEQUANT_OUTPUT_SUFFIX",
    "FLOAT8_TYPES",
    "MODEL_SIZE_THRESHOLD",
    "ONNX_INT_TYPE_RANGE",
    "ONNX_INT_TYPE_REDUCED_RANGE",
    "ONNX_INT_TYPE_SYMMETRIC_RANGE",
    "ONNX_TYPE_TO_NP_TYPE",
    "QUANT_INPUT_SUFFIX",
    "QUANT_OP_NAME",
    "TENSOR_NAME_QUANT_SUFFIX",
    "BiasToQuantize",
    "CalibrationMethod",
    "Grid",
    "QuantFormat",
    "QuantType",
    "QuantizationMode",
    "QuantizedInitializer",
    "QuantizedValue",
    "QuantizedValueType",
    "add_dequant_input_suffix",
    "add_dequant_output_suffix",
    "add_dequant_suffix",
    "add_infer_metadata",
    "add_pre_process_metadata",
    "add_quant_input_suffix",
    "add_quant_output_suffix",
    "add_quant_suffix",
    "attribute_to_kwarg",
    "compute_data_quant_params",
    "compute_scale_zp",
    "compute_scale_zp_blocked",
    "compute_scale_zp_float8",
    "find_by_name",
    "generate_identified_filename",
    "get_elem_index",
    "get_mul_node",
    "get_opset_version",
    "get_qmin_qmax_for_qType",
    "get_qrange_for_qType",
    "grid_of_range",
    "grid_of_spread",
    "grid_of_weights",
    "limits_of",
    "load_model_with_shape_infer",
    "model_has_external_data",
    "model_has_infer_metadata",
    "model_has_pre_process_metadata",
    "ms_domain",
    "normalize_axis",
    "onnx_domain",
    "optimize_model",
    "pack_bytes_to_4bit",
    "quantize_data",
    "quantize_nparray",
    "quantize_onnx_initializer",
    "save_and_reload_model_with_shape_infer",
    "smooth_distribution",
    "snap_zero_point_to_uint8",
    "tensor_proto_to_array",
    "type_to_name",
    "update_opset_version",
    "write_calibration_table",
]

ms_domain, onnx_domain = "com.microsoft", "ai.onnx"


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
    dtype = integers_of(qType)
    low, high = limits_of(dtype, reduced=reduce_range, symmetric=symmetric)
    return np.asarray(low, np.int64).astype(dtype.numpy), np.asarray(high, np.int64).astype(dtype.numpy)


def get_qrange_for_qType(  # noqa: N802  onnxruntime's name
    qType: int,
    reduce_range: bool = False,
    symmetric: bool = False,
) -> int:
    """Return how far the codes of a type reach; arguments and errors are those of `get_qmin_qmax_for_qType`."""
    low, high = limits_of(integers_of(qType), reduced=reduce_range, symmetric=symmetric)
    return high - low


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
        quant_type: a number of onnx.TensorProto.DataType, of integers, or of FLOAT8E4M3FN, for which nothing else is read.
        symmetric: whether 0 is in the middle of the range.
        reduce_range: whether a bit is left unused.
        min_real_range: the range is at least as wide as this.
        rmin_override: takes the place of the least element.
        rmax_override: takes the place of the greatest.

    Raises:
        InvalidArgument: the type is none of these, or is float8 with `reduce_range`.
        ValueError: an element is NaN or infinite.
    """
    array = np.asarray(data)
    if quant_type == int(DataType.FLOAT8E4M3FN):
        if reduce_range:
            raise InvalidArgument("float8 has no bit to leave unused: leave out reduce_range")
        found = grid_of_weights(array, DataType.FLOAT8E4M3FN)
        return found.zero_point, found.scale
    low = (array.min() if array.size else 0.0) if rmin_override is None else rmin_override
    high = (array.max() if array.size else 0.0) if rmax_override is None else rmax_override
    kind = array.dtype if array.dtype.kind == "f" else np.dtype(np.float32)
    ends = kind.type(low), kind.type(high)
    grid = grid_of_range(integers_of(quant_type), *ends, symmetric=symmetric, reduced=reduce_range, least_range=min_real_range)
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
        qType: a number of onnx.TensorProto.DataType, of integers, or of FLOAT8E4M3FN, whose codes are x / scale.
        arr: floats.
        scale: floats that broadcast with the array.
        zero_point: integers that do.
        low: the least code, where that is more than the type's.
        high: the greatest, where that is less.

    Raises:
        InvalidArgument: the type is none of these, or a zero point of float8 is not 0.
    """
    if qType == int(DataType.FLOAT8E4M3FN):
        if np.asarray(zero_point).astype(np.float32).any():
            raise InvalidArgument(f"float8 has no zero point, got {zero_point!r}")
        scales = np.asarray(scale, np.float32)
        return Grid(DataType.FLOAT8E4M3FN, scales, np.zeros_like(scales)).quantize(np.asarray(arr, np.float32))
    dtype = integers_of(qType)
    least, most = limits_of(dtype)
    least = least if low is None else max(least, int(np.asarray(low)))
    most = most if high is None else min(most, int(np.asarray(high)))
    steps = np.rint(np.asarray(arr, np.float32) / np.asarray(scale, np.float32)) + np.asarray(zero_point).astype(np.float64)
    codes: Array = np.clip(steps, least, most).astype(np.int64).astype(dtype.numpy)
    return codes


def compute_scale_zp_blocked(
    weight: Array,
    quant_type: int,
    axis: int,
    block_size: int,
    symmetric: bool,
) -> tuple[Array, Array]:
    """Return the zero points and the scales of a weight in blocks, as QuantizeLinear-21 takes them.

    Args:
        weight: floats of one axis or more; onnxruntime's function takes two.
        quant_type: a number of onnx.TensorProto.DataType, of integers.
        axis: the axis that blocks lie along.
        block_size: how many elements a block has, the last one perhaps fewer; at least 1.
        symmetric: whether 0 is in the middle of the range of each block.

    Returns:
        Zero points of the type, and scales of the weight's, in its shape but for one element of `axis` for each block.

    Raises:
        InvalidArgument: the type is none of integers, the weight has no such axis, or the size is less than 1.
        ValueError: an element is NaN or infinite.
    """
    dtype = integers_of(quant_type)
    exists, place = normalize_axis(axis, weight.ndim)
    if not exists or block_size < 1:
        raise InvalidArgument(f"a weight of shape {weight.shape} has no blocks of {block_size} elements along axis {axis}")
    rows = np.moveaxis(weight, place, 0)
    padded = np.pad(rows, ((0, -len(rows) % block_size), *((0, 0) for _ in rows.shape[1:])))
    blocks = padded.reshape(-1, block_size, *rows.shape[1:])
    low, high = blocks.min(axis=1, initial=0), blocks.max(axis=1, initial=0)
    zero, scale = compute_scale_zp(low, high, *limits_of(dtype, symmetric=symmetric), symmetric)
    codes = np.clip(zero, *LIMITS[dtype]).astype(np.int32).astype(dtype.numpy)
    return np.moveaxis(codes, 0, place), np.moveaxis(scale, 0, place)


def quantize_onnx_initializer(
    weight: Message,
    quant_type: int,
    zero_point: Array,
    scale: Array,
    axis: int | None = None,
    quant_weight_name: str | None = None,
    block_size: int = 0,
) -> Message:
    """Return the codes of a weight.

    Args:
        weight: an onnx.TensorProto of floats.
        quant_type: a number of onnx.TensorProto.DataType, of integers.
        zero_point: one for the weight, one for each index along `axis`, or one for each block.
        scale: as many.
        axis: the axis that scales, or blocks, go along; None for one scale.
        quant_weight_name: the name of the result; by default the weight's with `_quantized` behind it.
        block_size: the elements of a block; 0 for none.

    Returns:
        An onnx.TensorProto of the type, in the weight's shape.

    Raises:
        InvalidArgument: the type is none of integers, or the weight has no such axis.
        ValueError: it is no TensorProto, or scales do not go with its shape.
    """
    array = tensor_proto_to_array(weight)
    scales, zeros = np.asarray(scale), np.asarray(zero_point)
    if axis is not None:
        exists, place = normalize_axis(axis, array.ndim)
        if not exists:
            raise InvalidArgument(f"weight {weight.name!r} of shape {array.shape} has no axis {axis}")
        shape = [1] * array.ndim
        shape[place] = -1
        if block_size:
            scales, zeros = (np.repeat(part, block_size, place).take(range(array.shape[place]), place) for part in (scales, zeros))
        else:
            scales, zeros = scales.reshape(shape), zeros.reshape(shape)
    codes = quantize_nparray(quant_type, array, scales, zeros)
    if codes.shape != array.shape:
        raise InvalidArgument(f"scales of shape {np.shape(scale)} do not go with weight {weight.name!r} of shape {array.shape}")
    made = protos().TensorProto()
    write_tensor(made, Tensor.from_array(codes), quant_weight_name or f"{weight.name}{TENSOR_NAME_QUANT_SUFFIX}")
    return made


def snap_zero_point_to_uint8(
    rmin: object, rmax: object, qmin: int = 0, qmax: int = 255, min_real_range: float | None = None
) -> tuple[Array, Array]:
    """Return the zero point and the scale of a grid of uint8 that covers rmin to rmax, with its zero point at `qmin` or the middle.

    Args:
        rmin: the least number; where it is negative, the zero point is the middle, (qmin + qmax + 1) // 2.
        rmax: the greatest.
        qmin: the least code.
        qmax: the greatest code.
        min_real_range: the range is at least as wide as this.

    Raises:
        ValueError: a bound is NaN or infinite, or qmin is not less than qmax.
    """
    low, high = min(float(np.squeeze(np.asarray(rmin))), 0.0), max(float(np.squeeze(np.asarray(rmax))), 0.0)
    if not (np.isfinite(low) and np.isfinite(high)) or qmin >= qmax:
        raise ValueError(f"numbers from {rmin} to {rmax} have no codes from {qmin} to {qmax}")
    high = max(high, low + (min_real_range or 0.0))
    zero = (qmin + qmax + 1) // 2 if low < 0 else qmin
    scale = max(-low / max(zero - qmin, 1), high / max(qmax - zero, 1), (min_real_range or 0.0) / (qmax - qmin))
    return np.array(zero, np.uint8), np.array(scale or 1 / (qmax - qmin), np.float32)
