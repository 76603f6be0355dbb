"""Move elements as integers: bring quantization to both sides of operators that only move them.

    f(DQ(x))             ->      DQ(Q(f(DQ(x))))         DQ goes on behind f
    Q(f(x))              ->      Q(f(DQ(Q(x))))          Q comes before f

    f: Flatten, Gather, MaxPool, Reshape, Slice, Squeeze, Transpose, Unsqueeze and others of `skip_requantization.MOVES`

after which `skip_requantization_of_moves` lets f move integers. The scales are those that are there, so the numbers are the same.

Left alone:
    f that is quantized on both sides, or read by nobody but a graph
    f that does not take integers; scales by axis or block; types other than int8 and uint8
    in front of Q: f that has other users, or whose input has another type than float
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import (
    INTEGER_OPERATORS,
    NO_QUANTIZATION,
    bytes_reason,
    dequantized,
    quantized,
    zero_point_of,
)
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.quantize.skip_requantization import MOVES, takes_integers
from sardonyx.optimize.terms import Term

__all__ = ["PROPAGATE_DEQUANTIZATION", "PROPAGATE_QUANTIZATION"]


def _after(op: PatternBuilder, x: Term) -> Term:
    number = dequantized(op, x, "x")
    return op.any_of(*(op.node(name, number, op.rest("operands"), _as="move") for name in MOVES))


def _check_after(match: Match) -> str | None:
    users = [user for user, _ in match.outputs[0].uses]
    if not any(isinstance(user, Node) for user in users):
        return "no node reads the result"
    if any(isinstance(user, Node) and user.op_type == "QuantizeLinear" for user in users):
        return "the result is quantized"
    return bytes_reason(match, "x") or (None if takes_integers(match.root) else f"{match.root.op_type} does not move integers")


def _quantize_after(op: Builder, match: Match, learned: None) -> Value:
    move, dequantize = match.root, match.node("x/dequantize")
    moved = op.node(
        move.op_type, dequantize.outputs[0], *match.rest("operands"), _attributes=move.attributes, _version=move.version
    )
    return _pair(op, moved, dequantize)


PROPAGATE_DEQUANTIZATION = Rule(
    "propagate_dequantization",
    _after,
    _quantize_after,
    _check_after,
    Level.EXTENDED,
    prepares=INTEGER_OPERATORS,
    opt_out=NO_QUANTIZATION,
    aliases=("QDQPropagationTransformer",),
    summary="Quantize and dequantize again behind an operator that only moves elements, where its input is dequantized.",
)


def _before(op: PatternBuilder, x: Term) -> Term:
    return quantized(op, op.any_of(*(op.node(name, x, op.rest("operands"), _as="move") for name in MOVES)), "y")


def _check_before(match: Match) -> str | None:
    x, move = match["x"], match.node("move")
    if x.producer is not None and x.producer.op_type == "DequantizeLinear":
        return "the input is dequantized"
    if x.dtype is not DataType.FLOAT:
        return f"the input is {x.dtype}, expected float"
    return bytes_reason(match, "y") or (None if takes_integers(move) else f"{move.op_type} does not move integers")


def _quantize_before(op: Builder, match: Match, learned: None) -> Value:
    move, quantize = match.node("move"), match.root
    made = op.node(
        move.op_type, _pair(op, match["x"], quantize), *match.rest("operands"), _attributes=move.attributes, _version=move.version
    )
    return op.QuantizeLinear(made, *quantize.inputs[1:], _attributes=quantize.attributes, _version=quantize.version)


def _pair(op: Builder, x: Value, node: Node) -> Value:
    """Return DQ(Q(x)) with the scale and zero point of `node`."""
    scale, zero_point, version = node.inputs[1], zero_point_of(op, node), node.version
    return op.DequantizeLinear(op.QuantizeLinear(x, scale, zero_point, _version=version), scale, zero_point, _version=version)


PROPAGATE_QUANTIZATION = Rule(
    "propagate_quantization",
    _before,
    _quantize_before,
    _check_before,
    Level.EXTENDED,
    prepares=INTEGER_OPERATORS,
    opt_out=NO_QUANTIZATION,
    aliases=("QDQPropagationTransformer",),
    summary="Quantize and dequantize already before an operator that only moves elements, where its result is quantized.",
)
