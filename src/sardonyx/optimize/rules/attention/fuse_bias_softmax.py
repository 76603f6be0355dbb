"""Fold the addition of a bias, such as a mask, into the softmax after it, as BiasSoftmax of com.microsoft.

    Softmax(x + bias) {axis = -1}      ->      com.microsoft.BiasSoftmax(x, bias) {axis = last, is_inner_broadcast}

where the bias has a row for each row of x, or its rows repeat: each several times in a row (inner), or all of them in turn (outer):

    x: [2, 12, s, s]       bias: [2, 1, 1, s], inner       bias: [1, 1, s, s], [12, s, s], [s], outer

Only for providers that prefer the operator: onnxruntime's CPU provider lacks it, and the CPU provider here fuses the sum anyway.

Left alone:
    types other than float and float16; other axes than the last
    a bias that repeats in another way, or within a row; shapes that are not known
    a sum that has other users
"""

from __future__ import annotations

from sardonyx.ir import Shape, Value
from sardonyx.ops.views.softmax import Softmax
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_BIAS_SOFTMAX", "repeats_inner", "repeats_outer"]


def _pattern(op: PatternBuilder, x: Term, bias: Term) -> Term:
    return op.Softmax(op.Add(x, bias))


def _check(match: Match) -> str | int:
    x, bias = match["x"].shape, match["bias"].shape
    if not x or not bias or match.outputs[0].shape != x:
        return f"the shapes are {x} and {bias}, those of the sum {match.outputs[0].shape}"
    softmax = Softmax.of(match.root)
    if softmax.axis not in (-1, len(x) - 1):
        return f"the axis is {softmax.axis}, expected the last"
    if not (repeats_inner(x, bias) or repeats_outer(x, bias)):
        return f"rows of shape {bias} do not simply repeat in {x}"
    return fused_type_reason(match["x"]) or int(repeats_inner(x, bias))


def repeats_inner(x: Shape, bias: Shape) -> bool:
    """Return whether each row of a bias belongs to several neighbouring rows of x."""
    leading = _leading(x, bias)
    return leading is not None and any(leading == (*x[:count], *(1,) * (len(x) - 1 - count)) for count in range(len(x)))


def repeats_outer(x: Shape, bias: Shape) -> bool:
    """Return whether the rows of a bias belong to as many rows of x, again and again."""
    leading = _leading(x, bias)
    return leading is not None and any(leading == ((1,) * count + x[count:-1]) for count in range(len(x)))


def _leading(x: Shape, bias: Shape) -> Shape | None:
    """Return the dimensions of a bias before its rows, as many as x has; None where the rows differ."""
    if len(bias) > len(x) or bias[-1] != x[-1]:
        return None
    return (*(1,) * (len(x) - len(bias)), *bias[:-1])


def _replace(op: Builder, match: Match, is_inner: int) -> Value:
    rank = len(match["x"].shape or ())
    return op.BiasSoftmax(match["x"], match["bias"], _domain="com.microsoft", axis=rank - 1, is_inner_broadcast=is_inner)


FUSE_BIAS_SOFTMAX = Rule(
    "fuse_bias_softmax", _pattern, _replace, _check, Level.EXTENDED, makes=microsoft("BiasSoftmax"), aliases=("BiasSoftmaxFusion",)
)
