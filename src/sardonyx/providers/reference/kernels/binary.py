"""Operators of two or more tensors, element by element, with broadcasting.

A function of narrow floats (float16, bfloat16) computes in float32 and rounds once, as their ufuncs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.cancellation import checked
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.blocks import BLOCK_ELEMENTS
from sardonyx.providers.reference.algorithms.broadcast import BinaryFunction, align_old, combine
from sardonyx.providers.reference.algorithms.dimensions import check_broadcast_size
from sardonyx.providers.reference.algorithms.power import power
from sardonyx.providers.reference.algorithms.precision import quiet, require_same_type, widen
from sardonyx.providers.reference.registry import Call, KernelFunction, kernel

__all__ = ["bit_shift", "divide", "mean_of", "mod", "pow_1", "pow_7", "sum_of", "where"]


def divide(a: Array, b: Array) -> Array:
    """Divide; integers truncate toward zero, as in C, and give 0 where `b` is 0."""
    if a.dtype.kind not in "iu":
        return np.asarray(np.divide(a, b))
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "i":
        inexact = (quotient * b != a) & (b != 0)
        quotient = quotient + (inexact & ((a < 0) != (b < 0)))
    return np.asarray(quotient, a.dtype)


def _equal(a: Array, b: Array) -> Array:
    """Compare elements, texts some at a time: NumPy holds the interpreter's lock for as long as it compares them."""
    if not a.dtype.hasobject or max(a.ndim, b.ndim) == 0:
        return np.asarray(np.equal(a, b))
    left, right = np.broadcast_arrays(a, b)
    result = np.empty(left.shape, np.bool_)
    axis = int(np.argmax(left.shape))
    step = max(1, BLOCK_ELEMENTS * left.shape[axis] // max(left.size, 1))
    for start in checked(range(0, left.shape[axis], step)):
        place = (*(slice(None),) * axis, slice(start, start + step))
        np.equal(left[place], right[place], out=result[place])
    return result


_UFUNCS: dict[str, BinaryFunction] = {
    "Add": np.add,
    "And": np.logical_and,
    "Div": divide,
    "Equal": _equal,
    "Greater": np.greater,
    "Less": np.less,
    "Mul": np.multiply,
    "Or": np.logical_or,
    "Sub": np.subtract,
    "Xor": np.logical_xor,
}
"""Operators that broadcast by attributes before opset 7, and as NumPy does since."""

_NEW_UFUNCS: dict[str, BinaryFunction] = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "GreaterOrEqual": np.greater_equal,
    "LessOrEqual": np.less_equal,
}
"""Operators that came after opset 7."""


def _elementwise(function: BinaryFunction) -> KernelFunction:
    """Return the kernel of `function`: a and b of one type, broadcast together; the shape out is the broadcast shape."""

    @quiet
    def apply(_node: Call, a: Array, b: Array) -> Array:
        return combine(function, a, b)

    return apply


def _elementwise_1(function: BinaryFunction) -> KernelFunction:
    """Return the kernel of `function` before opset 7: b is broadcast to a where `broadcast` says so, from `axis`."""

    @quiet
    def apply(_node: Call, a: Array, b: Array, *, axis: int | None = None, broadcast: int = 0) -> Array:
        return combine(function, a, align_old(a, b, axis, broadcast))

    return apply


for _name, _function in _UFUNCS.items():
    kernel(_name, since=1)(_elementwise_1(_function))
    kernel(_name, since=7)(_elementwise(_function))
for _name, _function in _NEW_UFUNCS.items():
    kernel(_name)(_elementwise(_function))


@kernel("Pow", since=1)
@quiet
def pow_1(_node: Call, x: Array, y: Array, *, axis: int | None = None, broadcast: int = 0) -> Array:
    """Raise x to y, broadcast to x where `broadcast` says so, from `axis`; type and shape of x out. ONNX Pow-1."""
    return power(x, align_old(x, y, axis, broadcast))


@kernel("Pow", since=7)
@quiet
def pow_7(_node: Call, x: Array, y: Array) -> Array:
    """Raise x to y, of any numeric type; x and y broadcast together; the type of x out. ONNX Pow-7 to Pow-15."""
    return power(x, y)


