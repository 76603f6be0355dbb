"""Beam search: the best few sequences of tokens by the sum of their logarithmic probabilities.

B batch elements, each with `beams` rows that lie together; V the vocabulary. What ends is kept with its score divided by a power of
its length; a batch element is done when none of its open rows can beat the worst that it keeps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.generation_decoders import Decoder
from sardonyx.providers.reference.algorithms.generation_scores import ScoreRules

__all__ = ["BeamResult", "BeamSettings", "best_places", "search_beams"]

_CLOSED = np.float32(-1e9)
"""The score that all rows but the first begin with, so that rows of one batch element do not choose the same."""


@dataclasses.dataclass(frozen=True, slots=True)
class BeamSettings:
    """What a search is asked for."""

    beams: int
    """Rows of a batch element."""
    returned: int
    """Sequences that each batch element gives."""
    max_length: int
    """Longest sequence, prompt included."""
    length_penalty: float
    """The power of the length that divides a score."""
    early_stopping: bool
    """Whether a batch element is done as soon as it keeps `beams` sequences."""
    end: int
    """The token that ends a sequence; it is not kept."""
    pad: int
    """What fills the rest."""
    vocabulary: int
    """How many of the scores are tokens; 0 for all."""
    keeps_scores: bool
    """Whether the scores of each step are given out."""


@dataclasses.dataclass(frozen=True, slots=True)
class BeamResult:
    """What a search finds."""

    sequences: Array
    """(B, returned, max_length), best first."""
    scores: Array
    """(B, returned)."""
    step_scores: Array
    """(steps, B, beams, V), zero for steps that were not made; empty unless kept."""
    first_logits: Array
    """(rows, V): the scores of the first step as the decoder gave them."""
    paths: Array
    """(B, returned, advances): the row that each advance of the decoder read a sequence's token in; -1 where it read none."""


class _BestSequences:
    """The best finished sequences of one batch element."""

    def __init__(self, settings: BeamSettings) -> None:
        self._settings = settings
        self.best: list[tuple[np.float32, Array, Array]] = []
        self.is_done = False

    def add(self, sequence: Array, path: Array, total: np.float32) -> None:
        score = total / np.float32(len(sequence)) ** np.float32(self._settings.length_penalty)
        place = sum(bool(kept[0] >= score) for kept in self.best)
        self.best.insert(place, (score, sequence, path))
        del self.best[self._settings.beams :]

    def close(self, best_open: np.float32, length: int) -> None:
        """Close if no open row, the best of which has this total, can get better than what is kept."""
        if len(self.best) < self._settings.beams:
            return
        reachable = best_open / np.float32(length) ** np.float32(self._settings.length_penalty)
        self.is_done = self._settings.early_stopping or bool(self.best[-1][0] >= reachable)


def search_beams(decoder: Decoder, rules: ScoreRules, prompt: Array, settings: BeamSettings) -> BeamResult:
    """Search from `prompt` (B, length); the decoder has `beams` rows for each batch element, all the same in the beginning."""
    beams = settings.beams
    check_output_size((len(prompt) * beams, settings.max_length), 8)
    kept = [_BestSequences(settings) for _ in prompt]
    sequences: Array = np.repeat(prompt, beams, axis=0)
    picks: list[Array] = []
    totals: Array = np.full((len(prompt), beams), _CLOSED)
    totals[:, :1] = 0
    logits = first_logits = _cut(decoder.start(), settings, len(sequences))
    recorded: list[Array] = []
    while True:
        scores = log_softmax(logits)
        rules.apply(scores, sequences, step=sequences.shape[1] - prompt.shape[1])
        scores += totals.reshape(-1, 1)
        if settings.keeps_scores:
            recorded.append(scores.reshape(len(prompt), beams, -1).copy())
        tokens, rows = _choose(scores.reshape(len(prompt), -1), sequences, picks, totals, kept, settings)
        sequences = np.concatenate([sequences.take(rows, axis=0), tokens[:, None].astype(sequences.dtype)], axis=1)
        if sequences.shape[1] >= settings.max_length or all(item.is_done for item in kept):
            break
        logits = _cut(decoder.advance(tokens, rows, sequences), settings, len(sequences))
        picks.append(rows)
    _add_open(sequences, [_path(picks, row) for row in rows.tolist()], totals, kept, beams)
    steps = settings.max_length - prompt.shape[1]
    return BeamResult(*_best(kept, settings), _stack(recorded, steps), first_logits, _best_paths(kept, settings, len(picks)))


