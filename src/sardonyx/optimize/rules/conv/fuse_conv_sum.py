"""Fold the addition of a tensor into the convolution before it, as FusedConv of com.microsoft.

    Conv(x, w, b?) + z                ->      com.microsoft.FusedConv(x, w, b, z)

The numbers are the same.

Left alone:
    types other than float and float16, for which the operator is not defined
    z that is broadcast, or is not known not to be
    a convolution that has other users
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

__all__ = ["FUSE_CONV_SUM"]


def _pattern(op: PatternBuilder, x: Term, w: Term, z: Term) -> Term:
    return op.Add(op.Conv(x, w, op.optional("bias"), _as="conv"), z)


def _check(match: Match) -> str | None:
    made, z = match.node("conv").output, match["z"]
    if made.shape is None or made.shape != z.shape:
        return f"what is added is {z.shape}, expected {made.shape} as the convolution gives"
    return fused_type_reason(made)


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.FusedConv(
        match["x"], match["w"], match.get("bias"), match["z"], _domain="com.microsoft", _attributes=match.node("conv").attributes
    )


FUSE_CONV_SUM = Rule(
    "fuse_conv_sum", _pattern, _replace, _check, Level.LAYOUT, makes=microsoft("FusedConv"), aliases=("ConvAddActivationFusion",)
)
