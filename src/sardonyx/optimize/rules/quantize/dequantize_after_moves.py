"""Move elements as integers where they are quantized by another scale afterwards, or where several are put together.

    f(DQ(x))                               ->      DQ(f(x))                      f moves elements, or picks the largest or smallest
    Pad(DQ(x), value)                      ->      DQ(Pad(x, q))                 q is the integer that stands for the value
    Concat(DQ(a), DQ(b), …)                ->      DQ(Concat(a, b, …))           for equal scales
    Q(Concat(a, b, …))                     ->      Concat(Q(a), Q(b), …)

DequantizeLinear and QuantizeLinear are functions of one element that keep the order, so the numbers are the same. What is left is
computed where elements are made or read: Q(DQ(x)) in the store of what makes x.

    f: `skip_requantization.MOVES`

Left alone:
    f and Pad that nothing quantizes, or quantizes by the scale of x only: `propagate_dequantization` and
    `skip_requantization_of_moves` move integers there
    f that does not take integers; scales by axis or block; types other than int8 and uint8
    Pad with a value that no integer stands for, or a computed one
    a Concat of parts that are no floats; the last form where other nodes read what is put together
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.quantize import takes_bytes
from sardonyx.ops.views.slice import Concat
from sardonyx.optimize.contract import Level
from sardonyx.optimize.edit import tensor_of
from sardonyx.optimize.helpers.quantized import (
    EIGHT_BITS,
    INTEGER_OPERATORS,
    NO_QUANTIZATION,
    bytes_reason,
    dequantized,
    limits_of,
    quantized,
    scale_of,
)
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.quantize.skip_requantization import MOVES, takes_integers
from sardonyx.optimize.terms import Term

__all__ = ["DEQUANTIZE_AFTER_CONCAT", "DEQUANTIZE_AFTER_MOVE", "DEQUANTIZE_AFTER_PAD", "QUANTIZE_BEFORE_CONCAT"]


def _moved(op: PatternBuilder, x: Term) -> Term:
    number = dequantized(op, x, "x")
    return op.any_of(*(op.node(name, number, op.rest("operands"), _as="move") for name in MOVES))


def _check_moved(match: Match) -> str | None:
    reason = bytes_reason(match, "x") or _users_reason(match)
    if reason is not None:
        return reason
    return None if takes_integers(match.root) else f"{match.root.op_type} does not move integers"


def _users_reason(match: Match) -> str | None:
    """Return why no user of the root quantizes by another scale than that of x; None where one does."""
    given = scale_of(match.node("x/dequantize"))
    for user, _ in match.outputs[0].uses:
        if isinstance(user, Node) and user.op_type == "QuantizeLinear":
            scale = scale_of(user)
            if scale is not None and given is not None and scale.is_single and not scale.equals(given):
                return None
    return "no node quantizes the result by another scale"


def _dequantize_after(op: Builder, match: Match, learned: None) -> Value:
    return _after(op, match, match["x"], *match.rest("operands"))


def _after(op: Builder, match: Match, *operands: Value | None) -> Value:
    """Return DQ of the root's operator with other operands."""
    move, dequantize = match.root, match.node("x/dequantize")
    made = op.node(move.op_type, *operands, _attributes=move.attributes, _version=move.version)
    return _dequantize(op, made, dequantize)


def _dequantize(op: Builder, value: Value, like: Node) -> Value:
    return op.DequantizeLinear(value, *like.inputs[1:], _attributes=like.attributes, _version=like.version)


DEQUANTIZE_AFTER_MOVE = Rule(
    "dequantize_after_move",
    _moved,
    _dequantize_after,
    _check_moved,
    Level.EXTENDED,
    prepares=INTEGER_OPERATORS,
    opt_out=NO_QUANTIZATION,
    aliases=("QDQPropagationTransformer",),
    summary="Dequantize behind an operator that only moves elements, where the result is quantized by another scale.",
)


def _padded(op: PatternBuilder, x: Term) -> Term:
    return op.Pad(dequantized(op, x, "x"), op.rest("operands"))


def _check_padded(match: Match) -> str | np.integer:
    reason, node = bytes_reason(match, "x"), match.root
    if reason is not None:
        return reason
    if not takes_bytes(node):
        return f"Pad of opset {node.version} takes no integers"
    value = node.input(2)
    number = np.float32(0) if value is None else _single(value)
    return "the value is computed" if number is None else _integer_of(match.node("x/dequantize"), number)


