"""Find a root-mean-square normalization that is written out.

    m = ReduceMean(Pow(x, 2), axes)                               or Mul(x, x)
    n = Div(x, Sqrt(Add(m, epsilon)))                             or x times the reciprocal
    y = Mul(n, scale)                             ->      y = RMSNormalization(x, scale) {axis, epsilon}

Left alone:
    axes that are no constants, or are not the last ones
    a scale that is no constant of the shape of the normalized axes, or of another type than x
    an epsilon of more than one element
    values between that have other users
"""

from __future__ import annotations

import dataclasses

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.fuse_layer_norm import last_axes, number_of
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_RMS_NORM"]


def _pattern(op: PatternBuilder, x: Term, scale: Term) -> Term:
    mean = op.ReduceMean(op.any_of(op.Pow(x, 2), op.Mul(x, x)), op.rest("axes"), _as="mean")
    root = op.Sqrt(op.Add(mean, op.constant("epsilon")))
    normalized = op.any_of(op.Div(x, root), op.Mul(x, op.any_of(op.Reciprocal(root), op.Div(1, root))))
    return op.Mul(normalized, op.constant(scale))


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    axis: int
    """The first of the normalized axes, counted from the end."""
    epsilon: float
    """What is added to the mean of the squares."""


def _check(match: Match) -> str | _Learned:
    value, scale = match["x"], match["scale"]
    if value.shape is None:
        return "the rank is unknown"
    axis, epsilon = last_axes(match, match.node("mean")), number_of(match, "epsilon")
    if axis is None:
        return "the axes of the mean are not the last axes, kept"
    if epsilon is None:
        return "epsilon is not one number"
    if scale.shape != value.shape[axis:] or scale.dtype is not value.dtype:
        return f"scale is {scale.dtype} {scale.shape}, expected {value.dtype} {value.shape[axis:]}"
    return _Learned(axis, epsilon)


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    return op.RMSNormalization(match["x"], match["scale"], axis=learned.axis, epsilon=learned.epsilon)


FUSE_RMS_NORM = Rule("fuse_rms_norm", _pattern, _replace, _check, Level.EXTENDED)
