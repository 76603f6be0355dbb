"""Write the activations of com.microsoft as what ai.onnx has for them.

    BiasGelu(x, bias)                   ->      Gelu(x + bias)
    Gelu(x)                             ->      Gelu(x)
    FastGelu(x, bias?)                  ->      Gelu(x + bias) {approximate = "tanh"}
    QuickGelu(x) {alpha}                ->      Swish(x) {alpha}

so that any provider computes them, and where it stores what is before.

Left alone:
    types other than float and float16, for which the operators are not defined
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["EXPAND_GELUS"]

_MICROSOFT = "com.microsoft"


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.any_of(
        op.BiasGelu(x, op.optional("bias"), _domain=_MICROSOFT),
        op.Gelu(x, _domain=_MICROSOFT),
        op.FastGelu(x, op.optional("bias"), _domain=_MICROSOFT),
        op.QuickGelu(x, _domain=_MICROSOFT),
    )


def _check(match: Match) -> str | None:
    return fused_type_reason(match["x"])


def _replace(op: Builder, match: Match, learned: None) -> Value:
    bias, node = match.get("bias"), match.root
    x = match["x"] if bias is None else op.Add(match["x"], bias)
    if node.op_type == "QuickGelu":
        return op.Swish(x, alpha=float(attribute_value(node, "alpha")))
    return op.Gelu(x, approximate="tanh" if node.op_type == "FastGelu" else None)


EXPAND_GELUS = Rule(
    "expand_gelus",
    _pattern,
    _replace,
    _check,
    takes_apart=microsoft("BiasGelu", "FastGelu", "Gelu", "QuickGelu"),
    takes_legal_apart=True,
)
