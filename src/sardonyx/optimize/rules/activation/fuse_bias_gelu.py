"""Fold the addition of a bias into the Gelu after it, as BiasGelu or FastGelu of com.microsoft.

    Gelu(x + bias)                                ->      com.microsoft.BiasGelu(x, bias)
    Gelu(x + bias) {approximate = "tanh"}         ->      com.microsoft.FastGelu(x, bias)

Left alone:
    types other than float and float16, for which the operators are not defined
    a bias that is no constant of one element per element of x's last dimension
    a sum that has other users
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_BIAS_GELU"]


def _pattern(op: PatternBuilder, x: Term, bias: Term) -> Term:
    return op.Gelu(op.Add(x, op.constant(bias)))


def _check(match: Match) -> str | None:
    x, bias = match["x"], match["bias"]
    if not x.shape or bias.shape != x.shape[-1:]:
        return f"the bias is {bias.shape}, expected one element per element of the last dimension of {x.shape}"
    return fused_type_reason(x)


def _replace(op: Builder, match: Match, learned: None) -> Value:
    is_fast = match.root.text("approximate", "none") == "tanh"
    return op.node("FastGelu" if is_fast else "BiasGelu", match["x"], match["bias"], _domain="com.microsoft")


FUSE_BIAS_GELU = Rule(
    "fuse_bias_gelu",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("BiasGelu", "FastGelu"),
    aliases=("BiasGeluFusion",),
)
