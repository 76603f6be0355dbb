"""Quantization."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.views.element_type import element_type

__all__: list[str] = []


@shape_function("QuantizeLinear")
@shape_function("QuantizeLinear", domain="com.microsoft")
def quantize_linear(call: ShapeCall, x: Fact, scale: Fact, zero_point: Fact | None = None, *, output_dtype: int = 0) -> Fact:
    """Give the output the input's shape, of the zero point's type, else of `output_dtype`, else uint8."""
    if zero_point is not None:
        return tensor(zero_point.dtype, x.shape)
    return tensor(element_type(output_dtype, "output_dtype") if output_dtype else DataType.UINT8, x.shape)


@shape_function("DequantizeLinear")
@shape_function("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(call: ShapeCall, x: Fact, scale: Fact, zero_point: Fact | None = None, *, output_dtype: int = 0) -> Fact:
    """Give the output the input's shape, of `output_dtype`, else of the scale's type; before opset 19 that is float."""
    return tensor(element_type(output_dtype, "output_dtype") if output_dtype else scale.dtype, x.shape)


@shape_function("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: ShapeCall, x: Fact) -> tuple[Fact, ...]:
    """Return uint8 in the input's shape, with scale and zero point as scalars.

    The scale is a float32, or of the input's type where the model declares that: converters to float16 do, though the standard
    has no input but float32.
    """
    scale = x.dtype if call.declared[1:2] == (x.dtype,) else DataType.FLOAT
    return tensor(DataType.UINT8, x.shape), tensor(scale, ()), tensor(DataType.UINT8, ())
