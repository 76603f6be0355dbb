"""Give back integers that are dequantized and quantized again in the same way.

    Q(DQ(x))                ->      x            for equal types, scales and zero points
    Q(f(DQ(x)))             ->      f(x)         for f that only moves elements, or picks the largest or smallest

    f: DepthToSpace, Expand, Flatten, Gather, GatherElements, Identity, MaxPool, ReduceMax, ReduceMin, Reshape, Resize (nearest),
       Slice, SpaceToDepth, Split, Squeeze, Tile, Transpose, Unsqueeze

The integers are the same: quantization gives back each integer that it is given the number of.

Left alone:
    other types than int8 and uint8, scales by axis or block, scales that differ
    MaxPool before opset 12, ReduceMax and ReduceMin before opset 13, Resize of more than the nearest element: they take no integers
    Resize and Split with other results than those that are quantized alike
"""

from __future__ import annotations

from sardonyx.ir import Node, Value
from sardonyx.ops.views.quantize import takes_bytes
from sardonyx.ops.views.resize import Resize
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import INTEGER_OPERATORS, NO_QUANTIZATION, bytes_reason, dequantized, quantized, scale_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["MOVES", "SKIP_REQUANTIZATION", "SKIP_REQUANTIZATION_OF_MOVES", "takes_integers"]

MOVES = (
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "Identity",
    "MaxPool",
    "ReduceMax",
    "ReduceMin",
    "Reshape",
    "Resize",
    "Slice",
    "SpaceToDepth",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
)
"""Operators with one result, whose elements are elements of the first input."""

_MOST_PARTS = 16


def takes_integers(node: Node) -> bool:
    """Return whether one of `MOVES`, or Split, does to integers of 8 bits what it does to the numbers behind them."""
    if not takes_bytes(node):
        return False
    return node.op_type != "Resize" or (_moves_only(node) and len(node.inputs) > 2)


def _moves_only(resize: Node) -> bool:
    view = Resize.of(resize)
    return view.only_moves and not view.is_by_origin


def _pair(op: PatternBuilder, x: Term) -> Term:
    return quantized(op, dequantized(op, x, "x"), "y")


def _equal_scales(match: Match) -> str | None:
    reason = bytes_reason(match, "x", "y")
    if reason is not None:
        return reason
    first, second = scale_of(match.node("x/dequantize")), scale_of(match.node("y/quantize"))
    return None if first is not None and second is not None and first.equals(second) else "the scales differ"


def _skip(op: Builder, match: Match, learned: None) -> Value:
    return match["x"]


SKIP_REQUANTIZATION = Rule(
    "skip_requantization",
    _pair,
    _skip,
    _equal_scales,
    Level.EXTENDED,
    opt_out=NO_QUANTIZATION,
    aliases=("QDQFinalCleanupTransformer",),
    summary="Remove a DequantizeLinear and the QuantizeLinear after it where both have the same scale.",
)


def _moved(op: PatternBuilder, x: Term) -> Term:
    number = dequantized(op, x, "x")
    moves = [op.node(name, number, op.rest("operands"), _as="move") for name in MOVES]
    split = op.outputs(op.Split(number, op.rest("operands"), _as="move", _shared=True), _MOST_PARTS)
    return quantized(op, op.any_of(*moves, *split), "y")


def _check_moved(match: Match) -> str | None:
    move = match.node("move")
    if not takes_integers(move):
        return f"{move.op_type} of opset {move.version} does not move integers"
    users = [user for value in move.outputs for user, _ in value.uses]
    if any(not isinstance(user, Node) or user.op_type != "QuantizeLinear" for user in users):
        return f"{move.op_type} has results that are not quantized"
    return _equal_scales(match)


def _move(op: Builder, match: Match, learned: None) -> Value:
    move = match.node("move")
    moved = match.root.inputs[0]
    made = op.outputs(
        move.op_type, len(move.outputs), match["x"], *match.rest("operands"), _attributes=move.attributes, _version=move.version
    )
    return made[0 if moved is None else moved.index]


SKIP_REQUANTIZATION_OF_MOVES = Rule(
    "skip_requantization_of_moves",
    _moved,
    _move,
    _check_moved,
    Level.EXTENDED,
    prepares=INTEGER_OPERATORS,
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
    summary="Move the integers themselves where they are dequantized only to be moved and quantized alike.",
)
