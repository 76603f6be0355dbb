"""QuantizeLinear, DequantizeLinear, GatherBlockQuantized and GatherPacked of com.microsoft."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import normalize_axis
from sardonyx.providers.reference.algorithms.packed_formats import row_bytes, unpack_rows
from sardonyx.providers.reference.algorithms.packed_weights import BITS, unpack
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["gather_block_quantized", "gather_packed", "microsoft_dequantize_linear", "microsoft_quantize_linear"]

_MICROSOFT = "com.microsoft"


@kernel("QuantizeLinear", domain=_MICROSOFT)
def microsoft_quantize_linear(call: Call, x: Array, y_scale: Array, y_zero_point: Array | None = None, *, axis: int = 1) -> Array:
    """Round x / y_scale + y_zero_point to the type of y_zero_point, 16- and 4-bit integers included; uint8 without one.

    Scale and zero point are scalars, or one per index of `axis`. Source: com.microsoft QuantizeLinear.
    """
    y: Array = run_standard("QuantizeLinear", x, y_scale, y_zero_point, axis=axis)
    return y


@kernel("DequantizeLinear", domain=_MICROSOFT)
def microsoft_dequantize_linear(call: Call, x: Array, x_scale: Array, x_zero_point: Array | None = None, *, axis: int = 1) -> Array:
    """Return (x - x_zero_point) x_scale in the type of the scale, which is a scalar or one per index of `axis`.

    Source: com.microsoft DequantizeLinear.
    """
    y: Array = run_standard("DequantizeLinear", x, x_scale, x_zero_point, axis=axis)
    return y


@kernel("GatherBlockQuantized", domain=_MICROSOFT)
def gather_block_quantized(
    call: Call,
    data: Array,
    indices: Array,
    scales: Array,
    zero_points: Array | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Array:
    """Gather slices of block-quantized data along `gather_axis` and dequantize them to the type of the scales.

    Data is (u)int4, a narrow float, or uint8 that packs numbers of `bits` along its last axis; scales and zero points (packed
    alike) have a block of `quantize_axis` per element. An index out of range gives zeros. Source: com.microsoft
    GatherBlockQuantized of ONNX Runtime 1.31.
    """
    packed = data.dtype == np.uint8
    gather_axis, quantize_axis = normalize_axis(gather_axis, data.ndim), normalize_axis(quantize_axis, data.ndim)
    block = _check_blocks(data, scales, block_size, bits if packed else 8, gather_axis, quantize_axis)
    if zero_points is not None:
        _check_zero_points(zero_points, scales, bits if packed else 8)
    if packed:
        zero_points = np.array(1 << (bits - 1), np.float32) if zero_points is None else unpack(zero_points, bits)
    size = data.shape[gather_axis]
    wrapped = np.where(indices < 0, indices + size, indices)
    inside = (wrapped >= 0) & (wrapped < size)
    rows = np.where(inside, wrapped, 0).reshape(-1)
    if gather_axis == quantize_axis:
        whole = _dequantize(data, scales, zero_points, quantize_axis, block, bits)
        chosen = np.take(whole, rows, axis=gather_axis)
    else:
        chosen_scales, chosen_points = (_take(part, rows, gather_axis) for part in (scales, zero_points))
        chosen = _dequantize(np.take(data, rows, axis=gather_axis), chosen_scales, chosen_points, quantize_axis, block, bits)
    if not inside.all():
        np.moveaxis(chosen, gather_axis, 0)[~inside.reshape(-1)] = 0
    shape = (*chosen.shape[:gather_axis], *indices.shape, *chosen.shape[gather_axis + 1 :])
    return chosen.reshape(shape).astype(scales.dtype, copy=False)


@kernel("GatherPacked", domain=_MICROSOFT)
def gather_packed(
    call: Call, data: Array, indices: Array, *, packed_type: int, K: int, output_dtype: int = int(DataType.BFLOAT16)
) -> Array:
    """Gather rows of a table (N, bytes) in one of ggml's formats, and unpack them to (*indices, K) of `output_dtype`.

    An index that is negative or beyond the table takes row 0. Source: com.microsoft GatherPacked of ONNX Runtime 1.32.
    """
    if output_dtype not in _GATHERED:
        expected = ", ".join(f"{int(dtype)} ({dtype})" for dtype in _GATHERED)
        raise InvalidArgument(f"output_dtype is {output_dtype}; expected {expected}")
    size = row_bytes(packed_type, K)
    if data.ndim != 2 or data.shape[1] != size:
        raise InvalidArgument(f"data has shape {data.shape}; rows of {K} weights in format {packed_type} have {size} bytes")
    if not len(data) and indices.size:
        raise InvalidArgument(f"data has no rows; {indices.size} indices ask for some")
    rows = data[np.where((indices < 0) | (indices >= len(data)), 0, indices).reshape(-1)]
    return unpack_rows(packed_type, rows).astype(DataType(output_dtype).numpy).reshape(*indices.shape, K)


_GATHERED = (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16)
"""The types that GatherPacked gives."""


def _check_blocks(data: Array, scales: Array, block_size: int, bits: int, gather_axis: int, quantize_axis: int) -> int:
    """Return the block size that holds; raises InvalidArgument where attributes and shapes disagree."""
    is_narrow_float = is_float(DataType.from_numpy(data.dtype))
    if bits not in BITS or (block_size < 16 and not (is_narrow_float and block_size == 0)) or block_size & (block_size - 1):
        raise InvalidArgument(f"bits is {bits} and block_size {block_size}; expected 2, 4 or 8, and a power of two from 16 on")
    if bits < 8 and (gather_axis != 0 or quantize_axis == 0):
        raise InvalidArgument(f"packed uint8 data is gathered along axis {gather_axis}; expected 0, and another axis quantized")
    unpacked = list(data.shape)
    unpacked[-1] *= 8 // bits
    block = block_size or unpacked[quantize_axis]
    expected = tuple(-(-size // block) if axis == quantize_axis else size for axis, size in enumerate(unpacked))
    fits = scales.ndim == data.ndim and all(
        have == want or (have == 1 and is_narrow_float) for have, want in zip(scales.shape, expected, strict=True)
    )
    if not fits:
        raise InvalidArgument(f"scales have shape {scales.shape}; data {data.shape} in blocks of {block} makes them {expected}")
    return block


def _check_zero_points(zero_points: Array, scales: Array, bits: int) -> None:
    expected = (*scales.shape[:-1], -(-scales.shape[-1] * bits // 8))
    if zero_points.shape != expected:
        raise InvalidArgument(
            f"zero_points have shape {zero_points.shape}; scales {scales.shape} of {bits} bits make them {expected}"
        )


def _take(part: Array | None, rows: Array, axis: int) -> Array | None:
    """Return slices of `part`; itself where one slice, or one number, stands for all."""
    if part is None or part.ndim == 0 or part.shape[axis] == 1:
        return part
    return np.take(part, rows, axis=axis)


def _dequantize(data: Array, scales: Array | None, zero_points: Array | None, axis: int, block: int, bits: int) -> Array:
    """Return (number - zero point) x scale in float32, whole blocks of `axis` sharing the latter two."""
    numbers: Array = unpack(data, bits) if data.dtype == np.uint8 else data.astype(np.float32)
    for part, apply in ((zero_points, np.subtract), (scales, np.multiply)):
        if part is not None:
            apply(numbers, _spread(part.astype(np.float32), axis, block, numbers.shape[axis]), out=numbers)
    return numbers


def _spread(part: Array, axis: int, block: int, size: int) -> Array:
    """Return one element per block as one per number."""
    if part.ndim == 0 or part.shape[axis] == 1:
        return part
    return np.repeat(part, min(block, size), axis=axis).take(np.arange(size), axis=axis)
