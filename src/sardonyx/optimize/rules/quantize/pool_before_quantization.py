"""Pool numbers instead of integers, where no provider convolves integers.

    MaxPool(Q(x))            ->      Q(MaxPool(x))
    DQ(MaxPool(x))           ->      MaxPool(DQ(x))          the pool of integers goes where all that read it do so

Quantization keeps the order, so that the largest integer is that of the largest number; NaN aside, which becomes the least
integer.

Left alone: scales by axis or block, or that are not above 0; a pool that gives places too; in the first form a Q with other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.helpers.quantized import QUANTIZATION, bytes_reason, dequantized, quantized
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["DEQUANTIZE_BEFORE_POOL", "POOL_BEFORE_QUANTIZATION"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.MaxPool(quantized(op, x, "x"))


def _check(match: Match) -> str | None:
    return bytes_reason(match, "x")


def _replace(op: Builder, match: Match, learned: None) -> Value:
    pool, quantize = match.root, match.node("x/quantize")
    pooled = op.MaxPool(match["x"], _attributes=pool.attributes, _version=pool.version)
    return op.QuantizeLinear(pooled, *quantize.inputs[1:], _attributes=quantize.attributes, _version=quantize.version)


POOL_BEFORE_QUANTIZATION = Rule(
    "pool_before_quantization",
    _pattern,
    _replace,
    _check,
    takes_apart=standard("QLinearConv") | QUANTIZATION,
    summary="Move a MaxPool of quantized numbers before the QuantizeLinear, where providers have kernels for floats.",
)


def _pool_of_integers(op: PatternBuilder, x: Term) -> Term:
    return dequantized(op, op.MaxPool(x, _as="pool", _shared=True), "y")


def _check_integers(match: Match) -> str | None:
    return bytes_reason(match, "y")


def _dequantize_first(op: Builder, match: Match, learned: None) -> Value:
    pool, dequantize = match.node("pool"), match.root
    x = op.DequantizeLinear(match["x"], *dequantize.inputs[1:], _attributes=dequantize.attributes, _version=dequantize.version)
    return op.MaxPool(x, _attributes=pool.attributes, _version=pool.version)


DEQUANTIZE_BEFORE_POOL = Rule(
    "dequantize_before_pool",
    _pool_of_integers,
    _dequantize_first,
    _check_integers,
    takes_apart=standard("QLinearConv") | QUANTIZATION,
    summary="Move a MaxPool of integers behind the DequantizeLinear, where providers have kernels for floats.",
)
