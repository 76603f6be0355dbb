"""The known elements of small tensors: reading them as dimensions, and computing with them.

Elements are computed by NumPy in the tensor's own dtype where all are known, and one by one where some are symbolic (`Expr`) or
unknown (None). Symbolic elements are integers, also in a tensor of floats; an operation that would leave the integers
makes the element unknown. Comparisons have three outcomes: True, False and unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.ir import Dim, Expr
from sardonyx.ir.shape import anonymous, at_least_zero, maximum, minimum
from sardonyx.ops.fact import MAX_VALUE_SIZE, Fact

__all__ = [
    "MAX_WEIGHT",
    "dims_of",
    "elementwise",
    "from_dims",
    "int_of",
    "ints_of",
    "light",
    "select",
]

MAX_WEIGHT = 48
"""Largest symbolic expression kept: a longer one becomes unknown, so that no chain of operators makes expressions explode."""

Element = int | float | bool | Expr | None
"""One element of a value: a number, a symbolic integer, or unknown."""

_Operand: TypeAlias = Any
"""An Element that is no None, in arithmetic that all its kinds have, but not with one another as typing sees it."""


def light(dim: Dim) -> Dim:
    """Return `dim`, or an anonymous dimension in place of one that has grown too long."""
    return anonymous() if isinstance(dim, Expr) and dim.weight > MAX_WEIGHT else dim


def dims_of(fact: Fact | None) -> list[Dim | None] | None:
    """Return the elements of an integer tensor as dimensions, None for an unknown one; None where the tensor is unknown."""
    if fact is None or fact.value is None or fact.value.dtype.kind not in "iuO" or fact.dtype is DataType.STRING:
        return None
    elements: list[Dim | None] = fact.value.ravel().tolist()
    return elements


def ints_of(fact: Fact | None) -> tuple[int, ...] | None:
    """Return the elements of an integer tensor where all are known, in a flat tuple."""
    if fact is None or fact.constant is None or fact.constant.dtype.kind not in "iu":
        return None
    return tuple(fact.constant.ravel().tolist())


def int_of(fact: Fact | None) -> int | None:
    """Return the one element of an integer tensor, where known."""
    found = ints_of(fact)
    return found[0] if found is not None and len(found) == 1 else None


def from_dims(dims: Sequence[Dim | None], dtype: DataType = DataType.INT64) -> Array:
    """Return a 1-D value with these elements."""
    if all(isinstance(dim, int) for dim in dims):
        return np.array(dims, dtype.numpy)
    value = np.empty(len(dims), object)
    value[:] = dims
    return value


def elementwise(op_type: str, inputs: Sequence[Fact], dtype: DataType | None) -> Array | None:
    """Return the elements of an element-wise operator's output of type `dtype`, where any is known.

    Args:
        op_type: the operator; one that no table here knows gives None.
        inputs: its inputs, which are broadcast.
        dtype: the type of its output.
    """
    values = [fact.value for fact in inputs]
    if dtype is None or any(value is None or value.size > MAX_VALUE_SIZE for value in values):
        return None
    constants = [fact.constant for fact in inputs]
    if all(constant is not None for constant in constants):
        return _computed(op_type, [constant for constant in constants if constant is not None], dtype)
    function = _SYMBOLIC.get(op_type)
    if function is None:
        return None
    operands = [_exact(value) for value in values if value is not None]
    if is_float(dtype) and op_type in _WHOLE_QUOTIENT:
        function = _WHOLE_QUOTIENT[op_type]
    return np.asarray(function(*operands), dtype=object)


def _computed(op_type: str, values: list[Array], dtype: DataType) -> Array | None:
    function = _NUMERIC.get(op_type)
    if function is None or any(value.dtype == object for value in values):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(function(*values)).astype(dtype.numpy, copy=False)


def _exact(value: Array) -> Array:
    """Return `value` as an object array in which a float that is no integer is unknown."""
    if value.dtype.kind in "iub":
        return value.astype(object)
    elements = [_whole(item) for item in value.ravel().tolist()]
    exact = np.empty(len(elements), object)
    exact[:] = elements
    return exact.reshape(value.shape)


def _whole(item: Element) -> Element:
    if isinstance(item, float):
        return int(item) if item.is_integer() else None
    return item


def select(condition: Array, left: Array, right: Array) -> Array | None:
    """Return the elements of Where, where its condition is known or both choices agree."""
    if condition.size > MAX_VALUE_SIZE or left.size > MAX_VALUE_SIZE or right.size > MAX_VALUE_SIZE:
        return None
    if condition.dtype != object and left.dtype != object and right.dtype != object:
        return np.asarray(np.where(condition, left, right))
    return np.asarray(_CHOOSE(condition.astype(object), left.astype(object), right.astype(object)), dtype=object)


def _choose(condition: Element, left: Element, right: Element) -> Element:
    if condition is None:
        return left if left == right else None
    return left if condition else right


_CHOOSE = np.frompyfunc(_choose, 3, 1)


def _lifted(function: Callable[..., Any], count: int = 2) -> Callable[..., Any]:
    """Return `function` over object arrays, where an unknown operand makes an unknown result; Any as NumPy types no such ufunc."""

    def apply(*operands: Element) -> Element:
        if None in operands:
            return None
        result = function(*operands)
        return None if isinstance(result, Expr) and result.weight > MAX_WEIGHT else result

    return np.frompyfunc(apply, count, 1)


def _divide(left: _Operand, right: _Operand) -> Element:
    """Return integer division that truncates, as Div does."""
    if not isinstance(right, Expr) and right == 0:
        return None
    if isinstance(left, Expr) or isinstance(right, Expr):
        exact: Element = left // right
        return exact if _divides(right, left) or (at_least_zero(left) and at_least_zero(right)) else None
    size: int = abs(left) // abs(right)
    return size if (left >= 0) == (right >= 0) else -size


def _divide_exactly(left: _Operand, right: _Operand) -> Element:
    if not isinstance(right, Expr) and right == 0:
        return None
    quotient: Element = left // right
    return quotient if _divides(right, left) else None


def _divides(divisor: _Operand, dividend: _Operand) -> bool:
    return bool((dividend // divisor) * divisor == dividend)


def _modulo(left: _Operand, right: _Operand) -> Element:
    return None if not isinstance(right, Expr) and right <= 0 else left % right


def _less(left: _Operand, right: _Operand) -> Element:
    if at_least_zero(right - left - 1):
        return True
    return False if at_least_zero(left - right) else None


def _equal(left: _Operand, right: _Operand) -> Element:
    if left == right:
        return True
    return False if at_least_zero(left - right - 1) or at_least_zero(right - left - 1) else None


def _negated(item: Element) -> Element:
    return None if item is None else not item


def _absolute(item: _Operand) -> Element:
    result: Element = item if at_least_zero(item) else -item
    return result if at_least_zero(item) or at_least_zero(-item) else None


def _and(left: Element, right: Element) -> Element:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: Element, right: Element) -> Element:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _truncating_divide(left: Array, right: Array) -> Array:
    if left.dtype.kind not in "iu":
        return np.asarray(left / right)
    if not np.all(right):
        raise ZeroDivisionError("integer division by 0 among known elements")
    quotient = np.asarray(left // right)
    return np.asarray(quotient + ((quotient < 0) & (quotient * right != left)))


_NUMERIC: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "Ceil": np.ceil,
    "Div": _truncating_divide,
    "Equal": np.equal,
    "Floor": np.floor,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": lambda *items: _folded(np.maximum, items),
    "Min": lambda *items: _folded(np.minimum, items),
    "Mod": np.mod,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Reciprocal": np.reciprocal,
    "Round": np.rint,
    "Sign": np.sign,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Sum": lambda *items: _folded(np.add, items),
    "Xor": np.logical_xor,
}


def _folded(function: Callable[..., Any], items: Sequence[Array]) -> Any:
    """Return `function` over all items from the left; Any as it may give a NumPy scalar."""
    result: Any = items[0]
    for item in items[1:]:
        result = function(result, item)
    return result


_ADD = _lifted(lambda left, right: left + right)
_LESS = _lifted(_less)
_MAX, _MIN = _lifted(maximum), _lifted(minimum)
_NOT = np.frompyfunc(_negated, 1, 1)

_SYMBOLIC: dict[str, Callable[..., Any]] = {
    "Abs": _lifted(_absolute, 1),
    "Add": _ADD,
    "And": np.frompyfunc(_and, 2, 1),
    "Ceil": lambda x: x,
    "Div": _lifted(_divide),
    "Equal": _lifted(_equal),
    "Floor": lambda x: x,
    "Greater": lambda left, right: _LESS(right, left),
    "GreaterOrEqual": lambda left, right: _NOT(_LESS(left, right)),
    "Less": _LESS,
    "LessOrEqual": lambda left, right: _NOT(_LESS(right, left)),
    "Max": lambda *items: _folded(_MAX, items),
    "Min": lambda *items: _folded(_MIN, items),
    "Mod": _lifted(_modulo),
    "Mul": _lifted(lambda left, right: left * right),
    "Neg": _lifted(lambda item: -item, 1),
    "Not": _NOT,
    "Or": np.frompyfunc(_or, 2, 1),
    "Round": lambda x: x,
    "Sub": _lifted(lambda left, right: left - right),
    "Sum": lambda *items: _folded(_ADD, items),
}

_WHOLE_QUOTIENT = {"Div": _lifted(_divide_exactly)}
