"""Find a layer normalization that is written out.

    mean = ReduceMean(x, axes)
    d = Sub(x, mean)
    variance = ReduceMean(Pow(d, 2), axes)                 or Mul(d, d)
    n = Div(d, Sqrt(Add(variance, epsilon)))
    y = Mul(n, scale)                                      ->      y = LayerNormalization(x, scale) {axis, epsilon}

    Add(LayerNormalization(x, scale), bias)                ->      LayerNormalization(x, scale, bias)

Left alone:
    axes that differ, are no constants, or are not the last ones
    scale and bias that are no constants of the shape of the normalized axes, or of another type than x
    an epsilon of more than one element
    values between that have other users
"""

from __future__ import annotations

import dataclasses

from sardonyx.ir import Node, Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["FUSE_LAYER_NORM", "FUSE_LAYER_NORM_BIAS", "last_axes", "number_of"]


def _pattern(op: PatternBuilder, x: Term, scale: Term) -> Term:
    centred = op.Sub(x, op.ReduceMean(x, op.rest("mean_axes"), _as="mean"))
    square = op.any_of(op.Pow(centred, 2), op.Mul(centred, centred))
    variance = op.ReduceMean(square, op.rest("variance_axes"), _as="variance")
    normalized = op.Div(centred, op.Sqrt(op.Add(variance, op.constant("epsilon"))))
    return op.Mul(normalized, op.constant(scale))


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    axis: int
    """The first of the normalized axes, counted from the end."""
    epsilon: float
    """What is added to the variance."""


def _check(match: Match) -> str | _Learned:
    value, scale = match["x"], match["scale"]
    if value.shape is None:
        return "the rank is unknown"
    axis, other = last_axes(match, match.node("mean")), last_axes(match, match.node("variance"))
    if axis is None or axis != other:
        return "the axes of the means are not the same last axes, kept"
    epsilon = number_of(match, "epsilon")
    if epsilon is None:
        return "epsilon is not one number"
    if scale.shape != value.shape[axis:] or scale.dtype is not value.dtype:
        return f"scale is {scale.dtype} {scale.shape}, expected {value.dtype} {value.shape[axis:]}"
    return _Learned(axis, epsilon)


def last_axes(match: Match, node: Node) -> int | None:
    """The first axis, counted from the end, of a reduction over the last axes that keeps them; None for any other."""
    value = node.inputs[0]
    axes = node.get("axes")
    if axes is None:
        found = small_constant(node.input(1), match.place.overridable)
        axes = None if found is None else found.tolist()
    if not axes or value is None or value.shape is None or not attribute_value(node, "keepdims"):
        return None
    rank = len(value.shape)
    ordered = sorted(axis - rank if axis >= 0 else axis for axis in axes)
    return ordered[0] if ordered == list(range(-len(ordered), 0)) else None


def number_of(match: Match, name: str) -> float | None:
    """The constant bound to `name` where it has one element, else None."""
    array = match.constant(name, 1)
    return None if array is None or array.size != 1 else float(array.reshape(()))


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    return op.LayerNormalization(match["x"], match["scale"], axis=learned.axis, epsilon=learned.epsilon)


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
