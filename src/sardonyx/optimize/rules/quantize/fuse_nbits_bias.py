"""Fold the addition of a bias into the MatMulNBits before it.

    com.microsoft.MatMulNBits(a, b, scales, zero_points, g_idx) + bias      ->      MatMulNBits(a, b, …, bias)

The numbers are the same.

Left alone: a bias that is no constant of one element per output; products that have one, or other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_NBITS_BIAS"]

_BIAS = 5


def _pattern(op: PatternBuilder, a: Term, b: Term, scales: Term, bias: Term) -> Term:
    product = op.MatMulNBits(
        a, b, scales, op.optional("zero_points"), op.optional("groups"), _domain="com.microsoft", _as="product"
    )
    return op.Add(product, op.constant(bias))


def _check(match: Match) -> str | None:
    bias, outputs = match["bias"], match.node("product").integer("N")
    if bias.shape != (outputs,) or bias.dtype is not match["a"].dtype:
        return f"the bias is {bias.dtype} {bias.shape}, expected {match['a'].dtype} ({outputs},)"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    product = match.node("product")
    inputs = [*product.inputs, *[None] * (_BIAS - len(product.inputs)), match["bias"]]
    return op.MatMulNBits(*inputs, _domain="com.microsoft", _attributes=product.attributes)


FUSE_NBITS_BIAS = Rule("fuse_nbits_bias", _pattern, _replace, _check, Level.EXTENDED, aliases=("MatMulNBitsFusion",))
