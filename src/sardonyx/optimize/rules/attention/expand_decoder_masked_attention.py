"""Write DecoderMaskedMultiHeadAttention of com.microsoft, which attends with one new token, by operators for any number of them.

    y = DecoderMaskedMultiHeadAttention(q, keys, values, mask?, added?)                of an encoder: (B, H, T, D)
    ->      y = MultiHeadAttention(q, keys, values, _, mask?, added?)

    y, keys, values = DecoderMaskedMultiHeadAttention(q, k, v, mask?, added?, past_keys, past_values)
    ->      y, keys, values = MultiHeadAttention(q, k, v, _, mask?, added?, past_keys, past_values)

    y, keys, values = DecoderMaskedMultiHeadAttention(q, k, v, _, _, past_keys, past_values, used) {past_present_share_buffer = 1}
    ->      keys = TensorScatter(past_keys, k, used), values = TensorScatter(past_values, v, used)
            y = Attention(q, keys, values) over the first used + 1 keys

Left alone:
    queries, keys and values in one tensor, a bias that is added to them, and beams
    masks and numbers that are added to scores, where only a part of a buffer is used
    shapes that are not known, types other than float and float16, attention whose scores are used
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_DECODER_CACHE_ATTENTION", "EXPAND_DECODER_CROSS_ATTENTION", "EXPAND_DECODER_SHARED_ATTENTION"]

_MICROSOFT = "com.microsoft"
_VERSION = 24
"""Of TensorScatter, and of Attention that knows how many keys there are: read under it whatever the model's opset."""


def _cross_pattern(op: PatternBuilder, q: Term, k: Term, v: Term) -> Term:
    further = [op.optional("seen"), op.optional("added")]
    return op.DecoderMaskedMultiHeadAttention(q, k, v, *further, _domain=_MICROSOFT, _as="attention")


def _cross_check(match: Match) -> str | None:
    ranks = [len(match[name].shape or ()) for name in "kv"]
    return None if ranks == [4, 4] else "keys and values are not known to be those of an encoder, (B, H, T, D)"


def _replace_cross(op: Builder, match: Match, learned: None) -> Value:
    return _multi_head(op, match, 1)[0]


def _cache_pattern(op: PatternBuilder, q: Term, k: Term, v: Term, past_keys: Term, past_values: Term) -> tuple[Term, ...]:
    inputs = [q, k, v, op.optional("seen"), op.optional("added"), past_keys, past_values, op.optional("used")]
    return tuple(op.outputs(_decoder(op, inputs, is_shared=False), 3))


def _cache_check(match: Match) -> str | None:
    ranks = [len(match[name].shape or ()) for name in "kv"]
    return None if ranks == [3, 3] else "keys and values are not known to be of one token, (B, 1, H x D)"


def _replace_cache(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    return _multi_head(op, match, 3)


def _shared_pattern(
    op: PatternBuilder, q: Term, k: Term, v: Term, past_keys: Term, past_values: Term, used: Term
) -> tuple[Term, ...]:
    return tuple(op.outputs(_decoder(op, [q, k, v, None, None, past_keys, past_values, used], is_shared=True), 3))


def _shared_check(match: Match) -> str | None:
    q, heads = match["q"], MicrosoftAttention.of(match.node("attention")).heads
    for name, past in (("q", "past_keys"), ("k", "past_keys"), ("v", "past_values")):
        shape, buffer = match[name].shape, match[past].shape
        if shape is None or buffer is None or len(shape) != 3 or len(buffer) != 4 or shape[1] != 1:
            return f"{name} is {shape} and its buffer {buffer}, expected (B, 1, H x D) and (B, H, T, D)"
        size = buffer[3]
        if not isinstance(size, int) or (shape[0], shape[2], buffer[1]) != (buffer[0], heads * size, heads):
            return f"{name} is {shape} and its buffer {buffer}, which are not known to fit with {heads} heads"
    return fused_type_reason(q)


def _replace_shared(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    view = MicrosoftAttention.of(match.node("attention"))
    q, k, v = (op.Reshape(match[name], [0, view.heads, 1, -1]) for name in "qkv")
    batch = op.Shape(match["q"], start=0, end=1, _version=_VERSION)
    used = op.Expand(op.Cast(op.Reshape(match["used"], [-1]), to=int(DataType.INT64)), batch)
    keys, values = (
        op.TensorScatter(match[past], new, used, axis=2, _version=_VERSION) for past, new in (("past_keys", k), ("past_values", v))
    )
    ends = op.Add(used, np.array(1, np.int64))
    y = op.Attention(q, keys, values, None, None, None, ends, scale=view.scale, _version=_VERSION)
    return op.Reshape(y, [0, 1, -1]), keys, values


def _decoder(op: PatternBuilder, inputs: Sequence[Term | None], *, is_shared: bool) -> Term:
    shares = int(is_shared)
    return op.DecoderMaskedMultiHeadAttention(*inputs, _domain=_MICROSOFT, _as="attention", past_present_share_buffer=shares)


def _multi_head(op: Builder, match: Match, count: int) -> tuple[Value, ...]:
    """Return the outputs of MultiHeadAttention with the same inputs."""
    inputs = [match["q"], match["k"], match["v"], None]
    inputs += [match.get(name) for name in ("seen", "added", "past_keys", "past_values")]
    attributes = {name: value for name, value in match.node("attention").attributes.items() if name in _SHARED_ATTRIBUTES}
    while inputs[-1] is None:
        inputs.pop()
    return op.outputs("MultiHeadAttention", count, *inputs, _domain=_MICROSOFT, _attributes=attributes)


_SHARED_ATTRIBUTES = ("mask_filter_value", "num_heads", "scale")
_DECODER = microsoft("DecoderMaskedMultiHeadAttention")

EXPAND_DECODER_CROSS_ATTENTION = Rule(
    "expand_decoder_cross_attention",
    _cross_pattern,
    _replace_cross,
    _cross_check,
    takes_apart=_DECODER,
    summary="Write DecoderMaskedMultiHeadAttention with keys of an encoder as MultiHeadAttention.",
)
EXPAND_DECODER_CACHE_ATTENTION = Rule(
    "expand_decoder_cache_attention",
    _cache_pattern,
    _replace_cache,
    _cache_check,
    takes_apart=_DECODER,
    summary="Write DecoderMaskedMultiHeadAttention with a growing cache as MultiHeadAttention.",
)
EXPAND_DECODER_SHARED_ATTENTION = Rule(
    "expand_decoder_shared_attention",
    _shared_pattern,
    _replace_shared,
    _shared_check,
    takes_apart=_DECODER,
    summary="Write DecoderMaskedMultiHeadAttention with a buffer for its cache as TensorScatter and Attention.",
)
