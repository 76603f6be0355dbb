"""Expressions of one element, of which `@sardonyx.expression_op` makes operators that are compiled.

    from sardonyx import expr

    half = x * 0.5                          arithmetic with other expressions and numbers
    half * (1 + expr.erf(x * 0.70710678))   functions
    expr.where(x < 0, 0.01 * x, x)          a choice: an expression has no truth value in Python, as it stands for every element
    x / expr.row_sum(expr.absolute(x))      a fold of the row of the element, along the last axis

Numbers take the type of the expression beside them. Expressions of two types meet after `.to(type)`.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, Like
from sardonyx.codegen.emit.row_expr import fold_row
from sardonyx.codegen.emit.types import BOOL, F32, F64, I32, I64, Type

__all__ = [
    "BOOL",
    "F32",
    "F64",
    "I32",
    "I64",
    "ElementExpr",
    "Like",
    "Type",
    "absolute",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "floor",
    "gelu",
    "gelu_tanh",
    "is_nan",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "power",
    "round",
    "row_max",
    "row_mean",
    "row_min",
    "row_sum",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "where",
]


def _unary(name: str) -> Callable[[ElementExpr], ElementExpr]:
    build = OPERATORS[name]

    def apply(x: ElementExpr) -> ElementExpr:
        return build(x)

    apply.__name__, apply.__doc__ = name, f"Apply `{name}`, as ONNX and NumPy define it."
    return apply


absolute = _unary("abs")
acos = _unary("acos")
acosh = _unary("acosh")
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atanh = _unary("atanh")
ceil = _unary("ceil")
cos = _unary("cos")
cosh = _unary("cosh")
erf = _unary("erf")
exp = _unary("exp")
expm1 = _unary("expm1")
floor = _unary("floor")
gelu = _unary("gelu")
gelu_tanh = _unary("gelu_tanh")
is_nan = _unary("is_nan")
log = _unary("log")
log1p = _unary("log1p")
round = _unary("round")
sigmoid = _unary("sigmoid")
sign = _unary("sign")
sin = _unary("sin")
sinh = _unary("sinh")
softplus = _unary("softplus")
sqrt = _unary("sqrt")
tan = _unary("tan")
tanh = _unary("tanh")
trunc = _unary("trunc")


def maximum(x: ElementExpr, y: Like) -> ElementExpr:
    """Return the greater of two; NaN where one is."""
    return OPERATORS["max"](x, y)


def minimum(x: ElementExpr, y: Like) -> ElementExpr:
    """Return the lesser of two; NaN where one is."""
    return OPERATORS["min"](x, y)


def power(x: ElementExpr, y: Like) -> ElementExpr:
    """Raise x to the power of y."""
    return OPERATORS["power"](x, y)


def clip(x: ElementExpr, low: Like | None = None, high: Like | None = None) -> ElementExpr:
    """Move x into [low, high]; `high` wins where they cross."""
    return OPERATORS["clip"](x, low, high)


def row_sum(x: ElementExpr) -> ElementExpr:
    """Return the sum of x along the row of the element; raises TypeError where x holds no floats."""
    return fold_row("row_sum", x)


def row_mean(x: ElementExpr) -> ElementExpr:
    """Return the mean of x along the row of the element; raises TypeError where x holds no floats."""
    return fold_row("row_mean", x)


def row_max(x: ElementExpr) -> ElementExpr:
    """Return the greatest x of the row of the element, NaN where one is; raises TypeError where x holds no floats."""
    return fold_row("row_max", x)


def row_min(x: ElementExpr) -> ElementExpr:
    """Return the least x of the row of the element, NaN where one is; raises TypeError where x holds no floats."""
    return fold_row("row_min", x)


def where(condition: object, yes: Like, no: Like) -> ElementExpr:
    """Return `yes` where the condition holds, else `no`; one of them is an expression.

    Raises:
        TypeError: the condition is no expression of type BOOL, such as the result of `x == 0`: write `x.eq(0)`.
    """
    if not isinstance(condition, ElementExpr) or condition.type != BOOL:
        raise TypeError(f"where takes a condition such as x < 0 or x.eq(0), got {condition!r:.100}")
    return OPERATORS["select"](condition, yes, no)
