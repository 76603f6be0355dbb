"""Write normalizations that take a residual as what ai.onnx has for them.

    y, _, _, s = SkipLayerNormalization(x, skip, gamma, beta?, bias?)          ->      s = x + bias + skip
                                                                                       y = LayerNormalization(s, gamma, beta)
    y, _, _, s = SkipSimplifiedLayerNormalization(x, skip, gamma, bias?)       ->      s = x + bias + skip
                                                                                       y = RMSNormalization(s, gamma)

(com.microsoft, as other optimizers write them), so that the sum can be computed where x is stored, by any provider.

Left alone:
    types other than float and float16, for which the operators are not defined
    mean and deviation that are used
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["EXPAND_SKIP_LAYER_NORM_SUM", "EXPAND_SKIP_NORMALIZATION", "EXPAND_SKIP_RMS_NORM_SUM"]

_MICROSOFT = "com.microsoft"


def _nodes(op: PatternBuilder, x: Term, skip: Term, gamma: Term) -> tuple[Term, Term]:
    layer = op.SkipLayerNormalization(x, skip, gamma, op.optional("beta"), op.optional("bias"), _domain=_MICROSOFT)
    return layer, op.SkipSimplifiedLayerNormalization(x, skip, gamma, op.optional("bias"), _domain=_MICROSOFT)


def _pattern(op: PatternBuilder, x: Term, skip: Term, gamma: Term) -> Term:
    return op.any_of(*_nodes(op, x, skip, gamma))


def _check(match: Match) -> str | None:
    return fused_type_reason(match["x"], match.outputs[0])


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return _replace_both(op, match, learned)[0]


def _replace_both(op: Builder, match: Match, learned: None) -> tuple[Value, Value]:
    """Return the normalized values, and the sum."""
    bias, beta, epsilon = match.get("bias"), match.get("beta"), attribute_value(match.root, "epsilon")
    biased = match["x"] if bias is None else op.Add(match["x"], bias)
    total = op.Add(biased, match["skip"])
    if match.root.op_type == "SkipLayerNormalization":
        return op.LayerNormalization(total, match["gamma"], *([] if beta is None else [beta]), epsilon=epsilon), total
    return op.RMSNormalization(total, match["gamma"], epsilon=epsilon), total


def _layer_sum_pattern(op: PatternBuilder, x: Term, skip: Term, gamma: Term) -> tuple[Term, ...]:
    outputs = op.outputs(_nodes(op, x, skip, gamma)[0], 4)
    return outputs[0], outputs[3]


def _rms_sum_pattern(op: PatternBuilder, x: Term, skip: Term, gamma: Term) -> tuple[Term, ...]:
    outputs = op.outputs(_nodes(op, x, skip, gamma)[1], 4)
    return outputs[0], outputs[3]


EXPAND_SKIP_NORMALIZATION = Rule(
    "expand_skip_normalization",
    _pattern,
    _replace,
    _check,
    takes_apart=microsoft("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    takes_legal_apart=True,
    summary="Write SkipLayerNormalization and its like of com.microsoft as a sum and a normalization.",
)
EXPAND_SKIP_LAYER_NORM_SUM = Rule(
    "expand_skip_layer_norm_sum",
    _layer_sum_pattern,
    _replace_both,
    _check,
    takes_apart=microsoft("SkipLayerNormalization"),
    takes_legal_apart=True,
    summary="Write SkipLayerNormalization of com.microsoft whose sum is used as a sum and LayerNormalization.",
)
EXPAND_SKIP_RMS_NORM_SUM = Rule(
    "expand_skip_rms_norm_sum",
    _rms_sum_pattern,
    _replace_both,
    _check,
    takes_apart=microsoft("SkipSimplifiedLayerNormalization"),
    takes_legal_apart=True,
    summary="Write SkipSimplifiedLayerNormalization of com.microsoft whose sum is used as a sum and RMSNormalization.",
)
