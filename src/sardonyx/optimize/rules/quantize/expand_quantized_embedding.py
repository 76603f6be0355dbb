"""Write QEmbedLayerNormalization of com.microsoft as EmbedLayerNormalization of dequantized tables.

    QEmbedLayerNormalization(ids, segments?, words, positions, kinds?, gamma, beta, mask?, scales and zero points)
        ->      EmbedLayerNormalization(ids, segments, DQ(words), DQ(positions), DQ(kinds), DQ(gamma), DQ(beta), mask)

from which other rules make lookups of integers that are dequantized afterwards: tables stay as small as they are. The numbers are
the same.

Left alone: scales or zero points that are not one number each.
"""

from __future__ import annotations

from sardonyx.ir import Node, Value
from sardonyx.ops.views.quantize import BY_AXIS_SINCE
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_QUANTIZED_EMBEDDING", "EXPAND_QUANTIZED_EMBEDDING_MASK"]

_MICROSOFT = "com.microsoft"
_TABLES = {2: (8, 13), 3: (9, 14), 4: (10, 15), 5: (11, 16), 6: (12, 17)}
"""Input that is a table -> the inputs that are its scale and zero point."""


def _node(op: PatternBuilder) -> Term:
    return op.node("QEmbedLayerNormalization", op.rest("inputs"), _domain=_MICROSOFT, _as="embedding")


def _outputs(op: PatternBuilder) -> tuple[Term, ...]:
    return op.outputs(_node(op), 2)


def _check(match: Match) -> str | None:
    node = match.node("embedding")
    for table, places in _TABLES.items():
        if node.input(table) is not None and not all(_is_one(node.input(place)) for place in places):
            return f"the scale or zero point of input {table} is not one number"
    return None


def _is_one(value: Value | None) -> bool:
    return value is not None and value.shape is not None and all(dim == 1 for dim in value.shape)


def _replace(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    node = match.node("embedding")
    ids, segments, mask = (node.input(place) for place in (0, 1, 7))
    words, positions, kinds, gamma, beta = (_table(op, node, place) for place in _TABLES)
    inputs = (ids, segments, words, positions, kinds, gamma, beta, mask)
    return op.outputs(
        "EmbedLayerNormalization", len(node.outputs), *inputs, _domain=_MICROSOFT, epsilon=node.number("epsilon", 1e-12)
    )


def _table(op: Builder, node: Node, place: int) -> Value | None:
    table, (scale, zero) = node.input(place), _TABLES[place]
    if table is None:
        return None
    version = max(op.version("", "DequantizeLinear"), BY_AXIS_SINCE)
    return op.DequantizeLinear(table, node.input(scale), node.input(zero), _version=version)


EXPAND_QUANTIZED_EMBEDDING = Rule(
    "expand_quantized_embedding",
    _node,
    lambda op, match, learned: _replace(op, match, learned)[0],
    _check,
    takes_apart=microsoft("QEmbedLayerNormalization"),
    summary="Write QEmbedLayerNormalization of com.microsoft, its mask index left out, as EmbedLayerNormalization of floats.",
)
EXPAND_QUANTIZED_EMBEDDING_MASK = Rule(
    "expand_quantized_embedding_mask",
    _outputs,
    _replace,
    _check,
    takes_apart=microsoft("QEmbedLayerNormalization"),
    summary="Write QEmbedLayerNormalization of com.microsoft with its mask index as EmbedLayerNormalization of floats.",
)
