"""What the rules that find normalizations share: how a value is divided by the root of a mean, over which axes, plus what.

    Div(value, root)      Mul(value, Reciprocal(root))      Mul(value, Div(1, root))      Mul(value, Pow(mean + epsilon, -0.5))

with root = Sqrt(mean + epsilon) or Pow(mean + epsilon, 0.5); without an epsilon it is 0. A mean is a ReduceMean, or over all axes
but the first two a GlobalAveragePool. A scale may multiply the quotient, or the reciprocal before it multiplies the value.
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Node, Value
from sardonyx.ops.views.inputs import COMPUTED
from sardonyx.ops.views.reduce import Reduce
from sardonyx.optimize.edit import tensor_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.terms import Term

__all__ = [
    "Normalized",
    "divided_by_root",
    "inverse_root",
    "mean_of",
    "normalized_by",
    "ones_for",
    "scale_reason",
    "scaled",
    "unscaled_reason",
]


@dataclasses.dataclass(frozen=True, slots=True)
class Normalized:
    """Over what a normalization goes."""

    axis: int
    """The first of the normalized axes, counted from the end."""
    epsilon: float
    """What is added to the mean under the root."""


def mean_of(op: PatternBuilder, value: Term, name: str) -> Term:
    """Return a mean of `value`, whose node is captured by `name`."""
    return op.any_of(op.ReduceMean(value, op.rest(f"{name}_axes"), _as=name), op.GlobalAveragePool(value, _as=name))


def _shifted(op: PatternBuilder, mean: Term) -> Term:
    return op.any_of(op.Add(mean, op.constant("epsilon")), mean)


def _root(op: PatternBuilder, shifted: Term) -> Term:
    return op.any_of(op.Sqrt(shifted), op.Pow(shifted, op.number(0.5)))


def inverse_root(op: PatternBuilder, mean: Term) -> Term:
    """Return 1 divided by the root of `mean` and the constant "epsilon"."""
    shifted = _shifted(op, mean)
    root = _root(op, shifted)
    return op.any_of(op.Reciprocal(root), op.Div(1, root), op.Pow(shifted, op.number(-0.5)))


def divided_by_root(op: PatternBuilder, value: Term, mean: Term) -> Term:
    """Return `value` divided by the root of `mean` and the constant "epsilon"."""
    return op.any_of(op.Div(value, _root(op, _shifted(op, mean))), op.Mul(value, inverse_root(op, mean)))


def scaled(op: PatternBuilder, value: Term, mean: Term, scale: Term) -> Term:
    """Return the same times the constant `scale`."""
    quotient = op.Mul(divided_by_root(op, value, mean), op.constant(scale))
    return op.any_of(quotient, op.Mul(value, op.Mul(inverse_root(op, mean), op.constant(scale))))


def normalized_by(match: Match, *means: str) -> Normalized | str:
    """Return over what the nodes `means` of a match go, all over the same axes; or why that is no normalization."""
    value = match["x"]
    if value.shape is None:
        return "the rank is unknown"
    axes = {_last_axes(match, match.node(name)) for name in means}
    axis = axes.pop()
    if axis is None or axes:
        return "the axes of the means are not the same last axes, kept"
    epsilon = 0.0 if match.get("epsilon") is None else _number_of(match, "epsilon")
    return "epsilon is not one number" if epsilon is None else Normalized(axis, epsilon)


def _last_axes(match: Match, node: Node) -> int | None:
    """Return the first axis, counted from the end, of a mean over the last axes that keeps them; None for any other."""
    value = node.inputs[0]
    if node.op_type == "GlobalAveragePool":
        return 2 - len(value.shape) if value is not None and value.shape is not None else None
    view = Reduce.of(node, match.inputs(node))
    if not view.axes or view.axes is COMPUTED or value is None or value.shape is None or not view.keeps_axes:
        return None
    rank = len(value.shape)
    first, *_ = places = view.places(rank) or ()
    return first - rank if list(places) == list(range(first, rank)) else None


def _number_of(match: Match, name: str) -> float | None:
    array = match.constant(name, 1)
    return None if array is None or array.size != 1 else float(array.reshape(()))


def scale_reason(match: Match, axis: int) -> str | None:
    """Return why "scale" is no scale for "x" normalized from `axis` on; None where it is one."""
    value, scale = match["x"], match["scale"]
    wanted = (value.shape or ())[axis:]
    if scale.shape != wanted or scale.dtype is not value.dtype:
        return f"scale is {scale.dtype} {scale.shape}, expected {value.dtype} {wanted}"
    return None


def unscaled_reason(match: Match, axis: int) -> str | None:
    """Return why "x", normalized from `axis` on, is not to be given a scale of ones; None where it is."""
    value, result = match["x"], match.outputs[0]
    if value.dtype is None or result.shape != value.shape or not all(isinstance(dim, int) for dim in (value.shape or ())[axis:]):
        return "the size of the normalized axes is not known"
    users = [user for user, _ in result.uses if isinstance(user, Node)]
    if any(user.op_type == "Mul" and any(tensor_of(other) is not None for other in user.inputs) for user in users):
        return "a constant scale follows, with which another rule replaces it"
    return None


def ones_for(op: Builder, value: Value, axis: int) -> Value:
    """Return a scale of ones for `value` normalized from `axis` on."""
    if value.dtype is None:
        raise ValueError("the type of the value is unknown; ask unscaled_reason first")
    sizes = [int(str(dim)) for dim in (value.shape or ())[axis:]]
    return op.constant(np.ones(sizes, value.dtype.numpy))
