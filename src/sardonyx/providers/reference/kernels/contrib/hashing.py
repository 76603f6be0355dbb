"""Hashes of n-grams of com.microsoft: numbers of rows in tables of embeddings, of a token and those before it.

Dimension letters: B batch, T tokens, P tokens that a window reaches back, max_ngram_size - 1, D hashes of a token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.packed_sequences import captured_counts, packed_ranges
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["n_gram_hash_mapping", "varlen_n_gram_hash_mapping"]

_MICROSOFT = "com.microsoft"


@kernel("NGramHashMapping", domain=_MICROSOFT)
def n_gram_hash_mapping(
    call: Call,
    input_ids: Array,
    multipliers: Array,
    vocab_sizes: Array,
    past_ids: Array | None = None,
    head_offsets: Array | None = None,
    eos_token_id: Array | None = None,
    segment_ids: Array | None = None,
    *,
    max_ngram_size: int,
    n_head_per_ngram: int,
    pad_id: int,
    reset_on_eos: int = 0,
) -> tuple[Array, Array]:
    """Return hashes (B, T, D) of tokens (B, T), and the last P of past_ids (B, P) and the tokens.

    A hash of n tokens is the exclusive or of each times its multiplier, modulo the head's size, plus its offset; n is 2 to
    max_ngram_size, with n_head_per_ngram heads each. What lies before the history is pad_id, or eos_token_id; so is what lies at
    or before the last such token, with `reset_on_eos`, and what lies before a change of segment_ids (B, T). Source:
    com.microsoft NGramHashMapping.
    """
    if input_ids.ndim != 2:
        raise InvalidArgument(f"input_ids have shape {input_ids.shape}; expected (batch, tokens)")
    hashing = _Hashing.of(
        input_ids, multipliers, vocab_sizes, head_offsets, eos_token_id, max_ngram_size, n_head_per_ngram, pad_id, reset_on_eos
    )
    if head_offsets is not None:
        _check_offsets(head_offsets, vocab_sizes)
    joined = np.concatenate([hashing.history(past_ids, len(input_ids)), input_ids], axis=1)
    segments = None if segment_ids is None else _segments_of_batch(segment_ids, input_ids.shape, hashing.reach)
    check_output_size((*input_ids.shape, len(vocab_sizes)), input_ids.itemsize)
    return hashing.hashes(joined, segments), joined[:, input_ids.shape[1] :]


@kernel("VarlenNGramHashMapping", domain=_MICROSOFT)
def varlen_n_gram_hash_mapping(
    call: Call,
    input_ids: Array,
    multipliers: Array,
    vocab_sizes: Array,
    cumulative_sequence_length: Array,
    past_ids: Array | None = None,
    head_offsets: Array | None = None,
    eos_token_id: Array | None = None,
    segment_ids: Array | None = None,
    past_segment_ids: Array | None = None,
    capture_count: Array | None = None,
    *,
    max_ngram_size: int,
    n_head_per_ngram: int,
    pad_id: int,
    reset_on_eos: int = 0,
    state_update_capacity: int = 0,
) -> tuple[Array | None, ...]:
    """Return hashes (T, D) of the tokens (T) of B sequences in a row, and for each what its next call needs.

    That is the last P of past_ids (B, P) and its tokens, the last P of past_segment_ids (B, P) and segment_ids (T), and the former
    after each of its first `capture_count` tokens, (B, state_update_capacity, P), else pad_id. Sequence i ends before token
    cumulative_sequence_length[i + 1]. Hashes are those of NGramHashMapping, but that offsets wrap and past segments count.
    Source: com.microsoft VarlenNGramHashMapping.
    """
    if input_ids.ndim != 1:
        raise InvalidArgument(f"input_ids have shape {input_ids.shape}; expected (tokens,)")
    ranges = packed_ranges(cumulative_sequence_length, len(input_ids), "cumulative_sequence_length")
    hashing = _Hashing.of(
        input_ids, multipliers, vocab_sizes, head_offsets, eos_token_id, max_ngram_size, n_head_per_ngram, pad_id, reset_on_eos
    )
    counts = captured_counts(capture_count, state_update_capacity, ranges)
    past = hashing.history(past_ids, len(ranges))
    check_output_size((len(input_ids), len(vocab_sizes)), input_ids.itemsize)
    check_output_size((len(ranges), max(state_update_capacity, 1), past.shape[1]), input_ids.itemsize)
    joined = [np.concatenate([row, input_ids[part]]) for row, part in zip(past, ranges, strict=True)]
    segments = _segments(segment_ids, past_segment_ids, past.shape, len(input_ids), ranges)
    hashes = np.concatenate([hashing.hashes(*pair) for pair in zip(joined, segments, strict=True)])
    present = np.stack([row[len(row) - past.shape[1] :] for row in joined])
    present_segments = [row[len(row) - past.shape[1] :] for row in segments if row is not None]
    update = np.full((len(ranges), state_update_capacity, past.shape[1]), pad_id, input_ids.dtype)
    for slots, row, count in zip(update, joined, counts, strict=True):
        for slot in range(count):
            slots[slot] = row[slot + 1 : slot + 1 + past.shape[1]]
    return hashes, present, np.stack(present_segments) if present_segments else None, update


def _segments_of_batch(segment_ids: Array, shape: tuple[int, ...], reach: int) -> Array:
    """Return the segments (B, P + T); all history is of the first token's."""
    _check_shape("segment_ids", segment_ids, shape)
    first = segment_ids[:, :1] if shape[1] else np.zeros((shape[0], 1), segment_ids.dtype)
    return np.concatenate([np.repeat(first, reach, axis=1), segment_ids], axis=1)


