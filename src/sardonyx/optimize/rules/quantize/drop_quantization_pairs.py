"""Remove a QuantizeLinear and the DequantizeLinear that directly follows it.

    DQ(Q(x))            ->      x            for equal scales and zero points

Results change, as x is no longer rounded and limited: the session option `session.enable_quant_qdq_cleanup` asks for it.

Left alone: pairs of two scales, zero points or types; scales by axis or block; x of another type than the result.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import dequantized, scale_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import OptIn
from sardonyx.optimize.terms import Term

__all__ = ["DROP_QUANTIZATION_PAIRS"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    integers = op.QuantizeLinear(x, op.constant("q_scale"), op.optional_constant("q_zero"), _as="q/quantize", _shared=True)
    return dequantized(op, integers, "y")


def _check(match: Match) -> str | None:
    made, read = scale_of(match.node("q/quantize")), scale_of(match.node("y/dequantize"))
    if made is None or read is None or not made.equals(read):
        return "the scales differ, or are not single"
    types = match["x"].dtype, match.outputs[0].dtype
    return None if types[0] is types[1] else f"x is {types[0]}, the result {types[1]}"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return match["x"]


DROP_QUANTIZATION_PAIRS = Rule(
    "drop_quantization_pairs",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    tolerance=1.0,
    opt_in=OptIn("session.enable_quant_qdq_cleanup", "1", "what quantization rounds is left as it is"),
    aliases=("QDQFinalCleanupTransformer",),
)
