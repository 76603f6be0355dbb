"""Give attention of com.microsoft queries, keys and values each in a tensor of its own, to which nothing is to be added first.

    MultiHeadAttention(q, k, v, b, …)           ->      MultiHeadAttention(q + b[: Q], k + b[Q : Q + K], v + b[Q + K :], _, …)
    MultiHeadAttention(x, …)                    ->      MultiHeadAttention(x[:, :, :, 0], x[:, :, :, 1], x[:, :, :, 2], …)
    MultiHeadAttention(q, x, …)                 ->      MultiHeadAttention(q, x[:, :, :, 0], x[:, :, :, 1], …)
    DecoderMaskedMultiHeadAttention(x, …, b)    ->      DecoderMaskedMultiHeadAttention(Split(x + b), …)

with x (B, S, H, 3, D) or (B, T, H, 2, D), and

    y, present = Attention(x, w, b, mask, past, added)
    ->      y, k, v = MultiHeadAttention(Split(x w + b), _, mask, added, past[0], past[1]), present = (k, v)
    y, present = DecoderMaskedSelfAttention(x, w, b, mask, past, added, …)
    ->      y, k, v = DecoderMaskedMultiHeadAttention(Split(x w + b), mask, added, past[0], past[1], …), present = (k, v)

Keys and values of an encoder, (B, H, T, D), get no bias.

Left alone:
    sizes that are not known, or do not fit the number of heads
    Attention that rotates, whose past is a buffer, or whose mask is none of MultiHeadAttention
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sardonyx.ir import Attribute, Node, Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["PROJECT_ATTENTION", "SPLIT_ATTENTION_INPUTS"]

_MICROSOFT = "com.microsoft"
_AXES_ARE_INPUTS = 13
_QUERY, _KEY, _VALUE = range(3)
_BIAS = {"MultiHeadAttention": 3, "DecoderMaskedMultiHeadAttention": 10}
"""The operators, and which input is added to queries, keys and values."""
_WEIGHTS, _PROJECTED_BIAS, _MASK, _PAST, _ADDED = range(1, 6)
"""The inputs of attention that projects."""
_FURTHER = 6
"""Where those begin that are handed on as they are."""
_COUNTS = (1, 3, 4)
"""How many outputs there may be."""


def _split_check(match: Match) -> str | None:
    node, heads = match.node("attention"), MicrosoftAttention.of(match.node("attention")).heads
    q, k = node.input(_QUERY), node.input(_KEY)
    is_packed = node.input(_VALUE) is None
    if not is_packed and node.input(_BIAS[node.op_type]) is None:
        return "queries, keys and values lie in tensors of their own, and nothing is added to them"
    if q is None or heads < 1:
        return "it has no queries or no heads"
    if is_packed and node.op_type == "MultiHeadAttention":
        packed, parts = (q, 3) if k is None else (k, 2)
        shape = packed.shape or ()
        if len(shape) != 5 or shape[2:4] != (heads, parts) or not isinstance(shape[4], int):
            return f"what holds {parts} of queries, keys and values is {packed.shape}"
    elif is_packed and (k is not None or _width(q, 3 * heads) is None):
        return f"what holds queries, keys and values is {q.shape}"
    widths = _widths(node)
    bias = node.input(_BIAS[node.op_type])
    if bias is not None and (widths is None or bias.shape != (sum(widths),)):
        return f"the bias is {bias.shape}, not known to be one of {widths}"
    return fused_type_reason(q)


def _width(value: Value | None, multiple: int) -> int | None:
    """Return how many elements the rows of (B, S, width) have; None where that is not known or no multiple."""
    shape = () if value is None or value.shape is None else value.shape
    width = shape[2] if len(shape) == 3 else None
    return width if isinstance(width, int) and width > 0 and width % multiple == 0 else None


def _widths(node: Node) -> tuple[int, int, int] | None:
    """Return how many elements all heads of queries, keys and values have; None where that is not known."""
    q, k, v = (node.input(place) for place in (_QUERY, _KEY, _VALUE))
    if v is None and node.op_type != "MultiHeadAttention":
        whole = _width(q, 3)
        return None if whole is None else (whole // 3,) * 3
    found = [_elements(q), _elements(k if k is not None else q), _elements(v if v is not None else k if k is not None else q)]
    return None if found[0] is None or found[1] is None or found[2] is None else (found[0], found[1], found[2])


def _elements(value: Value | None) -> int | None:
    """Return elements of all heads of (B, T, H x D), (B, H, T, D) or (B, T, H, parts, D)."""
    shape = () if value is None or value.shape is None else value.shape
    if len(shape) == 3:
        return shape[2] if isinstance(shape[2], int) else None
    sizes = {4: (1, 3), 5: (2, 4)}.get(len(shape))
    heads, size = (None, None) if sizes is None else (shape[sizes[0]], shape[sizes[1]])
    return heads * size if isinstance(heads, int) and isinstance(size, int) else None


def _split(op: Builder, match: Match, learned: None, count: int) -> tuple[Value, ...]:
    node = match.node("attention")
    inputs, place = list(node.inputs), _BIAS[node.op_type]
    widths, bias = _widths(node), node.input(place)
    inputs[_QUERY : _VALUE + 1] = _apart(op, node)
    if bias is not None and widths is not None:
        inputs[place] = None
        parts = op.outputs("Split", 3, bias, np.array(widths, np.int64), axis=0, _version=_AXES_ARE_INPUTS)
        for index, part in enumerate(parts):
            value = inputs[index]
            if index == _QUERY or (value is not None and len(value.shape or ()) != 4):
                inputs[index] = op.Add(value, part)
    return _call(op, node.op_type, count, inputs, dict(node.attributes))


def _apart(op: Builder, node: Node) -> Sequence[Value | None]:
    """Return queries, keys and values, each in a tensor of its own."""
    q, k, v = (node.input(place) for place in (_QUERY, _KEY, _VALUE))
    if v is not None:
        return q, k, v
    if node.op_type != "MultiHeadAttention":
        return op.outputs("Split", 3, q, np.array(_widths(node), np.int64), axis=2, _version=_AXES_ARE_INPUTS)
    if k is None:
        return [_part(op, q, place) for place in range(3)]
    return [q, *(_part(op, k, place) for place in range(2))]


def _part(op: Builder, packed: Value | None, place: int) -> Value:
    """Return (B, S, H x D), one part of (B, S, H, parts, D)."""
    _, _, heads, _, size = (packed.shape if packed is not None else None) or (0,) * 5
    return op.Reshape(op.Gather(packed, np.array(place, np.int64), axis=3), [0, 0, int(str(heads)) * int(str(size))])


def _call(
    op: Builder, op_type: str, count: int, inputs: list[Value | None], attributes: Mapping[str, Attribute]
) -> tuple[Value, ...]:
    while inputs[-1] is None:
        inputs.pop()
    return op.outputs(op_type, count, *inputs, _domain=_MICROSOFT, _attributes=attributes)


def _variant(
    name: str,
    op_type: str,
    check: Callable[[Match], str | None],
    replace: Callable[[Builder, Match, None, int], tuple[Value, ...]],
    count: int,
    summary: str,
) -> Rule:
    """Return the rule for an operator with so many outputs."""

    def pattern(op: PatternBuilder, first: Term) -> Term | tuple[Term, ...]:
        call = op.node(op_type, first, op.rest("others"), _domain=_MICROSOFT, _as="attention")
        return call if count == 1 else tuple(op.outputs(call, count))

    def make(op: Builder, match: Match, learned: None) -> Value | tuple[Value, ...]:
        made = replace(op, match, learned, count)
        return made[0] if count == 1 else made

    return Rule(name, pattern, make, check, takes_apart=microsoft(op_type), summary=summary)


def _project_check(match: Match) -> str | None:
    node, heads = match.node("attention"), MicrosoftAttention.of(match.node("attention")).heads
    x, weights = node.input(0), node.input(_WEIGHTS)
    sizes = _sizes(node)
    if x is None or weights is None or len(x.shape or ()) != 3 or len(weights.shape or ()) != 2 or heads < 1:
        return "x is not known to have three dimensions, and weights two"
    if sizes is None or any(size % heads for size in sizes) or sizes[0] != sizes[1]:
        return f"weights {weights.shape} are not known to make queries, keys and values of {heads} heads"
    if node.flag("do_rotary"):
        return "it rotates queries and keys"
    present = node.outputs[1] if len(node.outputs) > 1 else None
    if present is not None and sizes[0] != sizes[2]:
        return "keys and values differ in size"
    if node.op_type == "Attention" and (node.flag("past_present_share_buffer") or not _has_plain_mask(node)):
        return "its past is a buffer, or its mask is none of (B), (B, T) and (B, S, T)"
    return fused_type_reason(x)


def _has_plain_mask(node: Node) -> bool:
    mask, x, past = node.input(_MASK), node.inputs[0], node.input(_PAST)
    if mask is None or x is None or x.shape is None or mask.shape is None:
        return mask is None
    if len(mask.shape) == 1:
        return mask.shape == x.shape[:1] and past is None
    return len(mask.shape) in (2, 3) and mask.shape[: len(mask.shape) - 1] == x.shape[: len(mask.shape) - 1]


def _sizes(node: Node) -> tuple[int, int, int] | None:
    """Return the columns of queries, keys and values in the weights."""
    weights, given = node.input(_WEIGHTS), node.integers("qkv_hidden_sizes")
    width = weights.shape[1] if weights is not None and weights.shape is not None and len(weights.shape) == 2 else None
    if not isinstance(width, int):
        return None
    sizes = tuple(given) if given else (width // 3,) * 3
    return (sizes[0], sizes[1], sizes[2]) if len(sizes) == 3 and sum(sizes) == width and min(sizes) > 0 else None


def _project(op: Builder, match: Match, learned: None, count: int) -> tuple[Value, ...]:
    node = match.node("attention")
    bias, past, sizes = node.input(_PROJECTED_BIAS), node.input(_PAST), _sizes(node)
    projected = op.MatMul(node.inputs[0], node.inputs[_WEIGHTS])
    projected = projected if bias is None else op.Add(projected, bias)
    q, k, v = op.outputs("Split", 3, projected, np.array(sizes, np.int64), axis=2, _version=_AXES_ARE_INPUTS)
    pasts = [None, None] if past is None else [op.Gather(past, np.array(place, np.int64), axis=0) for place in range(2)]
    attributes = {name: value for name, value in node.attributes.items() if name not in ("do_rotary", "qkv_hidden_sizes")}
    masks = [node.input(_MASK), node.input(_ADDED)]
    if node.op_type == "Attention":
        for name in ("past_present_share_buffer", "rotary_embedding_dim"):
            attributes.pop(name, None)
        made = _call(op, "MultiHeadAttention", 1 if count == 1 else 3, [q, k, v, None, *masks, *pasts], attributes)
    else:
        inputs = [q, k, v, *masks, *pasts, *node.inputs[_FURTHER:]]
        made = _call(op, "DecoderMaskedMultiHeadAttention", 3, inputs, attributes)
    if count == 1:
        return made[:1]
    apart = [op.Unsqueeze(part, [0], _version=_AXES_ARE_INPUTS) for part in made[1:]]
    return made[0], op.Concat(*apart, axis=0)


SPLIT_ATTENTION_INPUTS: tuple[Rule, ...] = tuple(
    _variant(
        f"split_{name}_inputs{'' if count == 1 else f'_{count}'}",
        op_type,
        _split_check,
        _split,
        count,
        f"Give {op_type} with {count} outputs queries, keys and values apart, with their bias.",
    )
    for name, op_type in (("multi_head", "MultiHeadAttention"), ("decoder", "DecoderMaskedMultiHeadAttention"))
    for count in _COUNTS
)
PROJECT_ATTENTION: tuple[Rule, ...] = (
    _variant(
        "project_attention", "Attention", _project_check, _project, 1, "Write Attention of com.microsoft as MultiHeadAttention."
    ),
    _variant(
        "project_attention_cache",
        "Attention",
        _project_check,
        _project,
        2,
        "Write Attention of com.microsoft that returns its keys and values as MultiHeadAttention.",
    ),
    _variant(
        "project_decoder_attention",
        "DecoderMaskedSelfAttention",
        _project_check,
        _project,
        2,
        "Write DecoderMaskedSelfAttention as DecoderMaskedMultiHeadAttention.",
    ),
)
