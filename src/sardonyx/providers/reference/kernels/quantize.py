"""Reference kernels of quantization: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import normalize_axis
from sardonyx.providers.reference.algorithms.precision import quiet
from sardonyx.providers.reference.algorithms.requantize import round_to
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_BLOCK_ELEMENTS = 1 << 15
"""Elements quantized at a time: the float32 copy that several passes go over stays in cache."""


_NUMERIC_TYPES = {kind.value for kind in DataType} - {DataType.UNDEFINED, DataType.STRING}


@kernel("QuantizeLinear", since=10)
@quiet
def quantize_linear(
    node: Call,
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Array:
    """Round x / y_scale + y_zero_point to the type of y_zero_point, output_dtype or uint8. Source: ONNX QuantizeLinear-28.

    Scale and zero point are scalars, one per index of `axis`, or one per block of block_size along it. The quotient has the
    precision of y_scale or `precision`: float32, or rounded to float16 or bfloat16.
    """
    dtype = _output_dtype(y_zero_point, output_dtype)
    scale = _spread(y_scale, x, axis, block_size, "y_scale")
    zero_point = _spread_zero_point(y_zero_point, y_scale, x, axis, block_size, "y_zero_point")
    narrow = _narrow_precision(precision, y_scale.dtype)
    if scale.ndim or (zero_point is not None and zero_point.ndim):
        return round_to(_quotient(x, scale, narrow), zero_point, dtype, saturate=bool(saturate))
    y = np.empty(x.size, dtype)
    flat = x.reshape(-1)
    for start in range(0, x.size, _BLOCK_ELEMENTS):
        part = slice(start, start + _BLOCK_ELEMENTS)
        y[part] = round_to(_quotient(flat[part], scale, narrow), zero_point, dtype, saturate=bool(saturate))
    return y.reshape(x.shape)


@kernel("DequantizeLinear", since=10)
@quiet
def dequantize_linear(
    node: Call,
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    """Return (x - x_zero_point) * x_scale in output_dtype or x_scale's type. Source: ONNX DequantizeLinear-28.

    Scale and zero point are shaped as in QuantizeLinear. Computed in float32 and rounded once.
    """
    wanted = _named_type(output_dtype, "output_dtype").numpy if output_dtype else x_scale.dtype
    if not is_float(DataType.from_numpy(wanted)):
        raise InvalidArgument(f"output type {DataType.from_numpy(wanted)}, expected a floating-point type")
    scale = _spread(x_scale, x, axis, block_size, "x_scale")
    zero_point = _spread_zero_point(x_zero_point, x_scale, x, axis, block_size, "x_zero_point")
    if zero_point is not None and x.dtype == np.int32:
        x = x - zero_point
        zero_point = None
    y = x.astype(np.float32)
    if zero_point is not None and (zero_point.ndim or zero_point != 0):
        y -= zero_point.astype(np.float32)
    y *= scale.astype(np.float32)
    return y.astype(wanted, copy=False)


@kernel("DynamicQuantizeLinear", since=11)
@quiet
def dynamic_quantize_linear(node: Call, x: Array) -> tuple[Array, Array, Array]:
    """Quantize x to uint8, computing in float32, over its range extended to 0; return y, the scale and the zero point.

    The scale has the type that the node's output has, and x is divided by it. Source: ONNX DynamicQuantizeLinear-11; of a tensor
    of zeros, or empty, the scale is 1.
    """
    x = x.astype(np.float32, copy=False)
    low, high = x.min(initial=0), x.max(initial=0)
    scale = (high - low) / np.float32(255) if high > low else np.float32(1)
    kind = _scale_type(node)
    if kind == np.float16:
        scale = np.maximum(scale.astype(kind), np.finfo(np.float16).smallest_subnormal).astype(np.float32)
    zero_point = np.clip(np.rint(-low / scale), 0, 255).astype(np.uint8)
    zero_points = np.asarray(zero_point, np.uint8)
    return quantize_linear(node, x, np.asarray(scale, np.float32), zero_points), np.asarray(scale, kind), zero_points


def _scale_type(node: Call) -> np.dtype[np.generic]:
    stated = node.output_types[1] if len(node.output_types) > 1 else None
    return np.dtype(np.float32) if stated is None else stated.numpy


def _quotient(x: Array, scale: Array, narrow: np.dtype[np.generic] | None) -> Array:
    y: Array = np.divide(x.astype(np.float32, copy=False), scale.astype(np.float32))
    return y if narrow is None else y.astype(narrow).astype(np.float32)


def _narrow_precision(precision: int, scale_dtype: np.dtype[np.generic]) -> np.dtype[np.generic] | None:
    """Return the half type to which a quotient is rounded, or None for float32."""
    kind = _named_type(precision, "precision") if precision else DataType.from_numpy(scale_dtype)
    return kind.numpy if kind in (DataType.FLOAT16, DataType.BFLOAT16) else None


def _named_type(number: int, name: str) -> DataType:
    if number not in _NUMERIC_TYPES:
        raise InvalidArgument(f"{name} = {number}, expected the number of a numeric type in TensorProto.DataType")
    return DataType(number)


def _output_dtype(zero_point: Array | None, output_dtype: int) -> np.dtype[np.generic]:
    named = _named_type(output_dtype, "output_dtype").numpy if output_dtype else None
    if zero_point is None:
        return np.dtype(np.uint8) if named is None else named
    if named is not None and named != zero_point.dtype:
        raise InvalidArgument(
            f"output_dtype is {DataType(output_dtype)}, but y_zero_point has type {DataType.from_numpy(zero_point.dtype)}; "
            "expected one type"
        )
    return zero_point.dtype


def _spread_zero_point(zero_point: Array | None, scale: Array, x: Array, axis: int, block_size: int, name: str) -> Array | None:
    if zero_point is None:
        return None
    if zero_point.shape != scale.shape and zero_point.size != 1:
        raise InvalidArgument(f"{name} has shape {zero_point.shape}, expected that of the scale, {scale.shape}")
    return _spread(zero_point, x, axis, block_size, name)


def _spread(values: Array, x: Array, axis: int, block_size: int, name: str) -> Array:
    """Shape scales or zero points, as the granularity asks, to broadcast with x; a scalar for one per tensor."""
    if values.size == 1 and values.ndim <= 1 and not (block_size and values.ndim == x.ndim):
        return values.reshape(())
    axis = 0 if x.ndim == 1 else normalize_axis(axis, x.ndim)
    if not block_size:
        if values.shape != (x.shape[axis],):
            raise InvalidArgument(
                f"{name} has shape {values.shape} for x of shape {x.shape}; expected a scalar, ({x.shape[axis]},) for axis "
                f"{axis}, or block_size for blocks"
            )
        return values.reshape(-1, *(1,) * (x.ndim - 1 - axis))
    if block_size < 1:
        raise InvalidArgument(f"block_size = {block_size}, expected a positive number")
    expected = (*x.shape[:axis], -(-x.shape[axis] // block_size), *x.shape[axis + 1 :])
    if values.shape != expected:
        raise InvalidArgument(
            f"{name} has shape {values.shape}, expected {expected} for blocks of {block_size} along axis {axis} of {x.shape}"
        )
    index = np.arange(x.shape[axis]) // block_size
    return np.take(values, index, axis=axis)
