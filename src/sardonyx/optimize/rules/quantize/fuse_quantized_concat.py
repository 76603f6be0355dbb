"""Replace a Concat between DequantizeLinear and QuantizeLinear by QLinearConcat of com.microsoft.

    Q(Concat(DQ(a), DQ(b), …))             ->      com.microsoft.QLinearConcat(y_scale, y_zero, a, a_scale, a_zero, b, …)

The numbers are the same.

Left alone: other types than int8 and uint8; inputs and results of two types; scales by axis or block; inputs that are not
dequantized; Concat that has other users.
"""

from __future__ import annotations

from sardonyx.ir import Node, Value
from sardonyx.ops.views.slice import Concat
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import NO_QUANTIZATION, bytes_reason, quantized, scale_of, triple, zero_point_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_QUANTIZED_CONCAT"]


def _pattern(op: PatternBuilder) -> Term:
    return quantized(op, op.Concat(op.rest("parts"), _as="concat"), "y")


def _check(match: Match) -> str | list[Node]:
    reason = bytes_reason(match, "y")
    if reason is not None:
        return reason
    nodes = [node for value in match.rest("parts") if value is not None and (node := value.producer) is not None]
    if len(nodes) < len(match.rest("parts")) or any(node.op_type != "DequantizeLinear" or node.domain for node in nodes):
        return "a part is not dequantized"
    for node in nodes:
        scale = scale_of(node)
        if scale is None or not scale.is_single or scale.dtype is not match.outputs[0].dtype:
            return "a part has no single scale, or is of another type than the result"
    return nodes


def _replace(op: Builder, match: Match, nodes: list[Node]) -> Value:
    parts = [value for node in nodes for value in triple(op, node)]
    return op.QLinearConcat(
        match.root.inputs[1],
        zero_point_of(op, match.root),
        *parts,
        axis=Concat.of(match.node("concat")).axis,
        _domain="com.microsoft",
    )


FUSE_QUANTIZED_CONCAT = Rule(
    "fuse_quantized_concat",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    integer_steps=1,
    makes=microsoft("QLinearConcat"),
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
)
