"""Element-wise operators of several inputs, which are broadcast."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import Fact, ShapeCall, known, shape_function, tensor
from sardonyx.ops.shapes.broadcast import broadcast
from sardonyx.ops.shapes.elements import elementwise, select

__all__: list[str] = []


@shape_function("Add", "Div", "Mul", "Sub", since=7)
@shape_function("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Pow", since=7)
def arithmetic(call: ShapeCall, left: Fact, right: Fact) -> Fact:
    """Broadcast the inputs; the type is that of the first."""
    return _broadcast(call, (left, right), left.dtype if left.dtype is not None or call.op_type == "Pow" else right.dtype)


@shape_function("Mod")
def mod(call: ShapeCall, left: Fact, right: Fact, *, fmod: int = 0) -> Fact:
    """Broadcast the inputs; elements are computed where the remainder takes the divisor's sign."""
    if fmod:
        return tensor(left.dtype, broadcast((left.shape, right.shape)))
    return _broadcast(call, (left, right), left.dtype)


@shape_function("Max", "Mean", "Min", "Sum")
def variadic(call: ShapeCall, first: Fact, *others: Fact | None) -> Fact:
    """Broadcast all inputs; they have one type."""
    inputs = (first, *[fact for fact in others if fact is not None])
    return _broadcast(call, inputs, next((fact.dtype for fact in inputs if fact.dtype is not None), None))


@shape_function("And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor", since=7)
def comparison(call: ShapeCall, left: Fact, right: Fact) -> Fact:
    """Broadcast the inputs; the output is bool."""
    return _broadcast(call, (left, right), DataType.BOOL)


@shape_function("Add", "Div", "Mul", "Sub", "Pow")
def arithmetic_before_7(call: ShapeCall, left: Fact, right: Fact) -> Fact:
    """Broadcast the second input to the first, whose shape is kept."""
    return tensor(left.dtype, left.shape)


@shape_function("And", "Equal", "Greater", "Less", "Or", "Xor")
def comparison_before_7(call: ShapeCall, left: Fact, right: Fact) -> Fact:
    """Broadcast the second input to the first, whose shape is kept; the output is bool."""
    return tensor(DataType.BOOL, left.shape)


@shape_function("Where")
def where(call: ShapeCall, condition: Fact, left: Fact, right: Fact) -> Fact:
    """Broadcast all inputs; elements are chosen where the condition is known or both choices agree."""
    dtype = left.dtype if left.dtype is not None else right.dtype
    shape = broadcast((condition.shape, left.shape, right.shape))
    if condition.value is not None and left.value is not None and right.value is not None:
        value = select(condition.value, left.value, right.value)
        if value is not None:
            return known(dtype, value)
    return tensor(dtype, shape)


def _broadcast(call: ShapeCall, inputs: tuple[Fact, ...], dtype: DataType | None) -> Fact:
    shape = broadcast([fact.shape for fact in inputs])
    value = elementwise(call.op_type, inputs, dtype)
    return tensor(dtype, shape) if value is None else known(dtype, value)
