"""Find a layer normalization that is written out.

    mean = ReduceMean(x, axes)
    d = Sub(x, mean)
    variance = ReduceMean(Pow(d, 2), axes)                 or Mul(d, d)
    n = Div(d, Sqrt(Add(variance, epsilon)))               or times the reciprocal, in its forms (normalizing.py)
    y = Mul(n, scale)                                      ->      y = LayerNormalization(x, scale) {axis, epsilon}

    n, where no constant scale follows                     ->      n = LayerNormalization(x, 1) {axis, epsilon}
    Add(LayerNormalization(x, scale), bias)                ->      LayerNormalization(x, scale, bias)

Left alone:
    axes that differ, are no constants, or are not the last ones
    scale and bias that are no constants of the shape of the normalized axes, or of another type than x
    an epsilon of more than one element
    without a scale: normalized axes of unknown size
    values between that have other users
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.normalizing import (
    Normalized,
    divided_by_root,
    normalized_by,
    ones_for,
    scale_reason,
    unscaled_reason,
)
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_LAYER_NORM", "FUSE_LAYER_NORM_BIAS", "FUSE_LAYER_NORM_UNSCALED"]


def _unscaled_pattern(op: PatternBuilder, x: Term) -> Term:
    centred = op.Sub(x, op.ReduceMean(x, op.rest("mean_axes"), _as="mean"))
    square = op.any_of(op.Pow(centred, 2), op.Mul(centred, centred))
    return divided_by_root(op, centred, op.ReduceMean(square, op.rest("variance_axes"), _as="variance"))


def _pattern(op: PatternBuilder, x: Term, scale: Term) -> Term:
    return op.Mul(_unscaled_pattern(op, x), op.constant(scale))


def _check(match: Match) -> str | Normalized:
    found = normalized_by(match, "mean", "variance")
    return found if isinstance(found, str) else scale_reason(match, found.axis) or found


def _check_unscaled(match: Match) -> str | Normalized:
    found = normalized_by(match, "mean", "variance")
    return found if isinstance(found, str) else unscaled_reason(match, found.axis) or found


def _replace(op: Builder, match: Match, learned: Normalized) -> Value:
    return op.LayerNormalization(match["x"], match["scale"], axis=learned.axis, epsilon=learned.epsilon)


def _replace_unscaled(op: Builder, match: Match, learned: Normalized) -> Value:
    ones = ones_for(op, match["x"], learned.axis)
    return op.LayerNormalization(match["x"], ones, axis=learned.axis, epsilon=learned.epsilon)


def _bias_pattern(op: PatternBuilder, x: Term, scale: Term, bias: Term) -> Term:
    return op.Add(op.LayerNormalization(x, scale, None, _as="normalization"), op.constant(bias))


def _check_bias(match: Match) -> str | None:
    scale, bias = match["scale"], match["bias"]
    if scale.shape is None or bias.shape != scale.shape or bias.dtype is not scale.dtype:
        return f"bias is {bias.dtype} {bias.shape}, expected {scale.dtype} {scale.shape}"
    return None


def _replace_bias(op: Builder, match: Match, learned: None) -> Value:
    node = match.node("normalization")
    return op.LayerNormalization(match["x"], match["scale"], match["bias"], _attributes=node.attributes, _version=node.version)


FUSE_LAYER_NORM_BIAS = Rule("fuse_layer_norm_bias", _bias_pattern, _replace_bias, _check_bias, Level.EXTENDED)
FUSE_LAYER_NORM = Rule("fuse_layer_norm", _pattern, _replace, _check, Level.EXTENDED)
FUSE_LAYER_NORM_UNSCALED = Rule(
    "fuse_layer_norm_unscaled", _unscaled_pattern, _replace_unscaled, _check_unscaled, Level.EXTENDED
)  # fmt: skip
