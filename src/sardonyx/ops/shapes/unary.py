"""Element-wise operators of one input."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import Fact, ShapeCall, known, shape_function, tensor
from sardonyx.ops.shapes.elements import elementwise

__all__: list[str] = []


@shape_function(
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Log",
    "Sin",
    "Sinh",
    "Tan",
    "Tanh",
)
def same_shape(call: ShapeCall, x: Fact) -> Fact:
    """Give the output the shape and type of the input."""
    return tensor(x.dtype, x.shape)


@shape_function("Abs", "Ceil", "Floor", "Neg", "Not", "Reciprocal", "Round", "Sign", "Sqrt")
def computed(call: ShapeCall, x: Fact) -> Fact:
    """Give the output the shape and type of the input, and known elements are computed."""
    value = None if x.value is None else elementwise(call.op_type, (x,), x.dtype)
    return tensor(x.dtype, x.shape) if value is None else known(x.dtype, value)


@shape_function("IsInf", "IsNaN")
def predicate(call: ShapeCall, x: Fact) -> Fact:
    """Give the output bool in the input's shape."""
    return tensor(DataType.BOOL, x.shape)
