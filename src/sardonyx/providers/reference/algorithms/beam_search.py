"""Beam search: the best few sequences of tokens by the sum of their logarithmic probabilities.

B batch elements, each with `beams` rows that lie together; V the vocabulary. What ends is kept with its score divided by a power of
its length; a batch element is done when none of its open rows can beat the worst that it keeps.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.generation_decoders import Decoder, NextScores, first_totals
from sardonyx.providers.reference.algorithms.generation_scores import ScoreRules

__all__ = ["BeamResult", "BeamSettings", "best_places", "search_beams"]


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
    keeps_paths: bool = False
    """Whether it is given out in which rows sequences were read."""


@dataclasses.dataclass(frozen=True, slots=True)
class BeamResult:
    """What a search finds."""

    sequences: Array
    """(B, returned, max_length), best first."""
    scores: Array
    """(B, returned)."""
    step_scores: Array
    """(steps, B, beams, V), zero for steps that were not made; empty unless kept."""
    first: NextScores
    """What the decoder said first."""
    paths: Array
    """(B, returned, advances): the row that each advance of the decoder read a sequence's token in; -1 where it read none.

    Without advances unless kept.
    """


_Candidate: TypeAlias = tuple[float, int, int]
"""A token that may come next: its total, negative; the beam that it goes on from; its number. In order, the best come first."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """A sequence that has ended, or was open in the end."""

    score: np.float32
    sequence: Array
    row: int
    """Where it lay in the end."""
    advances: int
    """How many of its tokens the decoder read behind the prompt."""


class _BestSequences:
    """The best finished sequences of one batch element."""

    def __init__(self, settings: BeamSettings) -> None:
        self._settings = settings
        self.best: list[_Kept] = []
        self.is_done = False

    def add(self, sequence: Array, row: int, advances: int, total: float) -> None:
        score = np.float32(total) / np.float32(len(sequence)) ** np.float32(self._settings.length_penalty)
        place = sum(bool(kept.score >= score) for kept in self.best)
        if place < self._settings.beams:
            self.best.insert(place, _Kept(score, sequence.copy(), row, advances))
            del self.best[self._settings.beams :]

    def close(self, best_open: float, length: int) -> None:
        """Close if no open row, the best of which has this total, can get better than what is kept."""
        if len(self.best) < self._settings.beams:
            return
        reachable = np.float32(best_open) / np.float32(length) ** np.float32(self._settings.length_penalty)
        self.is_done = self._settings.early_stopping or bool(self.best[-1].score >= reachable)


def search_beams(decoder: Decoder, rules: ScoreRules, prompt: Array, settings: BeamSettings) -> BeamResult:
    """Search from `prompt` (B, length); the decoder has `beams` rows for each batch element, all the same in the beginning."""
    batch, beams = len(prompt), settings.beams
    check_output_size((batch * beams, settings.max_length), 8)
    kept = [_BestSequences(settings) for _ in prompt]
    length = prompt.shape[1]
    whole = np.empty((batch * beams, settings.max_length), prompt.dtype)
    whole[:, :length] = np.repeat(prompt, beams, axis=0)
    own, picks = list(range(batch * beams)), list[list[int]]()
    totals, has_ended = first_totals(batch, beams), False
    found = first = decoder.start()
    recorded: list[Array] = []
    while True:
        sequences, step = whole[:, :length], length - prompt.shape[1]
        reads_few = not settings.keeps_scores and rules.is_idle(length, step=step)
        if reads_few and found.chosen and not has_ended and settings.end not in found.chosen[0].ravel().tolist():
            tokens, rows, totals = found.chosen
            tokens, rows = tokens.ravel(), rows.ravel()
        else:
            if reads_few and _has_ranked(found, len(whole), beams):
                candidates = _merge(found.best, totals, forbidden=rules.end if rules.forbids_end(length) else None)
            else:
                scores = log_softmax(_cut(found.logits, settings, len(whole)))
                rules.apply(scores, sequences, step=step)
                scores += totals.reshape(-1, 1)
                if settings.keeps_scores:
                    recorded.append(scores.reshape(batch, beams, -1))
                candidates = _rank(scores.reshape(batch, -1), beams)
            tokens, rows, totals = _choose(candidates, sequences, len(picks), kept, settings)
            has_ended = any(item.best for item in kept)
        order: list[int] = rows.tolist()
        if order != own:
            whole[:, :length] = sequences.take(rows, axis=0)
        whole[:, length] = tokens
        length += 1
        if length >= settings.max_length or all(item.is_done for item in kept):
            break
        found = decoder.advance(tokens, rows, whole[:, :length], totals)
        picks.append(order)
    _add_open(whole[:, :length], len(picks), totals, kept, beams)
    paths = _best_paths(kept, settings, picks if settings.keeps_paths else [])
    return BeamResult(*_best(kept, settings), _stack(recorded, settings.max_length - prompt.shape[1]), first, paths)


def _has_ranked(found: NextScores, rows: int, beams: int) -> bool:
    """Return whether a graph ranked enough of the tokens of each row: one row may go on with `beams`, and end with another."""
    return len(found.best) == 2 and len(found.best[0]) == rows and found.best[0].shape[1] > beams


def _merge(best: Sequence[Array], totals: Array, forbidden: int | None) -> list[list[_Candidate]]:
    """Return the best for each batch element of what was ranked for each row, without a token that is forbidden."""
    tokens, scores = best
    batch, beams = totals.shape
    count = beams + 1
    losses = (-totals.reshape(-1, 1) - scores[:, :count]).reshape(batch, beams * count).tolist()
    numbers = tokens[:, :count].reshape(batch, beams * count).tolist()
    rows = _rows(beams, count)
    found = []
    for each in zip(losses, numbers, strict=True):
        candidates = sorted(zip(each[0], rows, each[1], strict=True))
        if forbidden is not None:
            candidates = [candidate for candidate in candidates if candidate[2] != forbidden]
        found.append(candidates[: 2 * beams])
    return found


@functools.lru_cache(maxsize=8)
def _rows(beams: int, count: int) -> tuple[int, ...]:
    """Return the number of each beam, `count` times."""
    return tuple(row for row in range(beams) for _ in range(count))


def _rank(scores: Array, beams: int) -> list[list[_Candidate]]:
    """Return the best of all tokens of `beams` rows, scores (B, beams * V)."""
    order = best_places(scores, 2 * beams)
    rows, tokens = np.divmod(order, scores.shape[1] // beams)
    losses = -np.take_along_axis(scores, order, axis=1)
    return [list(zip(*each, strict=True)) for each in zip(losses.tolist(), rows.tolist(), tokens.tolist(), strict=True)]


def _path(picks: Sequence[Sequence[int]], row: int) -> Array:
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
    candidates: list[list[_Candidate]],
    sequences: Array,
    advances: int,
    kept: list[_BestSequences],
    settings: BeamSettings,
) -> tuple[Array, Array, Array]:
    """Return the next token of each row, the row that it goes on from, and the totals (B, beams); changes `kept`."""
    beams, end = settings.beams, settings.end
    tokens: list[int] = []
    rows: list[int] = []
    sums: list[float] = []
    for batch, item in enumerate(kept):
        first = batch * beams
        last = first + beams
        if item.is_done:
            tokens += [settings.pad] * beams
            rows += [first] * beams
            sums += [0.0] * beams
            continue
        for rank, (loss, row, token) in enumerate(candidates[batch]):
            if token == end:
                if rank < beams:
                    item.add(sequences[first + row], first + row, advances, -loss)
                continue
            tokens.append(token)
            rows.append(first + row)
            sums.append(-loss)
            if len(tokens) == last:
                break
        item.close(-candidates[batch][0][0], sequences.shape[1])
    return np.array(tokens, np.int32), np.array(rows), np.array(sums, np.float32).reshape(-1, beams)


def best_places(scores: Array, count: int) -> Array:
    """Return the places of the `count` greatest scores of each row, the greatest first, and of equal ones the first."""
    least = np.partition(scores, scores.shape[1] - count, axis=1)[:, scores.shape[1] - count]
    chosen = np.empty((len(scores), count), np.int64)
    for row, (values, bound) in enumerate(zip(scores, least, strict=True)):
        places = np.flatnonzero(~(values < bound))
        chosen[row] = places[np.argsort(-values[places], kind="stable")][:count]
    return chosen


def _add_open(sequences: Array, advances: int, totals: Array, kept: list[_BestSequences], beams: int) -> None:
    """Put the open rows of what is not done among its best sequences; changes `kept`."""
    for batch, item in enumerate(kept):
        for row in () if item.is_done else range(batch * beams, (batch + 1) * beams):
            item.add(sequences[row], row, advances, totals.flat[row])


def _best(kept: list[_BestSequences], settings: BeamSettings) -> tuple[Array, Array]:
    """Return the best sequences and their scores."""
    found = np.full((len(kept), settings.returned, settings.max_length), settings.pad, np.int32)
    scores = np.zeros((len(kept), settings.returned), np.float32)
    for batch, item in enumerate(kept):
        for place, best in enumerate(item.best[: settings.returned]):
            found[batch, place, : len(best.sequence)] = best.sequence
            scores[batch, place] = best.score
    return found, scores


def _best_paths(kept: list[_BestSequences], settings: BeamSettings, picks: Sequence[Sequence[int]]) -> Array:
    found = np.full((len(kept), settings.returned, len(picks)), -1, np.int64)
    for batch, item in enumerate(kept):
        for place, best in enumerate(item.best[: settings.returned]):
            count = min(best.advances, len(picks))
            found[batch, place, :count] = _path(picks[:count], best.row)
    return found


def _stack(recorded: list[Array], steps: int) -> Array:
    if not recorded:
        return np.zeros((0, 0, 0, 0), np.float32)
    check_output_size((steps, *recorded[0].shape), 4)
    stacked = np.zeros((steps, *recorded[0].shape), np.float32)
    stacked[: len(recorded)] = recorded
    return stacked