def _single(value: Value) -> np.float32 | None:
    tensor = tensor_of(value)
    return None if tensor is None or tensor.size != 1 else np.float32(tensor.numpy().reshape(()))


def _integer_of(dequantize: Node, number: np.float32) -> str | np.integer:
    """Return the integer that a DQ makes just this number of, or why there is none."""
    scale = scale_of(dequantize)
    if scale is None:
        return "there is no single scale"
    low, high = limits_of(scale.dtype)
    integers = np.arange(low, high + 1)
    numbers = (integers - int(scale.zero)).astype(np.float32) * np.float32(scale.scale)
    found = np.flatnonzero((numbers == number) & (np.signbit(numbers) == np.signbit(number)))
    return f"no integer stands for {number}" if not found.size else integers[found[0]].astype(scale.dtype.numpy)


def _pad_integers(op: Builder, match: Match, learned: np.integer) -> Value:
    pads, *others = match.rest("operands")
    return _after(op, match, match["x"], pads, op.constant(np.asarray(learned)), *others[1:])


DEQUANTIZE_AFTER_PAD = Rule(
    "dequantize_after_pad",
    _padded,
    _pad_integers,
    _check_padded,
    Level.EXTENDED,
    prepares=INTEGER_OPERATORS,
    opt_out=NO_QUANTIZATION,
    aliases=("QDQPropagationTransformer",),
    summary="Pad integers where they are dequantized to be padded, by the integer that stands for the value.",
)


def _joined(op: PatternBuilder) -> Term:
    return op.Concat(op.rest("parts"))


def _check_joined(match: Match) -> str | list[Node]:
    nodes = [_dequantization(value) for value in match.rest("parts")]
    found = [node for node in nodes if node is not None]
    scales = [scale_of(node) for node in found]
    if not found or len(found) < len(nodes) or any(scale is None or scale.dtype not in EIGHT_BITS for scale in scales):
        return "a part is no dequantized integer of 8 bits"
    first = scales[0]
    return (
        found if first is not None and all(scale is not None and first.equals(scale) for scale in scales) else "the scales differ"
    )


def _dequantization(value: Value | None) -> Node | None:
    node = None if value is None else value.producer
    return node if node is not None and node.op_type == "DequantizeLinear" and not node.domain else None


def _join_integers(op: Builder, match: Match, learned: list[Node]) -> Value:
    concat = match.root
    joined = op.Concat(*(node.inputs[0] for node in learned), axis=Concat.of(concat).axis, _version=concat.version)
    return _dequantize(op, joined, learned[0])


DEQUANTIZE_AFTER_CONCAT = Rule(
    "dequantize_after_concat",
    _joined,
    _join_integers,
    _check_joined,
    Level.EXTENDED,
    prepares=INTEGER_OPERATORS,
    opt_out=NO_QUANTIZATION,
    aliases=("QDQPropagationTransformer",),
    summary="Put integers of equal scales together before they are dequantized.",
)


def _joined_and_quantized(op: PatternBuilder) -> Term:
    return quantized(op, op.Concat(op.rest("parts"), _as="concat"), "y")


def _check_quantized(match: Match) -> str | None:
    wrong = next((value for value in match.rest("parts") if value is None or value.dtype is not DataType.FLOAT), None)
    return bytes_reason(match, "y") or (None if wrong is None else f"a part is {wrong.dtype}, expected float")


def _quantize_parts(op: Builder, match: Match, learned: None) -> Value:
    concat, quantize = match.node("concat"), match.root
    parts = [
        op.QuantizeLinear(value, *quantize.inputs[1:], _attributes=quantize.attributes, _version=quantize.version)
        for value in match.rest("parts")
    ]
    return op.Concat(*parts, axis=Concat.of(concat).axis, _version=concat.version)


QUANTIZE_BEFORE_CONCAT = Rule(
    "quantize_before_concat",
    _joined_and_quantized,
    _quantize_parts,
    _check_quantized,
    Level.EXTENDED,
    prepares=INTEGER_OPERATORS,
    opt_out=NO_QUANTIZATION,
    aliases=("QDQPropagationTransformer",),
    summary="Quantize each part of a Concat instead of the whole, so that integers are put together.",
)
