"""Write stored integers that are cast and scaled as dequantized ones.

    Mul(Cast(w), scale)                 ->      DequantizeLinear(w, scale)                for constants w of 8 bits
    Mul(Sub(Cast(w), zero), scale)      ->      DequantizeLinear(w, scale, zero)

so that weights are known to be integers: products take them as they are, or they are made floats once, and never in each run. The
numbers are the same.

Left alone:
    types other than int8, uint8 of w and float of the result
    scales that are neither one number nor one for each index of one axis of w; zeros that lie otherwise, or are no such integers
    scales and zeros that are no constants
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Value
from sardonyx.ops.views.quantize import BY_AXIS_SINCE
from sardonyx.optimize.helpers.quantized import EIGHT_BITS, limits_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["DEQUANTIZE_SCALED_WEIGHTS"]

_Learned = tuple[Array, "Array | None", int]
"""The scales, the zero points and the axis along which they go, -1 for one."""


def _pattern(op: PatternBuilder) -> Term:
    number = op.Cast(op.constant("w"), _as="cast")
    return op.Mul(op.any_of(number, op.Sub(number, op.constant("zero"))), op.constant("scale"))


def _check(match: Match) -> str | _Learned:
    w, scale = match.tensor("w"), match.tensor("scale")
    if w is None or scale is None or w.dtype not in EIGHT_BITS or scale.dtype is not DataType.FLOAT:
        return "the weights are no constants of 8 bits with scales of float"
    axis = _axis_of(scale.shape, w.shape)
    if axis is None or match.outputs[0].shape != w.shape:
        return f"scales of shape {scale.shape} go by no axis of weights of shape {w.shape}"
    zeros = match.tensor("zero") if match.get("zero") is not None else None
    if zeros is None:
        return scale.numpy().reshape(_size(axis, w.shape)), None, axis
    place = _axis_of(zeros.shape, w.shape)
    if place is None or (place >= 0 and place != axis):
        return f"zero points of shape {zeros.shape} go otherwise than scales of shape {scale.shape}"
    return _with_zeros(scale.numpy(), zeros.numpy(), w.dtype, axis, w.shape)


def _with_zeros(scale: Array, zeros: Array, dtype: DataType, axis: int, shape: tuple[int, ...]) -> str | _Learned:
    low, high = limits_of(dtype)
    whole = np.rint(zeros)
    if not ((whole == zeros) & (whole >= low) & (whole <= high)).all():
        return f"the zero points are not all integers from {low} to {high}"
    size = _size(axis, shape)
    spread = np.broadcast_to(whole.reshape(-1), size) if size else whole.reshape(())
    return scale.reshape(size), np.ascontiguousarray(spread.astype(dtype.numpy)), axis


def _axis_of(numbers: tuple[int, ...], weights: tuple[int, ...]) -> int | None:
    """Return the axis of the weights that numbers go along, -1 for one number; None where there is no such axis."""
    if all(dim == 1 for dim in numbers):
        return -1 if len(numbers) <= len(weights) else None
    padded = (1,) * (len(weights) - len(numbers)) + tuple(numbers)
    wide = [axis for axis, dim in enumerate(padded) if dim != 1]
    if len(padded) != len(weights) or len(wide) != 1 or padded[wide[0]] != weights[wide[0]]:
        return None
    return wide[0]


def _size(axis: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return () if axis < 0 else (shape[axis],)


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    scale, zeros, axis = learned
    inputs = [match["w"], scale] if zeros is None else [match["w"], scale, zeros]
    version = max(op.version("", "DequantizeLinear"), BY_AXIS_SINCE)
    return op.DequantizeLinear(*inputs, axis=None if axis < 0 else axis, _version=version)


DEQUANTIZE_SCALED_WEIGHTS = Rule("dequantize_scaled_weights", _pattern, _replace, _check)
