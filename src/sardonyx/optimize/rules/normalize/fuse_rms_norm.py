"""Find a root-mean-square normalization that is written out.

    m = ReduceMean(Pow(x, 2), axes)                               or Mul(x, x)
    n = Div(x, Sqrt(Add(m, epsilon)))                             or times the reciprocal, in its forms (normalizing.py)
    y = Mul(n, scale)                             ->      y = RMSNormalization(x, scale) {axis, epsilon}
    y = Mul(x, Mul(Reciprocal(Sqrt(…)), scale))   ->      y = RMSNormalization(x, scale) {axis, epsilon}

    n, where no constant scale follows            ->      n = RMSNormalization(x, 1) {axis, epsilon}

Left alone:
    axes that are no constants, or are not the last ones
    a scale that is no constant of the shape of the normalized axes, or of another type than x
    an epsilon of more than one element
    without a scale: normalized axes of unknown size
    values between that have other users
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.normalizing import (
    Normalized,
    divided_by_root,
    mean_of,
    normalized_by,
    ones_for,
    scale_reason,
    scaled,
    unscaled_reason,
)
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_RMS_NORM", "FUSE_RMS_NORM_UNSCALED"]


def _mean_square(op: PatternBuilder, x: Term) -> Term:
    return mean_of(op, op.any_of(op.Pow(x, 2), op.Mul(x, x)), "mean")


def _unscaled_pattern(op: PatternBuilder, x: Term) -> Term:
    return divided_by_root(op, x, _mean_square(op, x))


def _pattern(op: PatternBuilder, x: Term, scale: Term) -> Term:
    return scaled(op, x, _mean_square(op, x), scale)


def _check(match: Match) -> str | Normalized:
    found = normalized_by(match, "mean")
    return found if isinstance(found, str) else scale_reason(match, found.axis) or found


def _check_unscaled(match: Match) -> str | Normalized:
    found = normalized_by(match, "mean")
    return found if isinstance(found, str) else unscaled_reason(match, found.axis) or found


def _replace(op: Builder, match: Match, learned: Normalized) -> Value:
    return op.RMSNormalization(match["x"], match["scale"], axis=learned.axis, epsilon=learned.epsilon)


def _replace_unscaled(op: Builder, match: Match, learned: Normalized) -> Value:
    ones = ones_for(op, match["x"], learned.axis)
    return op.RMSNormalization(match["x"], ones, axis=learned.axis, epsilon=learned.epsilon)


FUSE_RMS_NORM = Rule(
    "fuse_rms_norm",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    aliases=("SimplifiedLayerNormFusion",),
    summary="Replace a root-mean-square normalization that is written out, with its scale, by RMSNormalization.",
)
FUSE_RMS_NORM_UNSCALED = Rule(
    "fuse_rms_norm_unscaled",
    _unscaled_pattern,
    _replace_unscaled,
    _check_unscaled,
    Level.EXTENDED,
    aliases=("SimplifiedLayerNormFusion",),
    summary="Replace a root-mean-square normalization that is written out, without a scale, by RMSNormalization.",
)
