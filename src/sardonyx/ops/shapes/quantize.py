"""Quantization."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.element_type import element_type

__all__: list[str] = []


@shape_function("QuantizeLinear")
@shape_function("QuantizeLinear", domain="com.microsoft")
def quantize_linear(call: ShapeCall, x: Fact, scale: Fact, zero_point: Fact | None = None, *, output_dtype: int = 0) -> Fact:
    """The output is in the input's shape, of the zero point's type, else of `output_dtype`, else uint8."""
    if zero_point is not None:
        return tensor(zero_point.dtype, x.shape)
    return tensor(element_type(output_dtype, "output_dtype") if output_dtype else DataType.UINT8, x.shape)


@shape_function("DequantizeLinear")
@shape_function("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(call: ShapeCall, x: Fact, scale: Fact, zero_point: Fact | None = None, *, output_dtype: int = 0) -> Fact:
    """The output is in the input's shape, of `output_dtype`, else of the scale's type; before opset 19 that is float."""
    return tensor(element_type(output_dtype, "output_dtype") if output_dtype else scale.dtype, x.shape)


@shape_function("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: ShapeCall, x: Fact) -> tuple[Fact, ...]:
    """uint8 in the input's shape, with scale and zero point as scalars."""
    return tensor(DataType.UINT8, x.shape), tensor(DataType.FLOAT, ()), tensor(DataType.UINT8, ())


@shape_function("GatherBlockQuantized", domain="com.microsoft")
def gather_block_quantized(call: ShapeCall, data: Fact, indices: Fact, scales: Fact, zero_points: Fact | None = None, *,
                           gather_axis: int = 0, quantize_axis: int = 1, bits: int = 4) -> Fact:  # fmt: skip
    """As Gather of the dequantized data, of which uint8 packs 8 / bits elements along the last axis."""
    if data.shape is None or indices.shape is None or data.dtype is None:
        return tensor(scales.dtype)
    packed = 8 // bits if data.dtype is DataType.UINT8 else 1
    shape = (*data.shape[:-1], data.shape[-1] * packed) if data.shape else (anonymous(),)
    axis = gather_axis + len(shape) if gather_axis < 0 else gather_axis
    return tensor(scales.dtype, shape[:axis] + indices.shape + shape[axis + 1 :])
