"""Pool numbers instead of integers, where providers have kernels for floats.

    MaxPool(Q(x))            ->      Q(MaxPool(x))

Quantization keeps the order, so that the largest integer is that of the largest number; NaN aside, which is no number and the least
integer.

Left alone: scales by axis or block, or that are not above 0; a pool that gives places too; Q that has other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.quantized import bytes_reason, quantized
from sardonyx.optimize.terms import Term

__all__ = ["POOL_BEFORE_QUANTIZATION"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.MaxPool(quantized(op, x, "x"))


def _check(match: Match) -> str | None:
    return bytes_reason(match, "x")


def _replace(op: Builder, match: Match, learned: None) -> Value:
    pool, quantize = match.root, match.node("x/quantize")
    pooled = op.MaxPool(match["x"], _attributes=pool.attributes, _version=pool.version)
    return op.QuantizeLinear(pooled, *quantize.inputs[1:], _attributes=quantize.attributes, _version=quantize.version)


POOL_BEFORE_QUANTIZATION = Rule("pool_before_quantization", _pattern, _replace, _check)
