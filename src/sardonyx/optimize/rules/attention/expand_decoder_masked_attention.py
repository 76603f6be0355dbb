"""Write DecoderMaskedMultiHeadAttention of com.microsoft, which attends with one new token, by operators for any number of them.

    y = DecoderMaskedMultiHeadAttention(q, keys, values, mask?, added?)                of an encoder: (B, H, T, D)
    ->      y = MultiHeadAttention(q, keys, values, _, mask?, added?)

    y, keys, values = DecoderMaskedMultiHeadAttention(q, k, v, mask?, added?, past_keys, past_values)
    ->      y, keys, values = MultiHeadAttention(q, k, v, _, mask?, added?, past_keys, past_values)

    y, keys, values, scores = DecoderMaskedMultiHeadAttention(…) {output_qk = 1}, of either kind
    ->      y, keys, values, scores = MultiHeadAttention(…)

Left alone:
    queries, keys and values in one tensor, and a bias that is added to them: `split_attention_inputs` comes before
    a buffer for the cache: see `expand_attention_buffer`
    shapes that are not known, types other than float and float16
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = [
    "EXPAND_DECODER_CACHE_ATTENTION",
    "EXPAND_DECODER_CACHE_SCORES",
    "EXPAND_DECODER_CROSS_ATTENTION",
    "EXPAND_DECODER_CROSS_SCORES",
]

_MICROSOFT = "com.microsoft"


def _cross_pattern(op: PatternBuilder, q: Term, k: Term, v: Term) -> Term:
    further = [op.optional("seen"), op.optional("added")]
    return op.DecoderMaskedMultiHeadAttention(q, k, v, *further, _domain=_MICROSOFT, _as="attention")


def _cross_check(match: Match) -> str | None:
    ranks = [len(match[name].shape or ()) for name in "kv"]
    return None if ranks == [4, 4] else "keys and values are not known to be those of an encoder, (B, H, T, D)"


def _replace_cross(op: Builder, match: Match, learned: None) -> Value:
    return _multi_head(op, match, 1)[0]


def _cross_scores_pattern(op: PatternBuilder, q: Term, k: Term, v: Term) -> tuple[Term, ...]:
    call = op.DecoderMaskedMultiHeadAttention(
        q, k, v, op.optional("seen"), op.optional("added"), _domain=_MICROSOFT, _as="attention", output_qk=1
    )
    return tuple(op.outputs(call, 4))


def _replace_scores(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    return _multi_head(op, match, 4)


def _cache_inputs(op: PatternBuilder, q: Term, k: Term, v: Term, past_keys: Term, past_values: Term) -> list[Term | None]:
    return [q, k, v, op.optional("seen"), op.optional("added"), past_keys, past_values, op.optional("used")]


def _cache_pattern(op: PatternBuilder, q: Term, k: Term, v: Term, past_keys: Term, past_values: Term) -> tuple[Term, ...]:
    return tuple(op.outputs(_decoder(op, _cache_inputs(op, q, k, v, past_keys, past_values)), 3))


def _cache_scores_pattern(op: PatternBuilder, q: Term, k: Term, v: Term, past_keys: Term, past_values: Term) -> tuple[Term, ...]:
    inputs = _cache_inputs(op, q, k, v, past_keys, past_values)
    call = op.DecoderMaskedMultiHeadAttention(
        *inputs, _domain=_MICROSOFT, _as="attention", past_present_share_buffer=0, output_qk=1
    )
    return tuple(op.outputs(call, 4))


def _cache_check(match: Match) -> str | None:
    ranks = [len(match[name].shape or ()) for name in "kv"]
    return None if ranks == [3, 3] else "keys and values are not known to be of one token, (B, 1, H x D)"


def _replace_cache(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    return _multi_head(op, match, 3)


def _decoder(op: PatternBuilder, inputs: Sequence[Term | None]) -> Term:
    return op.DecoderMaskedMultiHeadAttention(*inputs, _domain=_MICROSOFT, _as="attention", past_present_share_buffer=0)


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
EXPAND_DECODER_CROSS_SCORES = Rule(
    "expand_decoder_cross_scores",
    _cross_scores_pattern,
    _replace_scores,
    _cross_check,
    takes_apart=_DECODER,
    summary="Write DecoderMaskedMultiHeadAttention with keys of an encoder whose scores are read as MultiHeadAttention.",
)
EXPAND_DECODER_CACHE_SCORES = Rule(
    "expand_decoder_cache_scores",
    _cache_scores_pattern,
    _replace_scores,
    _cache_check,
    takes_apart=_DECODER,
    summary="Write DecoderMaskedMultiHeadAttention with a growing cache whose scores are read as MultiHeadAttention.",
)
