"""Element-wise expressions computed with NumPy: what custom operators that are expressions mean.

A tree is evaluated node by node over whole arrays, in the type of each node; 16-bit floats are read and rounded only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.codegen.emit.expr import ElementExpr, argument, number
from sardonyx.codegen.emit.row_expr import ROW_FOLDS
from sardonyx.codegen.emit.types import F32, Type, of_dtype
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.providers.expressions import DATA_TYPES, ElementwiseExpression, expression_of
from sardonyx.providers.reference.algorithms.blocks import map_blocks
from sardonyx.providers.reference.algorithms.erf import erf_into
from sardonyx.providers.reference.registry import Call, Kernel, find_kernel

__all__ = ["evaluate_expression", "kernel_of"]

_MANY = 1 << 30


def kernel_of(node: Node) -> Kernel | None:
    """Return the kernel of a node: its operator's expression where the session knows it as one, else the registered one."""
    expression = expression_of(node)
    if expression is None:
        return find_kernel(node.domain, node.op_type, node.version)
    return Kernel(_kernel(expression, node), node.op_type, node.domain, node.version, frozenset(), frozenset(), _MANY, None)


def _kernel(expression: ElementwiseExpression, node: Node) -> Callable[..., Array]:
    attributes = dict(node.attributes)

    def compute(call: Call, *inputs: Array | None) -> Array:
        operands = [None if x is None else argument(index, of_dtype(x.dtype)) for index, x in enumerate(inputs)]
        shape = np.broadcast_shapes(*(x.shape for x in inputs if x is not None))
        made = evaluate_expression(expression.apply(attributes, operands), inputs, shape[-1] if shape else 1)
        return np.array(np.broadcast_to(made, shape))

    return compute


def evaluate_expression(expr: ElementExpr, arrays: Sequence[Array | None], length: int = 1) -> Array:
    """Return what `expr` is for every element of `arrays`, its arguments, broadcast to one another, with rows of `length` elements.

    Raises:
        InvalidArgument: it reads an argument that is left out.
    """
    steps, (result,) = number([expr])
    made: list[Array] = []
    for step in steps:
        dtype = DATA_TYPES[step.type].numpy
        if step.primitive == "argument":
            array = arrays[int(step.expr.value)]
            if array is None:
                raise InvalidArgument(f"its expression reads input {step.value}, which is left out")
            made.append(array)
        elif step.primitive == "constant":
            made.append(np.asarray(step.expr.value).astype(dtype))
        elif step.primitive in ROW_FOLDS:
            made.append(_fold_rows(step.primitive, made[step.operands[0]], length).astype(dtype, copy=False))
        else:
            made.append(
                _PRIMITIVES[step.primitive](step.type, *(made[operand] for operand in step.operands)).astype(dtype, copy=False)
            )
    return made[result]


def _fold_rows(way: str, x: Array, length: int) -> Array:
    """Fold x along its last axis, which is broadcast to `length`, and keep the axis; sums in float64."""
    rows = np.broadcast_to(x, np.broadcast_shapes(x.shape, (length,)))
    if way in ("row_max", "row_min"):
        fold, least = (np.max, -np.inf) if way == "row_max" else (np.min, np.inf)
        return np.asarray(fold(rows, axis=-1, keepdims=True, initial=least))
    total = np.sum(rows, axis=-1, keepdims=True, dtype=np.float64)
    return np.asarray(total / length if way == "row_mean" else total)


def _plain(function: Callable[..., object]) -> Callable[..., Array]:
    return lambda kind, *operands: np.asarray(function(*operands))


def _wide(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """Return a function that is computed in float64."""
    return lambda kind, x: np.asarray(function(x.astype(np.float64)))


def _cast(kind: Type, x: Array) -> Array:
    dtype = DATA_TYPES[kind].numpy
    return x != 0 if dtype == np.bool_ else x.astype(dtype)


def _div(kind: Type, x: Array, y: Array) -> Array:
    """Return quotients; of integers truncated towards zero, and 0 for a divisor of 0."""
    if not kind.is_integer:
        return np.asarray(x / y)
    floor = np.floor_divide(x, y)
    inexact = (floor * y != x) & ((x < 0) != (y < 0)) & (y != 0)
    return np.where(y == 0, np.zeros_like(floor), floor + inexact.astype(floor.dtype))


def _multiply_add(kind: Type, x: Array, y: Array, z: Array) -> Array:
    """Return x y + z; of float32, rounded once, as float64 holds the product."""
    return np.asarray(x.astype(np.float64) * y + z if kind == F32 else x * y + z)


def _round_saturated(kind: Type, x: Array, zero: Array, least: Array, greatest: Array) -> Array:
    """Return rounded numbers plus `zero`, saturated; NaN is the least number."""
    shifted = np.clip(np.rint(x), least, greatest) + zero
    return np.where(np.isnan(shifted), least + zero, shifted)


def _shift(function: Callable[..., Any]) -> Callable[..., Array]:
    """Return a shift that gives 0 by the type's width or more."""
    return lambda kind, x, y: np.where((y >= 0) & (y < kind.bits), function(x, np.clip(y, 0, kind.bits - 1)), np.zeros_like(x))


def _erf(x: Array) -> Array:
    return map_blocks(erf_into, x)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1 / (1 + small), small / (1 + small)))


def _gelu(x: Array) -> Array:
    return np.asarray(x * 0.5 * (1 + _erf(x * np.sqrt(0.5))))


def _gelu_tanh(x: Array) -> Array:
    """Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, section 2."""
    return np.asarray(x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


_NUMPY: Mapping[str, Callable[..., object]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "add": np.add,
    "and": np.bitwise_and,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "eq": np.equal,
    "exp": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "ge": np.greater_equal,
    "gt": np.greater,
    "is_nan": np.isnan,
    "le": np.less_equal,
    "log": np.log,
    "log1p": np.log1p,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.bitwise_not,
    "or": np.bitwise_or,
    "power": np.power,
    "remainder": np.fmod,
    "round": np.rint,
    "select": np.where,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "sub": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "xor": np.bitwise_xor,
}
"""Primitives that one function of NumPy is."""

_PRIMITIVES: Mapping[str, Callable[..., Array]] = {
    "cast": _cast,
    "div": _div,
    "shift_left": _shift(np.left_shift),
    "shift_right": _shift(np.right_shift),
    "erf": _wide(_erf),
    "multiply_add": _multiply_add,
    "quotient": lambda kind, x, divisor, inverse: np.asarray(x / divisor),
    "round_saturated": _round_saturated,
    "gelu": _wide(_gelu),
    "gelu_tanh": _wide(_gelu_tanh),
    "sigmoid": _wide(_sigmoid),
    "softplus": _wide(lambda x: np.logaddexp(0, x)),
    **{name: _plain(function) for name, function in _NUMPY.items()},
}
"""Primitive -> f(type of the result, operands)."""
