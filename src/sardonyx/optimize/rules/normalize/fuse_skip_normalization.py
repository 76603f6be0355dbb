"""Add a residual where a normalization reads it.

    LayerNormalization(x + bias + skip, gamma, beta?)     ->      com.microsoft.SkipLayerNormalization(x, skip, gamma, beta, bias)
    RMSNormalization(x + bias + skip, gamma)              ->      SkipSimplifiedLayerNormalization(x, skip, gamma, bias)

with or without a bias; where others read the sum, it is the fourth output.

Left alone:
    types other than float and float16, for which the operators are not defined
    normalizations of other axes than the last, of ranks other than 2 and 3, and those whose statistics are used
    a residual of another shape than x
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.normalize import LayerNormalization
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_SKIP_NORMALIZATION", "FUSE_SKIP_NORMALIZATION_BIASED_SUM", "FUSE_SKIP_NORMALIZATION_SUM"]

_SUM = 3


def _normalized(op: PatternBuilder, total: Term, gamma: Term) -> Term:
    return op.any_of(op.LayerNormalization(total, gamma, op.optional("beta")), op.RMSNormalization(total, gamma))


def _biased(op: PatternBuilder, x: Term, skip: Term) -> Term:
    return op.Add(op.Add(x, op.constant("bias")), skip)


def _pattern(op: PatternBuilder, x: Term, skip: Term, gamma: Term) -> Term:
    return _normalized(op, op.any_of(_biased(op, x, skip), op.Add(x, skip)), gamma)


def _sum_pattern(op: PatternBuilder, x: Term, skip: Term, gamma: Term) -> tuple[Term, ...]:
    total = op.Add(x, skip)
    return _normalized(op, total, gamma), total


def _biased_sum_pattern(op: PatternBuilder, x: Term, skip: Term, gamma: Term) -> tuple[Term, ...]:
    total = _biased(op, x, skip)
    return _normalized(op, total, gamma), total


def _check(match: Match) -> str | None:
    x, skip, gamma, bias = match["x"], match["skip"], match["gamma"], match.get("bias")
    shape = x.shape
    if shape is None or len(shape) not in (2, 3) or skip.shape != shape:
        return f"x is {shape} and the residual {skip.shape}, expected the same two or three dimensions"
    view = LayerNormalization.of(match.root)
    if view.axis not in (-1, len(shape) - 1) or not view.stashes_float:
        return "it normalizes other axes than the last, or computes in another type than float"
    vectors = [value for value in (gamma, match.get("beta"), bias) if value is not None]
    if any(value.shape != shape[-1:] for value in vectors):
        return f"scale and shifts are {[value.shape for value in vectors]}, expected {shape[-1:]}"
    return fused_type_reason(x, *vectors)


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return _replace_both(op, match, learned)[0]


def _replace_both(op: Builder, match: Match, learned: None) -> tuple[Value, Value]:
    """Return the normalized values, and the sum."""
    is_layer = match.root.op_type == "LayerNormalization"
    name = "SkipLayerNormalization" if is_layer else "SkipSimplifiedLayerNormalization"
    shifts = [match.get("beta"), match.get("bias")] if is_layer else [match.get("bias")]
    while shifts and shifts[-1] is None:
        shifts.pop()
    inputs = [match["x"], match["skip"], match["gamma"], *shifts]
    count = 1 if len(match.outputs) == 1 else _SUM + 1
    epsilon = LayerNormalization.of(match.root).epsilon
    outputs = op.outputs(name, count, *inputs, _domain="com.microsoft", epsilon=epsilon)
    return outputs[0], outputs[-1]


FUSE_SKIP_NORMALIZATION = Rule(
    "fuse_skip_normalization",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    aliases=(
        "BiasSkipLayerNormFusion",
        "SkipLayerNormFusion",
    ),
    summary="Fold the addition of a residual into the normalization after it, as SkipLayerNormalization or its like.",
)
FUSE_SKIP_NORMALIZATION_BIASED_SUM = Rule(
    "fuse_skip_normalization_biased_sum",
    _biased_sum_pattern,
    _replace_both,
    _check,
    Level.EXTENDED,
    makes=microsoft("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    aliases=(
        "BiasSkipLayerNormFusion",
        "SkipLayerNormFusion",
    ),
    summary="Fold the addition of a bias and a residual whose sum has other readers into the normalization after it.",
)
FUSE_SKIP_NORMALIZATION_SUM = Rule(
    "fuse_skip_normalization_sum",
    _sum_pattern,
    _replace_both,
    _check,
    Level.EXTENDED,
    makes=microsoft("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    aliases=(
        "BiasSkipLayerNormFusion",
        "SkipLayerNormFusion",
    ),
    summary="Fold the addition of a residual whose sum has other readers into the normalization after it.",
)
