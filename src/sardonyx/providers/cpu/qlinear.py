"""The element-wise operators of com.microsoft on integers of 8 bits as expressions, rounded as onnxruntime rounds them.

    QLinearAdd          round(a a_ratio + (b b_ratio + fixed))       fixed = c_zero - (a_ratio a_zero + b_ratio b_zero)
    QLinearMul          round((a - a_zero) (b - b_zero) factor + c_zero)
    QLinearLeakyRelu    round(f((x - x_zero) x_scale) / y_scale) + y_zero, and so QLinearSigmoid
    QLinearWhere        what is chosen, brought to the scale of the result in the same way

All in float32, ties to even, and saturated. Sums and products are rounded after the zero point is added, the others before, as
QuantizeLinear does. Scales and zero points are single numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, constant, round_saturated
from sardonyx.codegen.emit.types import BOOL, F32, I32, Type
from sardonyx.ir import Node
from sardonyx.providers.cpu.quantization import is_one, quantized

__all__ = ["QLINEAR", "saturated"]

_Operands = Sequence["ElementExpr | None"]


def _add(node: Node, operands: _Operands) -> ElementExpr:
    """Return the sum, with the terms that no element changes added up first."""
    (a, a_scale, a_zero), (b, b_scale, b_zero) = _number(node, operands, 0), _number(node, operands, 3)
    scale, zero = _scale_and_zero(node, operands, 6)
    a_ratio, b_ratio = a_scale / scale, b_scale / scale
    fixed = zero - _multiply_add(a_ratio, a_zero, b_ratio * b_zero)
    return saturated(_multiply_add(a, a_ratio, _multiply_add(b, b_ratio, fixed)), _kind_of(operands))


def _multiply(node: Node, operands: _Operands) -> ElementExpr:
    (a, a_scale, a_zero), (b, b_scale, b_zero) = _number(node, operands, 0), _number(node, operands, 3)
    scale, zero = _scale_and_zero(node, operands, 6)
    return saturated((a - a_zero) * (b - b_zero) * (a_scale * b_scale / scale) + zero, _kind_of(operands))


def _unary(function: Callable[[Node, ElementExpr], ElementExpr]) -> Callable[[Node, _Operands], ElementExpr]:
    def build(node: Node, operands: _Operands) -> ElementExpr:
        x, x_scale, x_zero = _number(node, operands, 0)
        return _brought(node, operands, 3, function(node, (x - x_zero) * x_scale), _kind_of(operands))

    return build


def _leaky_relu(node: Node, x: ElementExpr) -> ElementExpr:
    return OPERATORS["leaky_relu"](x, alpha=node.number("alpha", 0.01))


def _sigmoid(node: Node, x: ElementExpr) -> ElementExpr:
    return OPERATORS["sigmoid"](x)


def _where(node: Node, operands: _Operands) -> ElementExpr:
    condition = _given(operands, 0)
    if condition.type != BOOL:
        raise TypeError("a condition that is not of type bool")
    sides = [(x - x_zero) * x_scale for x, x_scale, x_zero in (_number(node, operands, 1), _number(node, operands, 4))]
    return _brought(node, operands, 7, OPERATORS["select"](condition, *sides), _kind_of(operands, 1))


def _brought(node: Node, operands: _Operands, first: int, x: ElementExpr, kind: Type) -> ElementExpr:
    """Return x quantized by the scale and the zero point that are the operands from `first` on."""
    scale, _ = _scale_and_zero(node, operands, first)
    return quantized(x, scale, operands[first + 1] if first + 1 < len(operands) else None, kind)


def _number(node: Node, operands: _Operands, first: int) -> tuple[ElementExpr, ElementExpr, ElementExpr]:
    """Return integers, their scale and their zero point as floats: the operands from `first` on."""
    x = _given(operands, first)
    if not x.type.is_integer or x.type.bits != 8:
        raise TypeError(f"input {first} has elements of type {x.type.name}, expected 8 bits")
    return (x.to(F32), *_scale_and_zero(node, operands, first + 1))


def _scale_and_zero(node: Node, operands: _Operands, first: int) -> tuple[ElementExpr, ElementExpr]:
    scale = _given(operands, first)
    zero = operands[first + 1] if first + 1 < len(operands) else None
    if scale.type != F32:
        raise TypeError("scales that are not of type float")
    if not all(value is None or is_one(value) for value in node.inputs[first : first + 2]):
        raise TypeError(f"inputs {first} and {first + 1} are not one scale and zero point")
    return scale, constant(0.0, F32) if zero is None else zero.to(F32)


def _given(operands: _Operands, index: int) -> ElementExpr:
    found = operands[index]
    if found is None:
        raise TypeError(f"input {index} is left out")
    return found


def _kind_of(operands: _Operands, index: int = 0) -> Type:
    return _given(operands, index).type


def _multiply_add(x: ElementExpr, y: ElementExpr, z: ElementExpr) -> ElementExpr:
    return OPERATORS["multiply_add"](x, y, z)


def saturated(x: ElementExpr, kind: Type) -> ElementExpr:
    """Return the nearest integer of a type; x is no NaN where scales are finite and above 0."""
    return round_saturated(x, constant(0, I32), kind)


QLINEAR: Mapping[str, Callable[[Node, _Operands], ElementExpr]] = {
    "QLinearAdd": _add,
    "QLinearLeakyRelu": _unary(_leaky_relu),
    "QLinearMul": _multiply,
    "QLinearSigmoid": _unary(_sigmoid),
    "QLinearWhere": _where,
}
"""Operator of com.microsoft -> what it computes, in the type of its output."""
