"""Find a layer normalization that is written out.

    mean = ReduceMean(x, axes)
    d = Sub(x, mean)
    variance = ReduceMean(Pow(d, 2), axes)                 or Mul(d, d)
    n = Div(d, Sqrt(Add(variance, epsilon)))               or times the reciprocal, in its forms (normalizing.py)
    y = Mul(n, scale)                                      ->      y = LayerNormalization(x, scale) {axis, epsilon}

    n, where no constant scale follows                     ->      n = LayerNormalization(x, 1) {axis, epsilon}

    w = Mul(Reciprocal(Sqrt(Add(variance, epsilon))), scale)
    y = Add(Mul(x, w), Sub(bias, Mul(mean, w)))            ->      y = LayerNormalization(x, scale, bias) {axis, epsilon}

    Mul(LayerNormalization(x, scale), factor)              ->      LayerNormalization(x, scale * factor)
    Add(LayerNormalization(x, scale), bias)                ->      LayerNormalization(x, scale, bias)

Left alone:
    axes that differ, are no constants, or are not the last ones
    scale and bias that are no constants of the shape of the normalized axes, or of another type than x
    an epsilon of more than one element
    without a scale: normalized axes of unknown size
    values between that have other users
"""

from __future__ import annotations

from sardonyx.dtypes import Array
from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.normalizing import (
    Normalized,
    divided_by_root,
    inverse_root,
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

__all__ = ["FUSE_LAYER_NORM", "FUSE_LAYER_NORM_AFFINE", "FUSE_LAYER_NORM_BIAS", "FUSE_LAYER_NORM_SCALE", "FUSE_LAYER_NORM_UNSCALED"]

_MOST_SCALES = 1 << 16


def _variance(op: PatternBuilder, centred: Term) -> Term:
    return mean_of(op, op.any_of(op.Pow(centred, 2), op.Mul(centred, centred)), "variance")


def _unscaled_pattern(op: PatternBuilder, x: Term) -> Term:
    centred = op.Sub(x, mean_of(op, x, "mean"))
    return divided_by_root(op, centred, _variance(op, centred))


def _pattern(op: PatternBuilder, x: Term, scale: Term) -> Term:
    centred = op.Sub(x, mean_of(op, x, "mean"))
    return scaled(op, centred, _variance(op, centred), scale)


def _affine_pattern(op: PatternBuilder, x: Term, scale: Term, bias: Term) -> Term:
    mean = mean_of(op, x, "mean")
    weight = op.Mul(inverse_root(op, _variance(op, op.Sub(x, mean))), op.constant(scale))
    shift = op.any_of(op.Sub(op.constant(bias), op.Mul(mean, weight)), op.Add(op.Mul(op.Neg(mean), weight), op.constant(bias)))
    return op.Add(op.Mul(x, weight), shift)


def _check(match: Match) -> str | Normalized:
    found = normalized_by(match, "mean", "variance")
    return found if isinstance(found, str) else scale_reason(match, found.axis) or found


def _check_unscaled(match: Match) -> str | Normalized:
    found = normalized_by(match, "mean", "variance")
    return found if isinstance(found, str) else unscaled_reason(match, found.axis) or found


def _check_affine(match: Match) -> str | Normalized:
    return _check_bias(match) or _check(match)


def _replace(op: Builder, match: Match, learned: Normalized) -> Value:
    bias = match.get("bias")
    operands = [match["x"], match["scale"], *([] if bias is None else [bias])]
    return op.LayerNormalization(*operands, axis=learned.axis, epsilon=learned.epsilon)


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


def _scale_pattern(op: PatternBuilder, x: Term, scale: Term, factor: Term) -> Term:
    return op.Mul(op.LayerNormalization(x, op.constant(scale), None, _as="normalization"), op.constant(factor))


def _check_scale(match: Match) -> str | Array:
    scale, factor = match["scale"], match["factor"]
    if scale.shape is None or factor.shape != scale.shape or factor.dtype is not scale.dtype:
        return f"the factor is {factor.dtype} {factor.shape}, expected {scale.dtype} {scale.shape}"
    arrays = [match.constant(name, _MOST_SCALES) for name in ("scale", "factor")]
    return "the scale is too large to compute" if arrays[0] is None or arrays[1] is None else arrays[0] * arrays[1]


def _replace_scale(op: Builder, match: Match, scale: Array) -> Value:
    node = match.node("normalization")
    return op.LayerNormalization(match["x"], op.constant(scale), _attributes=node.attributes, _version=node.version)


FUSE_LAYER_NORM_AFFINE = Rule(
    "fuse_layer_norm_affine",
    _affine_pattern,
    _replace,
    _check_affine,
    Level.EXTENDED,
    summary="Replace a layer normalization that is written out as one product and one sum by LayerNormalization.",
)
FUSE_LAYER_NORM_SCALE = Rule(
    "fuse_layer_norm_scale",
    _scale_pattern,
    _replace_scale,
    _check_scale,
    Level.EXTENDED,
    summary="Fold a constant factor into the LayerNormalization before it.",
)
FUSE_LAYER_NORM_BIAS = Rule(
    "fuse_layer_norm_bias",
    _bias_pattern,
    _replace_bias,
    _check_bias,
    Level.EXTENDED,
    aliases=(
        "LayerNormFusion",
        "LayerNormFusionL1",
        "LayerNormFusionL2",
    ),
    summary="Fold the addition of a constant into the LayerNormalization before it.",
)
FUSE_LAYER_NORM = Rule(
    "fuse_layer_norm",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    aliases=(
        "LayerNormFusion",
        "LayerNormFusionL1",
        "LayerNormFusionL2",
    ),
    summary="Replace a layer normalization that is written out, with its scale, by LayerNormalization.",
)
FUSE_LAYER_NORM_UNSCALED = Rule(
    "fuse_layer_norm_unscaled",
    _unscaled_pattern,
    _replace_unscaled,
    _check_unscaled,
    Level.EXTENDED,
    aliases=(
        "LayerNormFusion",
        "LayerNormFusionL1",
        "LayerNormFusionL2",
    ),
    summary="Replace a layer normalization that is written out, without a scale, by LayerNormalization.",
)
