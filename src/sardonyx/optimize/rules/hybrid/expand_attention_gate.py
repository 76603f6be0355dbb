"""Write LinearAttentionGate of com.microsoft as what ai.onnx has for it.

    decay, beta = LinearAttentionGate(a, bias, scale, b)      ->      decay = scale * Softplus(a + bias)
                                                                      beta = Sigmoid(b)

Left alone:
    types other than float and float16; a whose last dimension is not known
    a bias or a scale that is no vector of that length
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.half_types import in_float, rounded_to
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_ATTENTION_DECAY", "EXPAND_ATTENTION_GATE"]

_MICROSOFT = "com.microsoft"


def _pattern(op: PatternBuilder, a: Term, bias: Term, scale: Term, b: Term) -> tuple[Term, ...]:
    return tuple(op.outputs(op.LinearAttentionGate(a, bias, scale, b, _domain=_MICROSOFT), 2))


def _decay_pattern(op: PatternBuilder, a: Term, bias: Term, scale: Term) -> Term:
    return op.LinearAttentionGate(a, bias, scale, op.optional("b"), _domain=_MICROSOFT)


def _check(match: Match) -> str | None:
    a = match["a"]
    for name in ("bias", "scale"):
        shape = match[name].shape
        if not a.shape or not isinstance(a.shape[-1], int) or shape != a.shape[-1:]:
            return f"{name} is {shape}, expected a vector along the last dimension of {a.shape}"
    return fused_type_reason(a)


def _decay(op: Builder, match: Match, learned: None) -> Value:
    a, bias, scale = (in_float(op, match[name]) for name in ("a", "bias", "scale"))
    return rounded_to(op, op.Mul(scale, op.Softplus(op.Add(a, bias))), match["a"])


def _both(op: Builder, match: Match, learned: None) -> tuple[Value, Value]:
    return _decay(op, match, learned), op.Sigmoid(match["b"])


EXPAND_ATTENTION_GATE = Rule("expand_attention_gate", _pattern, _both, _check, takes_apart=microsoft("LinearAttentionGate"))
EXPAND_ATTENTION_DECAY = Rule(
    "expand_attention_decay",
    _decay_pattern,
    _decay,
    _check,
    takes_apart=microsoft("LinearAttentionGate"),
    summary="Write the decay of LinearAttentionGate of com.microsoft, where it is all that is used, as what ai.onnx has for it.",
)
