"""Between which numbers the elements of a value lie, whatever is fed: intervals, from constants and types through arithmetic.

    Where(condition, 0.0, -3.4e38)                       [-3.4e38, 0]
    Mul(Sub(1.0, Cast(mask: int64)), -10000.0)           [-9.3e22, 9.3e22]

Interval arithmetic on the numbers of float32: its rounding is monotonous, so that the ends of an interval, rounded, are those of
the rounded results. A value that may be NaN, or of which nothing is known, lies in [-inf, inf].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from sardonyx.dtypes import DataType, bit_width, is_integer
from sardonyx.ir import Value
from sardonyx.optimize.edit import tensor_of

__all__ = ["Interval", "bounds_of"]

Interval = tuple[float, float]
"""The least and the greatest that an element may be."""

_UNKNOWN: Interval = (-math.inf, math.inf)
_DEEPEST = 12
_LARGEST_CONSTANT = 1 << 24
_INTEGERS = frozenset(dtype for dtype in DataType if is_integer(dtype) and bit_width(dtype) >= 8)
_SAME_ELEMENTS = frozenset(
    [
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    ]
)
"""Operators whose result has no elements but those of their first input."""


def bounds_of(value: Value | None, overridable: frozenset[Value] = frozenset()) -> Interval:
    """Return the interval of a value's elements; O(nodes visited), some nodes deep.

    Args:
        value: any value; None, or one of a type without numbers, is unknown.
        overridable: values that look like constants and are none.
    """
    return _bounds(value, overridable, _DEEPEST)


def _bounds(value: Value | None, overridable: frozenset[Value], depth: int) -> Interval:
    if value is None or depth == 0:
        return _UNKNOWN
    tensor = tensor_of(value, overridable)
    if tensor is not None:
        return _of_constant(tensor.numpy()) if tensor.size <= _LARGEST_CONSTANT else _UNKNOWN
    made = _of_node(value, overridable, depth)
    if made != _UNKNOWN:
        return made
    if value.dtype is DataType.BOOL:
        return (0.0, 1.0)
    if value.dtype in _INTEGERS and value.dtype is not None:
        limits = np.iinfo(value.dtype.numpy)
        return (float(limits.min), float(limits.max))
    return _UNKNOWN


def _of_constant(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Interval:
    if array.dtype.kind not in "biuf" or array.size == 0 or (array.dtype.kind == "f" and bool(np.isnan(array).any())):
        return _UNKNOWN
    return float(array.min()), float(array.max())


def _of_node(value: Value, overridable: frozenset[Value], depth: int) -> Interval:
    node = value.producer
    if node is None or node.domain:
        return _UNKNOWN

    def operand(index: int) -> Interval:
        return _bounds(node.input(index), overridable, depth - 1)

    if node.op_type in _SAME_ELEMENTS:
        return operand(0)
    if node.op_type == "Cast":
        return _rounded(operand(0)) if value.dtype is DataType.FLOAT else _UNKNOWN
    if node.op_type == "ConstantOfShape":
        filled = node.tensor("value")
        return (0.0, 0.0) if filled is None else _of_constant(filled.numpy())
    if node.op_type in ("Shape", "Size"):
        return (0.0, float(np.iinfo(np.int64).max))
    if node.op_type == "Where":
        yes, no = operand(1), operand(2)
        return min(yes[0], no[0]), max(yes[1], no[1])
    combine = _ARITHMETIC.get(node.op_type)
    return _UNKNOWN if combine is None or value.dtype is not DataType.FLOAT else _rounded(combine(operand(0), operand(1)))


def _add(left: Interval, right: Interval) -> Interval:
    return left[0] + right[0], left[1] + right[1]


def _subtract(left: Interval, right: Interval) -> Interval:
    return left[0] - right[1], left[1] - right[0]


def _multiply(left: Interval, right: Interval) -> Interval:
    corners = [one * other for one in left for other in right]
    return _UNKNOWN if any(math.isnan(corner) for corner in corners) else (min(corners), max(corners))


def _divide(left: Interval, right: Interval) -> Interval:
    return _multiply(left, (1 / right[1], 1 / right[0])) if 0 < right[0] <= right[1] < math.inf else _UNKNOWN


def _greatest(left: Interval, right: Interval) -> Interval:
    return _UNKNOWN if _UNKNOWN in (left, right) else (max(left[0], right[0]), max(left[1], right[1]))


_ARITHMETIC: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "Add": _add,
    "Div": _divide,
    "Max": _greatest,
    "Mul": _multiply,
    "Sub": _subtract,
}


def _rounded(interval: Interval) -> Interval:
    """Return the interval as float32 holds it; unknown where an operation on infinities may have made NaN."""
    low, high = interval
    if math.isnan(low) or math.isnan(high):
        return _UNKNOWN
    with np.errstate(over="ignore"):
        return float(np.float32(low)), float(np.float32(high))