def _segments(
    segment_ids: Array | None, past: Array | None, shape: tuple[int, ...], total: int, ranges: list[slice]
) -> Sequence[Array | None]:
    """Return for each sequence the segments of the history (B, P) and of its tokens; without a past all before is of the first."""
    if segment_ids is None:
        if past is not None:
            raise InvalidArgument("past_segment_ids are given without segment_ids; give both or neither")
        return [None] * len(ranges)
    _check_shape("segment_ids", segment_ids, (total,))
    if past is not None:
        _check_shape("past_segment_ids", past, shape)
        return [np.concatenate([row, segment_ids[part]]) for row, part in zip(past, ranges, strict=True)]
    return [np.concatenate([np.full(shape[1], segment_ids[part.start]), segment_ids[part]]) for part in ranges]


@dataclasses.dataclass(frozen=True, slots=True)
class _Hashing:
    """What all tokens of a node are hashed with."""

    multipliers: Array
    """One for each token of the longest n-gram, the newest first."""
    vocab_sizes: Array
    """(D,): what each hash is smaller than."""
    offsets: Array | None
    """(D,): what is added to it."""
    reach: int
    """P."""
    fill: Array
    """The id, a scalar, that stands for a token that is not there."""
    resets: bool
    """Whether a token that is `fill` ends the history before it."""

    @staticmethod
    def of(
        ids: Array,
        multipliers: Array,
        vocab_sizes: Array,
        offsets: Array | None,
        eos: Array | None,
        max_ngram_size: int,
        n_head_per_ngram: int,
        pad_id: int,
        reset_on_eos: int,
    ) -> _Hashing:
        """Check the inputs that have a number for each head or token of an n-gram."""
        if max_ngram_size < 2 or n_head_per_ngram < 1:
            raise InvalidArgument(
                f"max_ngram_size is {max_ngram_size} and n_head_per_ngram {n_head_per_ngram}; expected at least 2 and 1"
            )
        _check_types(ids, multipliers, vocab_sizes, offsets, eos)
        if multipliers.ndim != 1 or len(multipliers) < max_ngram_size:
            raise InvalidArgument(
                f"multipliers have shape {multipliers.shape}; expected at least {max_ngram_size} of them in a row"
            )
        heads = ((max_ngram_size - 1) * n_head_per_ngram,)
        _check_shape("vocab_sizes", vocab_sizes, heads)
        if vocab_sizes.min() <= 0:
            raise InvalidArgument(f"vocab_sizes hold {int(vocab_sizes.min())}; expected positive numbers")
        if offsets is not None:
            _check_shape("head_offsets", offsets, heads)
        if eos is not None:
            _check_shape("eos_token_id", eos, ())
        limits = np.iinfo(ids.dtype)
        if not limits.min <= pad_id <= limits.max:
            raise InvalidArgument(f"pad_id is {pad_id}, which {ids.dtype} cannot hold; give one that it can, or ids of int64")
        fill = np.array(pad_id, ids.dtype) if eos is None else eos
        resets = eos is not None and reset_on_eos != 0
        return _Hashing(multipliers[:max_ngram_size], vocab_sizes, offsets, max_ngram_size - 1, fill, resets)

    def history(self, past_ids: Array | None, batch: int) -> Array:
        """Return the P ids before each sequence, (B, P)."""
        if past_ids is None:
            check_output_size((batch, self.reach), self.fill.itemsize)
            return np.full((batch, self.reach), self.fill, self.fill.dtype)
        _check_shape("past_ids", past_ids, (batch, self.reach))
        return past_ids.astype(self.fill.dtype, copy=False)

    def hashes(self, joined: Array, segments: Array | None) -> Array:
        """Return the hashes (…, T, D) of all but the first P of `joined` (…, P + T), whose segments have its shape."""
        count = joined.shape[-1] - self.reach
        firsts = self._firsts(joined, segments)[..., self.reach :]
        places = np.arange(self.reach, self.reach + count)
        mixed = joined[..., self.reach :] * self.multipliers[0]
        result = np.empty((*joined.shape[:-1], count, len(self.vocab_sizes)), joined.dtype)
        heads = len(self.vocab_sizes) // self.reach
        for back in range(1, self.reach + 1):
            shifted = joined[..., self.reach - back : self.reach - back + count]
            mixed = mixed ^ (np.where(places - back >= firsts, shifted, self.fill) * self.multipliers[back])
            part = slice((back - 1) * heads, back * heads)
            result[..., part] = mixed[..., None] % self.vocab_sizes[part]
        return result if self.offsets is None else result + self.offsets

    def _firsts(self, joined: Array, segments: Array | None) -> Array:
        """Return for each place of `joined` the first that belongs to its history."""
        places = np.arange(joined.shape[-1])
        firsts = np.zeros(joined.shape, np.int64)
        if self.resets:
            after = np.where(joined == self.fill, places + 1, 0)
            firsts[..., 1:] = np.maximum.accumulate(after, axis=-1)[..., :-1]
        if segments is not None:
            changes = np.where(segments[..., 1:] != segments[..., :-1], places[1:], 0)
            firsts[..., 1:] = np.maximum(firsts[..., 1:], np.maximum.accumulate(changes, axis=-1))
        return firsts


def _check_types(ids: Array, *others: Array | None) -> None:
    if ids.dtype not in (np.int32, np.int64) or any(other is not None and other.dtype != ids.dtype for other in others):
        found = ", ".join(str(other.dtype) for other in (ids, *others) if other is not None)
        raise InvalidArgument(f"the inputs have types {found}; expected int32 or int64, one for all; insert a Cast")


def _check_shape(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InvalidArgument(f"{name} has shape {array.shape}; expected {shape}")


def _check_offsets(offsets: Array, vocab_sizes: Array) -> None:
    room = np.iinfo(offsets.dtype).max - vocab_sizes
    wrong = np.flatnonzero((offsets < 0) | (offsets > room))
    if len(wrong):
        at = int(wrong[0])
        raise InvalidArgument(
            f"head_offsets hold {int(offsets[at])} for a head of {int(vocab_sizes[at])} numbers; expected 0 or more, and a sum "
            f"of both that {offsets.dtype} holds"
        )
