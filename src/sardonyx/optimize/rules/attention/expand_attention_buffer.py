"""Write attention of com.microsoft whose keys and values lie in a buffer, of which a part is used, by operators of ai.onnx.

    y, keys, values = DecoderMaskedMultiHeadAttention(q, k, v, mask?, added?, past_keys, past_values, used)
    y, keys, values = MultiHeadAttention(q, k, v, _, mask?, added?, past_keys, past_values, used)
    ->      keys = TensorScatter(past_keys, k, used), values = TensorScatter(past_values, v, used)
            y = Attention(q, keys, values, mask) over the first used + S keys

With cache_indirection c (batch, beams, length) key t < used of row r is that of row r - r % beams + c[r, t]; it is gathered first:

            y = Attention(q, GatherND(keys, places), GatherND(values, places), mask)

Left alone:
    queries, keys and values in one tensor, a bias that is added to them: `split_attention_inputs` comes before
    shapes that are not known or do not fit, types other than float and float16, beams with more queries than one
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.attention_mask import added_reason, added_to_scores, seen_as_added
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_DECODER_SHARED_ATTENTION", "EXPAND_MULTI_HEAD_BUFFER"]

_MICROSOFT = "com.microsoft"
_VERSION = 24
"""Of TensorScatter, and of Attention that knows how many keys there are: read under it whatever the model's opset."""
_SWAP_HEADS = [0, 2, 1, 3]
_OUT_OF_RANGE = np.array(np.iinfo(np.int64).max)


def _shared_pattern(
    op: PatternBuilder, q: Term, k: Term, v: Term, past_keys: Term, past_values: Term, used: Term
) -> tuple[Term, ...]:
    masks, beams = [op.optional("seen"), op.optional("added")], [op.optional("width"), op.optional("chosen")]
    call = op.DecoderMaskedMultiHeadAttention(
        q, k, v, *masks, past_keys, past_values, used, *beams, _domain=_MICROSOFT, _as="attention", past_present_share_buffer=1
    )
    return tuple(op.outputs(call, 3))


def _multi_head_pattern(
    op: PatternBuilder, q: Term, k: Term, v: Term, past_keys: Term, past_values: Term, used: Term
) -> tuple[Term, ...]:
    masks = [op.optional("seen"), op.optional("added")]
    call = op.MultiHeadAttention(
        q, k, v, None, *masks, past_keys, past_values, used, op.optional("chosen"), _domain=_MICROSOFT, _as="attention"
    )
    return tuple(op.outputs(call, 3))


def _check(match: Match) -> str | None:
    q, heads = match["q"], MicrosoftAttention.of(match.node("attention")).heads
    if q.shape is None or len(q.shape) != 3:
        return f"q is {q.shape}, expected (B, S, H x D)"
    count = q.shape[1]
    for name, past in (("q", "past_keys"), ("k", "past_keys"), ("v", "past_values")):
        shape, buffer = match[name].shape, match[past].shape
        if shape is None or buffer is None or len(shape) != 3 or len(buffer) != 4 or shape[1] != count:
            return f"{name} is {shape} and its buffer {buffer}, expected (B, S, H x D) and (B, H, T, D)"
        size = buffer[3]
        if not isinstance(size, int) or (shape[0], shape[2], buffer[1]) != (buffer[0], heads * size, heads):
            return f"{name} is {shape} and its buffer {buffer}, which are not known to fit with {heads} heads"
    chosen, seen = match.get("chosen"), match.get("seen")
    if chosen is not None and (count != 1 or len(chosen.shape or ()) != 3):
        return f"beams are {chosen.shape}, and there are {count} queries, expected three dimensions and one"
    if match.node("attention").op_type != "MultiHeadAttention" and count != 1:
        return f"there are {count} queries, expected one"
    if seen is not None and (len(seen.shape or ()) != 2 or (seen.shape or ())[0] != q.shape[0]):
        return f"what hides keys is {seen.shape}, expected a number for each key"
    return added_reason(match) or fused_type_reason(q)