def _path(picks: Sequence[Array], row: int) -> Array:
    """Return the row in which each advance read a token of the sequence that is in `row` after the last; int64 (advances,).

    Args:
        picks: for each advance the row (rows,) that each of its rows went on from.
        row: the place of the sequence.
    """
    path = np.empty(len(picks), np.int64)
    for advance in reversed(range(len(picks))):
        path[advance] = row
        row = picks[advance][row]
    return path


def log_softmax(logits: Array) -> Array:
    """Return the logarithms of the probabilities, row by row."""
    shifted: Array = logits - logits.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


def _cut(logits: Array, settings: BeamSettings, rows: int) -> Array:
    logits = logits[:, : settings.vocabulary] if settings.vocabulary > 0 else logits
    if len(logits) != rows or logits.shape[1] < 2 * settings.beams:
        raise InvalidArgument(
            f"the decoder gives scores of shape {logits.shape}; expected {rows} rows, and {2 * settings.beams} "
            f"tokens at least for {settings.beams} beams"
        )
    return logits


def _choose(
    scores: Array, sequences: Array, picks: Sequence[Array], totals: Array, kept: list[_BestSequences], settings: BeamSettings
) -> tuple[Array, Array]:
    """Return the next token of each row and the row that it goes on from; changes `totals` and `kept`."""
    beams, vocabulary = settings.beams, scores.shape[1] // settings.beams
    order = best_places(scores, 2 * beams)
    tokens, rows = [settings.pad] * len(sequences), list(range(len(sequences)))
    for batch, item in enumerate(kept):
        first = batch * beams
        if item.is_done:
            totals[batch] = 0
            rows[first : first + beams] = [first] * beams
            continue
        open_choices: list[int] = []
        for rank, choice in enumerate(order[batch].tolist()):
            row, token = divmod(choice, vocabulary)
            if token == settings.end:
                if rank < beams:
                    item.add(sequences[first + row], _path(picks, first + row), scores[batch, choice])
                continue
            tokens[first + len(open_choices)], rows[first + len(open_choices)] = token, first + row
            open_choices.append(choice)
            if len(open_choices) == beams:
                break
        totals[batch, : len(open_choices)] = scores[batch].take(open_choices)
        item.close(scores[batch, order[batch, 0]], sequences.shape[1])
    return np.array(tokens, np.int64), np.array(rows)


def best_places(scores: Array, count: int) -> Array:
    """Return the places of the `count` greatest scores of each row, the greatest first, and of equal ones the first."""
    least = np.partition(scores, scores.shape[1] - count, axis=1)[:, scores.shape[1] - count]
    chosen = np.empty((len(scores), count), np.int64)
    for row, (values, bound) in enumerate(zip(scores, least, strict=True)):
        places = np.flatnonzero(~(values < bound))
        chosen[row] = places[np.argsort(-values[places], kind="stable")][:count]
    return chosen


def _add_open(sequences: Array, paths: Sequence[Array], totals: Array, kept: list[_BestSequences], beams: int) -> None:
    """Put the open rows of what is not done among its best sequences; changes `kept`."""
    for batch, item in enumerate(kept):
        for row in () if item.is_done else range(batch * beams, (batch + 1) * beams):
            item.add(sequences[row], paths[row], totals.flat[row])


def _best(kept: list[_BestSequences], settings: BeamSettings) -> tuple[Array, Array]:
    """Return the best sequences and their scores."""
    found = np.full((len(kept), settings.returned, settings.max_length), settings.pad, np.int32)
    scores = np.zeros((len(kept), settings.returned), np.float32)
    for batch, item in enumerate(kept):
        for place, (score, sequence, _) in enumerate(item.best[: settings.returned]):
            found[batch, place, : len(sequence)] = sequence
            scores[batch, place] = score
    return found, scores


def _best_paths(kept: list[_BestSequences], settings: BeamSettings, advances: int) -> Array:
    found = np.full((len(kept), settings.returned, advances), -1, np.int64)
    for batch, item in enumerate(kept):
        for place, (_, _, path) in enumerate(item.best[: settings.returned]):
            found[batch, place, : len(path)] = path
    return found


def _stack(recorded: list[Array], steps: int) -> Array:
    if not recorded:
        return np.zeros((0, 0, 0, 0), np.float32)
    check_output_size((steps, *recorded[0].shape), 4)
    stacked = np.zeros((steps, *recorded[0].shape), np.float32)
    stacked[: len(recorded)] = recorded
    return stacked