@kernel("Mod")
@quiet
def mod(_node: Call, a: Array, b: Array, *, fmod: int = 0) -> Array:
    """Return the remainder, with the sign of b, or of a if `fmod`; a and b broadcast together. ONNX Mod-10, Mod-28.

    Integers give 0 where b is 0. Before opset 28 only fmod=1 took floats; fmod=0 means for them what it has meant since.
    """
    return combine(np.fmod if fmod else np.remainder, a, b)


_SHIFTS: dict[str, BinaryFunction] = {"LEFT": np.left_shift, "RIGHT": np.right_shift}


@kernel("BitShift")
@quiet
def bit_shift(_node: Call, x: Array, y: Array, *, direction: str) -> Array:
    """Shift the bits of x by y places; x and y broadcast together. ONNX BitShift-11, BitShift-28.

    Right shifts of signed integers copy the sign; a negative or too large y leaves copies of the fill bit only.
    """
    shift = _SHIFTS.get(direction)
    if shift is None:
        raise InvalidArgument(f"direction={direction!r}; expected one of {sorted(_SHIFTS)}")
    return combine(shift, x, y)


_MASKS: dict[int, type[np.signedinteger[Any]]] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
"""The integers that hold the bits of an element, by its width in bytes."""


def _choose(condition: Array, x: Array, y: Array) -> Array:
    """Return np.where, by bits: NumPy takes a branch for each element."""
    mask_type = _MASKS.get(x.dtype.itemsize)
    if mask_type is None or x.dtype.kind == "O" or condition.size < _MANY:
        return np.where(condition, x, y)
    if condition.shape != np.broadcast_shapes(x.shape, y.shape):
        return np.where(condition, x, y)
    a, b = np.asarray(x).view(mask_type), np.asarray(y).view(mask_type)
    mask = np.negative(condition.view(np.int8)).astype(mask_type)
    mask &= a ^ b
    mask ^= b
    return mask.view(x.dtype)


_MANY = 4096
"""From so many elements on, bits pay."""


@kernel("Where")
def where(_node: Call, condition: Array, x: Array, y: Array) -> Array:
    """Take x where `condition` (bool), else y; the three broadcast together; x and y of one type. ONNX Where-9, Where-16."""
    require_same_type(x, y)
    check_broadcast_size(condition, x, y)
    try:
        return _choose(condition, x, y)
    except ValueError as error:
        raise InvalidArgument(
            f"shapes {condition.shape}, {x.shape} and {y.shape} do not broadcast together; "
            "expected equal sizes, or 1, counted from the last axis"
        ) from error


def _extreme(ufunc: np.ufunc) -> KernelFunction:
    """Return the kernel that folds its inputs, of one type and broadcast together, by `ufunc`; NaN wins. ONNX Max, Min."""

    @quiet
    def apply(_node: Call, *inputs: Array) -> Array:
        result = _first(inputs)
        for x in inputs[1:]:
            result = combine(ufunc, result, x)
        return result

    return apply


kernel("Max")(_extreme(np.maximum))
kernel("Min")(_extreme(np.minimum))


@kernel("Sum")
@quiet
def sum_of(_node: Call, *inputs: Array) -> Array:
    """Add all inputs, of one type and broadcast together. ONNX Sum-1 to Sum-13."""
    return _total(inputs).astype(inputs[0].dtype, copy=False)


@kernel("Mean")
@quiet
def mean_of(_node: Call, *inputs: Array) -> Array:
    """Average all inputs, of one type and broadcast together. ONNX Mean-1 to Mean-13."""
    total = _total(inputs)
    return np.asarray(np.divide(total, total.dtype.type(len(inputs)))).astype(inputs[0].dtype, copy=False)


def _total(inputs: Sequence[Array]) -> Array:
    """Return the sum of `inputs` in their compute type, from left to right."""
    result = widen(_first(inputs))
    for x in inputs[1:]:
        result = combine(np.add, result, widen(x))
    return result


def _first(inputs: Sequence[Array]) -> Array:
    if not inputs:
        raise InvalidArgument("the node has no input; expected at least one")
    return inputs[0]
