"""Compute ArgMax of the integers instead of the floats that they stand for.

    ArgMax(DQ(x)), ArgMin(DQ(x))           ->      ArgMax(x), ArgMin(x)

The numbers grow with the integers, so that the place is the same, and so is the first or last of equal ones.

Left alone: scales by axis or block, or that are not above 0; types other than int8 and uint8; ArgMax before opset 13, which
takes floats alone in most runtimes.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.quantize import takes_bytes
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import INTEGER_OPERATORS, NO_QUANTIZATION, bytes_reason, dequantized
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["DROP_DEQUANTIZATION_BEFORE_ARGMAX"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    number = dequantized(op, x, "x")
    return op.any_of(op.ArgMax(number), op.ArgMin(number))


def _check(match: Match) -> str | None:
    if not takes_bytes(match.root):
        return f"{match.root.op_type} of opset {match.root.version} takes no integers of 8 bits"
    return bytes_reason(match, "x")


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.node(match.root.op_type, match["x"], _attributes=match.root.attributes)


DROP_DEQUANTIZATION_BEFORE_ARGMAX = Rule(
    "drop_dequantization_before_argmax",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    prepares=INTEGER_OPERATORS,
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
)
