"""Write GroupQueryAttention of com.microsoft that is given positions, or normalizes heads, as one whose inputs are so already.

    y, … = GroupQueryAttention(q, k, v, …, cos, sin, ids, …) {do_rotary = 1}
    ->      y, … = GroupQueryAttention(RotaryEmbedding(q, ids, cos, sin), RotaryEmbedding(k, ids, cos, sin), v, …)

    y, … = GroupQueryAttention(q, k, v, …, a, b)
    ->      n(x, s) = Reshape(RMSNormalization(Reshape(x, [0, 0, heads, size]), s), [0, 0, heads x size])
            y, … = GroupQueryAttention(n(q, a), n(k, b), v, …)

Queries, keys and values in one tensor are split before. Positions of attention that does not rotate are left out.

Left alone:
    positions that are not known to be (B, S), queries whose width is not known
    norms of queries alone or of keys alone, attention whose scores are asked for, types other than float and float16
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_GROUP_QUERY"]

_QUERY, _KEY, _VALUE = range(3)
_COS, _SIN, _POSITIONS = 7, 8, 9
_QUERY_NORM, _KEY_NORM = 14, 15
_MICROSOFT = "com.microsoft"
_AXES_ARE_INPUTS = 13
_NORMALIZATION = 23
"""The version of RMSNormalization, which ai.onnx has had since then: read under it whatever the model's opset."""
_EPSILON = 1e-6
"""That of a normalization without one."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    """What the replacement needs."""

    heads: tuple[int, int]
    """Of queries, and of keys and values."""
    size: int
    """Elements of a head."""


def _pattern(op: PatternBuilder, q: Term) -> tuple[Term, ...]:
    call = op.GroupQueryAttention(q, op.rest("others"), _domain=_MICROSOFT, _as="attention")
    return tuple(op.outputs(call, 3))


def _check(match: Match) -> str | _Learned:
    node, q = match.node("attention"), match["q"]
    ids, norms = node.input(_POSITIONS), [node.input(index) for index in (_QUERY_NORM, _KEY_NORM)]
    if ids is None and norms == [None, None]:
        return "it has neither positions nor norms"
    if (norms[0] is None) != (norms[1] is None) or (node.input(_KEY) is None) != (node.input(_VALUE) is None):
        return "queries or keys alone are normalized, or keys or values alone are given"
    view, shape = MicrosoftAttention.of(node), q.shape or ()
    heads = view.heads if node.input(_KEY) is not None else view.heads + 2 * view.key_heads
    width = shape[2] if len(shape) == 3 else None
    if min(view.heads, view.key_heads) < 1 or not isinstance(width, int) or width % heads:
        return f"queries are {q.shape}, which are not known to hold {heads} heads"
    if ids is not None and node.flag("do_rotary") and (ids.shape != shape[:2] or None in (node.input(_COS), node.input(_SIN))):
        return f"positions are {ids.shape}, expected one for each of {shape[:2]}, and tables of angles"
    return fused_type_reason(q) or _Learned((view.heads, view.key_heads), width // heads)


def _replace(op: Builder, match: Match, learned: _Learned) -> tuple[Value, ...]:
    node = match.node("attention")
    inputs, attributes = list(node.inputs), dict(node.attributes)
    if node.input(_KEY) is None:
        inputs[_QUERY : _VALUE + 1] = _split(op, match["q"], learned)
    if node.input(_QUERY_NORM) is not None:
        epsilon = node.number("qk_norm_epsilon", _EPSILON)
        for place, norm in ((_QUERY, _QUERY_NORM), (_KEY, _KEY_NORM)):
            inputs[place] = _normalized(op, inputs[place], node.input(norm), learned.heads[place], learned.size, epsilon)
        del inputs[_QUERY_NORM:]
        attributes.pop("qk_norm_epsilon", None)
    if node.input(_POSITIONS) is not None:
        if node.flag("do_rotary"):
            for place in (_QUERY, _KEY):
                inputs[place] = _rotated(op, match, inputs[place], learned.heads[place], learned.size)
            inputs[_COS] = inputs[_SIN] = None
            attributes.pop("do_rotary")
            attributes.pop("rotary_interleaved", None)
        inputs[_POSITIONS] = None
    while inputs[-1] is None:
        inputs.pop()
    return op.outputs("GroupQueryAttention", 3, *inputs, _domain=_MICROSOFT, _attributes=attributes)


def _split(op: Builder, packed: Value, learned: _Learned) -> Sequence[Value]:
    heads, key_heads = learned.heads
    sizes = np.array([heads, key_heads, key_heads], np.int64) * learned.size
    return op.outputs("Split", 3, packed, sizes, axis=2, _version=_AXES_ARE_INPUTS)


def _normalized(op: Builder, rows: Value | None, scale: Value | None, heads: int, size: int, epsilon: float) -> Value:
    apart = op.Reshape(rows, [0, 0, heads, size])
    return op.Reshape(op.RMSNormalization(apart, scale, axis=-1, epsilon=epsilon, _version=_NORMALIZATION), [0, 0, heads * size])


def _rotated(op: Builder, match: Match, rows: Value | None, heads: int, size: int) -> Value:
    node = match.node("attention")
    ids, cos, sin = (node.input(index) for index in (_POSITIONS, _COS, _SIN))
    half = cos.shape[1] if cos is not None and cos.shape is not None and len(cos.shape) == 2 else None
    width = 2 * half if isinstance(half, int) and 2 * half != size else 0
    interleaved = int(node.flag("rotary_interleaved"))
    return op.RotaryEmbedding(
        rows, ids, cos, sin, _domain=_MICROSOFT, num_heads=heads, rotary_embedding_dim=width, interleaved=interleaved
    )


EXPAND_GROUP_QUERY = Rule("expand_group_query", _pattern, _replace, _check, takes_apart=microsoft("GroupQueryAttention"))
