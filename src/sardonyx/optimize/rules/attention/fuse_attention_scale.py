"""Let attention scale the queries.

    y = Attention(Mul(q, c), k, v, …) {scale}        ->      y = Attention(q, k, v, …) {scale * c}

A Transpose or a Reshape may stand behind the Mul.

Left alone:
    a factor that is no number above 0
    queries of unknown head size, where no scale is given
"""

from __future__ import annotations

import math

from sardonyx.ir import Value
from sardonyx.ops.views.attention import Attention
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_ATTENTION_SCALE", "FUSE_ATTENTION_SCALE_CACHE"]


def _pattern(op: PatternBuilder, q: Term, factor: Term) -> Term:
    scaled = op.Mul(q, op.constant(factor))
    moved = op.any_of(op.Transpose(scaled, _as="move"), op.Reshape(scaled, op.rest("shape"), _as="move"))
    return op.Attention(op.any_of(scaled, moved), op.rest("others"))


def _cache_pattern(op: PatternBuilder, q: Term, factor: Term) -> tuple[Term, ...]:
    return op.outputs(_pattern(op, q, factor), 3)


def _check(match: Match) -> str | float:
    factor, node = match.constant("factor", 1), match.root
    q = node.inputs[0]
    if factor is None or not 0 < float(factor.reshape(())) < math.inf or q is None or q.shape is None:
        return "the factor is no number above 0"
    view, last = Attention.of(node), q.shape[-1]
    packed = view.query_heads
    size = last // (packed if packed and len(q.shape) == 3 else 1) if isinstance(last, int) else 0
    if view.scale is None and size == 0:
        return "the size of the heads is not known"
    return float(factor.reshape(())) * (1 / math.sqrt(size) if view.scale is None else view.scale)


def _replace(op: Builder, match: Match, scale: float) -> Value:
    return _attend(op, match, scale, 1)[0]


def _replace_cache(op: Builder, match: Match, scale: float) -> tuple[Value, ...]:
    return _attend(op, match, scale, 3)


def _attend(op: Builder, match: Match, scale: float, count: int) -> tuple[Value, ...]:
    node, q = match.root, match["q"]
    if match.has("move"):
        move = match.node("move")
        q = op.node(move.op_type, q, *move.inputs[1:], _attributes=move.attributes, _version=move.version)
    inputs = (q, *match.rest("others"))
    return op.outputs("Attention", count, *inputs, _attributes=node.attributes, _version=node.version, scale=scale)


FUSE_ATTENTION_SCALE = Rule(
    "fuse_attention_scale", _pattern, _replace, _check, Level.EXTENDED, summary="Fold the scaling of queries into Attention."
)
FUSE_ATTENTION_SCALE_CACHE = Rule(
    "fuse_attention_scale_cache",
    _cache_pattern,
    _replace_cache,
    _check,
    Level.EXTENDED,
    summary="Fold the scaling of queries into an Attention that has keys and values of former runs.",
)