def _replace(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    view, q = MicrosoftAttention.of(match.node("attention")), match["q"]
    apart = [op.Reshape(match[name], [0, 0, view.heads, -1]) for name in "qkv"]
    queries, k, v = (op.Transpose(rows, perm=_SWAP_HEADS) for rows in apart)
    batch = op.Shape(q, start=0, end=1, _version=_VERSION)
    used = op.Expand(op.Cast(op.Reshape(match["used"], [-1]), to=int(DataType.INT64)), batch)
    keys, values = (
        op.TensorScatter(match[past], new, used, axis=2, _version=_VERSION) for past, new in (("past_keys", k), ("past_values", v))
    )
    ends = op.Add(used, op.Shape(q, start=1, end=2, _version=_VERSION))
    read = keys, values
    if match.get("chosen") is not None:
        places = _places(op, match, keys, used)
        read = op.GatherND(keys, places), op.GatherND(values, places)
    causal = {"is_causal": 1} if view.is_causal else {}
    y = op.Attention(queries, *read, _mask(op, match), None, None, ends, scale=view.scale, **causal, _version=_VERSION)
    return op.Reshape(op.Transpose(y, perm=_SWAP_HEADS), [0, 0, -1]), keys, values


def _mask(op: Builder, match: Match) -> Value | None:
    seen, added = match.get("seen"), match.get("added")
    fill = MicrosoftAttention.of(match.node("attention")).fill
    hidden = None if seen is None else seen_as_added(op, seen, fill, match["q"])
    return added_to_scores(op, added, hidden, match.place.overridable, has_guard=False)


def _places(op: Builder, match: Match, keys: Value, used: Value) -> Value:
    """Return which row, head and key holds each key (B, H, T, 3) of the beams."""
    chosen, one = op.Cast(match["chosen"], to=int(DataType.INT64)), np.array(1, np.int64)
    width, length = (op.Shape(chosen, start=axis, end=axis + 1, _version=_VERSION) for axis in (1, 2))
    own, heads, places = (_range(op, keys, axis) for axis in range(3))
    column, place = op.Unsqueeze(own, [1], _version=_VERSION), op.Unsqueeze(places, [0], _version=_VERSION)
    known = op.Min(place, op.Sub(length, one), _version=_VERSION)
    named = op.Gather(op.Reshape(chosen, [-1]), op.Add(op.Mul(column, length), known))
    is_beam = op.And(op.GreaterOrEqual(named, np.array(0, np.int64), _version=_VERSION), op.Less(named, width))
    first = op.Sub(column, op.Mod(column, width))
    picked = op.Where(is_beam, op.Add(first, named), _OUT_OF_RANGE)
    is_used = op.Less(place, op.Unsqueeze(used, [1], _version=_VERSION))
    rows = op.Unsqueeze(op.Where(is_used, picked, column), [1, 3], _version=_VERSION)
    whole = op.Concat(op.Shape(keys, start=0, end=3, _version=_VERSION), np.array([1], np.int64), axis=0)
    parts = [rows, op.Reshape(heads, [1, -1, 1, 1]), op.Reshape(places, [1, 1, -1, 1])]
    return op.Concat(*(op.Expand(part, whole) for part in parts), axis=3)


def _range(op: Builder, value: Value, axis: int) -> Value:
    """Return 0, 1, … along an axis."""
    count = op.Squeeze(op.Shape(value, start=axis, end=axis + 1, _version=_VERSION), [0], _version=_VERSION)
    return op.Range(np.array(0, np.int64), count, np.array(1, np.int64), _version=_VERSION)


EXPAND_DECODER_SHARED_ATTENTION = Rule(
    "expand_decoder_shared_attention",
    _shared_pattern,
    _replace,
    _check,
    takes_apart=microsoft("DecoderMaskedMultiHeadAttention"),
    summary="Write DecoderMaskedMultiHeadAttention with a buffer for its cache as TensorScatter and Attention.",
)
EXPAND_MULTI_HEAD_BUFFER = Rule(
    "expand_multi_head_buffer",
    _multi_head_pattern,
    _replace,
    _check,
    takes_apart=microsoft("MultiHeadAttention"),
    summary="Write MultiHeadAttention of com.microsoft with a buffer for its cache as TensorScatter and Attention.",
)
