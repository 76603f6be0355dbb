"""QuantizeLinear and DequantizeLinear with one scale as expressions, fused into the epilogue of what is before them.

Scales by axis or by block are no element-wise matter: `kernels/quantized/linear.py` has kernels that compute these expressions
with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sardonyx.codegen.emit.division import is_fit_divisor
from sardonyx.codegen.emit.expr import ElementExpr, constant, quotient, round_saturated
from sardonyx.codegen.emit.scalars import scalar
from sardonyx.codegen.emit.types import F32, I32, Type, of_dtype
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value

__all__ = ["QUANTIZATION", "dequantized", "is_one", "quantized", "require_float_quotient"]

_Operands = Sequence["ElementExpr | None"]


def _quantize(node: Node, operands: _Operands) -> ElementExpr:
    """Round x / scale to nearest, ties to even, add the zero point and saturate; NaN becomes the least number.

    Source: ONNX QuantizeLinear-21.
    """
    x, scale, zero_point = _operands_of(node, operands)
    require_float_quotient(node, x)
    return quantized(x, scale, zero_point, _narrow(_type_of(node.outputs[0])))


def require_float_quotient(node: Node, x: ElementExpr) -> None:
    """Raise TypeError where a QuantizeLinear does not divide floats in float32."""
    precision = node.integer("precision", 0)
    if x.type != F32 or precision not in (0, int(DataType.FLOAT)):
        raise TypeError(f"quantization of {x.type.name} in precision {precision}")


def quantized(x: ElementExpr, scale: ElementExpr, zero_point: ElementExpr | None, kind: Type) -> ElementExpr:
    """Return x / scale, rounded to nearest, ties to even, plus the zero point, saturated to `kind`; of NaN its least number."""
    return round_saturated(_divided(x, scale), _as_int32(zero_point), kind)


def _divided(x: ElementExpr, scale: ElementExpr) -> ElementExpr:
    """Return x / scale, by the inverse of a scale that is known."""
    if scale.primitive != "scalar" or not is_fit_divisor(scale.value):
        return x / scale
    inverse = float(np.float32(1) / np.float32(scale.value))
    return quotient(x, scale, scalar(inverse, F32))


def _as_int32(zero_point: ElementExpr | None) -> ElementExpr:
    if zero_point is None:
        return constant(0, I32)
    return scalar(zero_point.value, I32) if zero_point.primitive == "scalar" else zero_point.to(I32)


def _dequantize(node: Node, operands: _Operands) -> ElementExpr:
    """Compute (x - zero point) * scale; the difference of integers of up to 16 bits is exact in float32, that of int32 in int32.

    Source: ONNX DequantizeLinear-21.
    """
    x, scale, zero_point = _operands_of(node, operands)
    if x.type != I32:
        _narrow(x.type)
    if _type_of(node.outputs[0]) != F32:
        raise TypeError(f"dequantization to {node.outputs[0].dtype}")
    return dequantized(x, scale, zero_point)


def dequantized(x: ElementExpr, scale: ElementExpr, zero_point: ElementExpr | None) -> ElementExpr:
    """Return (x - zero point) * scale in float32; of int32 the difference is taken in int32."""
    if zero_point is None:
        return x.to(F32) * scale
    if x.type == I32:
        return (x - _as_int32(zero_point)).to(F32) * scale
    return (x.to(F32) - zero_point.to(F32)) * scale


def _operands_of(node: Node, operands: _Operands) -> tuple[ElementExpr, ElementExpr, ElementExpr | None]:
    """Return the element, the scale and the zero point, which are single numbers."""
    x, scale = operands[0], operands[1]
    zero_point = operands[2] if len(operands) > 2 else None
    if x is None or scale is None or scale.type != F32:
        raise TypeError("scales that are not of type float")
    if not all(value is None or is_one(value) for value in node.inputs[1:]):
        raise TypeError("scales or zero points that go by axis or by block")
    return x, scale, zero_point


def is_one(value: Value) -> bool:
    """Return whether a value is known to have one element."""
    return value.shape is not None and all(dim == 1 for dim in value.shape)


def _type_of(value: Value) -> Type | None:
    try:
        return None if value.dtype in (None, DataType.UNDEFINED) else of_dtype(value.dtype.numpy)
    except KeyError:
        return None


def _narrow(kind: Type | None) -> Type:
    if kind is None or not kind.is_integer or kind.bits > 16:
        raise TypeError(f"quantized elements of {None if kind is None else kind.name}; expected integers of 8 or 16 bits")
    return kind


QUANTIZATION: Mapping[str, Callable[[Node, _Operands], ElementExpr]] = {
    "DequantizeLinear": _dequantize,
    "QuantizeLinear": _quantize,
}
"""Operator -> what it computes, in the type of its output."""
