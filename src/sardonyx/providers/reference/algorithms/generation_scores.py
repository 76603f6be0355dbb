"""What the generation loops of com.microsoft do to the scores of the next token before they choose it.

Scores are (rows, V), sequences (rows, length): the tokens so far. A forbidden token gets the least number of float32.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["ScoreRules", "WhisperTokens"]

_FORBIDDEN = np.finfo(np.float32).min
_MOST_FIRST_TIMESTAMP = 50
"""The latest timestamp that a transcription may begin with, in steps of 20 ms."""


@dataclasses.dataclass(frozen=True, slots=True)
class WhisperTokens:
    """The tokens of Whisper's vocabulary with a meaning."""

    end: int
    """End of the text."""
    begin: int
    """The first timestamp; all behind it are timestamps."""
    forbidden: tuple[int, ...]
    """Tokens that never come."""
    forbidden_later: tuple[int, ...]
    """Tokens that come in no place behind the first timestamp."""

    def apply(self, scores: Array, sequences: Array) -> None:
        """Let timestamps come in pairs, in order, and none far into the audio first; changes `scores`."""
        scores[:, _inside(self.forbidden, scores)] = _FORBIDDEN
        for row, sequence in zip(scores, sequences, strict=True):
            self._apply_to_row(row, sequence)

    def _apply_to_row(self, row: Array, sequence: Array) -> None:
        stamps = np.flatnonzero(sequence >= self.begin)
        length = len(sequence)
        first = int(stamps[0]) + 1 if len(stamps) else length
        if length > first:
            row[_inside(self.forbidden_later, row[None])] = _FORBIDDEN
        is_last = length > 0 and sequence[-1] >= self.begin
        is_before_last = length <= first or sequence[-2] >= self.begin
        if is_last and is_before_last:
            row[self.begin :] = _FORBIDDEN
        elif is_last:
            row[: self.end] = _FORBIDDEN
        if len(stamps):
            newest = int(sequence[stamps[-1]])
            row[self.begin : newest + (0 if is_last and not is_before_last else 1)] = _FORBIDDEN
        if length == first:
            row[self.begin + _MOST_FIRST_TIMESTAMP + 1 :] = _FORBIDDEN
        self._prefer_timestamps(row)

    def _prefer_timestamps(self, row: Array) -> None:
        """Forbid text where all timestamps together are likelier than any token of text."""
        stamps = row[self.begin :][row[self.begin :] > _FORBIDDEN]
        if stamps.size and np.logaddexp.reduce(stamps) > row[: self.begin].max(initial=_FORBIDDEN):
            row[: self.begin] = _FORBIDDEN


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreRules:
    """The rules of one node, in the order in which they apply."""

    end: int
    """The token that ends a sequence."""
    repetition_penalty: float = 1.0
    """Tokens that were there are made less likely by it."""
    no_repeat_ngram_size: int = 0
    """No n-gram of this length comes twice; 0 for any."""
    vocab_mask: Array | None = None
    """(V,): 0 forbids a token."""
    prefix_vocab_mask: Array | None = None
    """(batch, V): 0 forbids a token in the first step, and in those whose tokens are forced before it."""
    min_length: int = 0
    """The end does not come before this length."""
    temperature: float = 1.0
    """What the scores are divided by."""
    presence_mask: Array | None = None
    """(batch, V): 1 where the penalty counts."""
    presence_penalty: float = 0.0
    """What is taken off the scores of the tokens that `presence_mask` names."""
    timestamps: WhisperTokens | None = None
    """Rules of Whisper."""
    forced: Array | None = None
    """(batch, count): the first tokens behind the prompt; one below 0 leaves its step open."""

    def is_idle(self, length: int, *, step: int) -> bool:
        """Return whether `apply` would change no score of sequences of this length, but for that of a forbidden end.

        Args:
            length: of the sequences.
            step: which token behind the prompt comes next.
        """
        return (
            self.repetition_penalty == 1
            and not 0 < self.no_repeat_ngram_size <= length
            and self.vocab_mask is None
            and (self.prefix_vocab_mask is None or step > self._forced_steps)
            and self.temperature in (0, 1)
            and (self.presence_mask is None or not self.presence_penalty)
            and self.timestamps is None
            and step >= self._forced_steps
        )

    def forbids_end(self, length: int) -> bool:
        """Return whether sequences of this length are too short to end."""
        return length < self.min_length

    def apply(self, scores: Array, sequences: Array, *, step: int) -> None:
        """Apply the rules in front of token `step` behind the prompt, counted from 0; changes `scores`."""
        if self.repetition_penalty != 1:
            self._penalize_repetition(scores, sequences)
        if 0 < self.no_repeat_ngram_size <= sequences.shape[1]:
            self._forbid_ngrams(scores, sequences)
        if self.vocab_mask is not None:
            scores[:, _mask(self.vocab_mask, scores.shape[1:]) == 0] = _FORBIDDEN
        if self.prefix_vocab_mask is not None and step <= self._forced_steps:
            scores[self._per_row("prefix_vocab_mask", self.prefix_vocab_mask, scores) == 0] = _FORBIDDEN
        if self.forbids_end(sequences.shape[1]) and 0 <= self.end < scores.shape[1]:
            scores[:, self.end] = _FORBIDDEN
        if self.temperature not in (0, 1):
            scores /= np.float32(self.temperature)
        if self.presence_mask is not None and self.presence_penalty:
            scores -= self._per_row("presence_mask", self.presence_mask, scores) * np.float32(self.presence_penalty)
        if self.timestamps is not None:
            self.timestamps.apply(scores, sequences)
        if self.forced is not None and step < self._forced_steps:
            self._force(scores, self.forced[:, step])

    @property
    def _forced_steps(self) -> int:
        return 0 if self.forced is None else self.forced.shape[1]

    def _force(self, scores: Array, tokens: Array) -> None:
        """Give the score 0 to the token (batch,) of each batch element, and forbid the others, where it is in the vocabulary."""
        wanted = np.repeat(tokens, len(scores) // len(tokens))
        rows = np.flatnonzero((wanted >= 0) & (wanted < scores.shape[1]))
        scores[rows] = _FORBIDDEN
        scores[rows, wanted[rows]] = 0

    def _penalize_repetition(self, scores: Array, sequences: Array) -> None:
        used = _checked(sequences, scores.shape[1])
        found, penalty = np.take_along_axis(scores, used, axis=1), np.float32(self.repetition_penalty)
        np.put_along_axis(scores, used, np.where(found < 0, found * penalty, found / penalty), axis=1)

    def _forbid_ngrams(self, scores: Array, sequences: Array) -> None:
        size = self.no_repeat_ngram_size
        grams = np.lib.stride_tricks.sliding_window_view(sequences, size, axis=1)
        prefix = sequences[:, None, sequences.shape[1] - size + 1 :]
        row, place = np.nonzero((grams[..., :-1] == prefix).all(axis=-1))
        scores[row, _checked(grams[row, place, -1], scores.shape[1])] = _FORBIDDEN

    def _per_row(self, name: str, mask: Array, scores: Array) -> Array:
        """Return a mask of each batch element, repeated for its beams."""
        if mask.ndim != 2 or mask.shape[1] != scores.shape[1] or len(mask) == 0 or len(scores) % len(mask):
            raise InvalidArgument(f"{name} has shape {mask.shape}; expected (batch, {scores.shape[1]})")
        return np.repeat(mask, len(scores) // len(mask), axis=0)


def _mask(mask: Array, shape: tuple[int, ...]) -> Array:
    if mask.shape != shape:
        raise InvalidArgument(f"vocab_mask has shape {mask.shape}; expected {shape}")
    return mask


def _checked(tokens: Array, vocabulary: int) -> Array:
    if tokens.size and not 0 <= tokens.min() <= tokens.max() < vocabulary:
        raise InvalidArgument(f"tokens run from {tokens.min()} to {tokens.max()}; the vocabulary has {vocabulary}")
    return tokens.astype(np.int64)


def _inside(tokens: tuple[int, ...], scores: Array) -> list[int]:
    return [token for token in tokens if 0 <= token < scores.shape[1]]
