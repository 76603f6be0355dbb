"""Beam search with a decoder whose scores are a table."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.beam_search import BeamSettings, best_places, log_softmax, search_beams
from sardonyx.providers.reference.algorithms.generation_decoders import NextScores, first_totals
from sardonyx.providers.reference.algorithms.generation_scores import ScoreRules

END, PAD = 0, 9
SETTINGS = BeamSettings(
    beams=2, returned=2, max_length=4, length_penalty=1.0, early_stopping=False, end=END, pad=PAD, vocabulary=0, keeps_scores=True
)
PROBABILITIES = np.array([[0.1, 0.5, 0.2, 0.2], [0.6, 0.1, 0.1, 0.2], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]])


class Table:
    """The next token's probabilities hang on the last token alone."""

    def __init__(self, rows: int, *, ranks: bool = False, chooses: bool = False) -> None:
        self.rows, self.ranks, self.chooses = rows, ranks or chooses, chooses

    def start(self) -> NextScores:
        return self.after(np.full(self.rows, 2), first_totals(self.rows // 2, 2))

    def advance(self, tokens: Array, pick: Any, sequences: Array, totals: Array | None = None) -> NextScores:
        assert (sequences[:, -1] == tokens).all()
        assert totals is not None
        return self.after(tokens, totals)

    def after(self, tokens: Array, totals: Array) -> NextScores:
        scores = np.log(PROBABILITIES[np.minimum(tokens, 3)]).astype(np.float32)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :3]
        best = [order, np.take_along_axis(log_softmax(scores), order, axis=1)]
        raw = np.full_like(scores, np.nan) if self.ranks else scores
        return NextScores(raw[:, None], best if self.ranks else (), self.choose(best, totals) if self.chooses else ())

    def choose(self, best: list[Array], totals: Array) -> list[Array]:
        sums = (best[1] + totals.reshape(-1, 1)).reshape(len(totals), -1)
        places = np.argsort(-sums, axis=1, kind="stable")[:, :2]
        rows = 2 * np.arange(len(totals))[:, None] + places // 3
        return [np.take_along_axis(best[0].reshape(len(totals), -1), places, 1), rows, np.take_along_axis(sums, places, 1)]


def best(length: int, settings: BeamSettings) -> list[tuple[float, list[int]]]:
    """All sequences of up to `length` tokens behind a 2, scored; the best first."""
    found: list[tuple[float, list[int]]] = []
    frontier: list[tuple[float, list[int]]] = [(0.0, [2])]
    while frontier:
        total, sequence = frontier.pop()
        if len(sequence) == length:
            found.append((total / length**settings.length_penalty, sequence))
            continue
        for token, probability in enumerate(PROBABILITIES[sequence[-1]]):
            if token == END:
                found.append(((total + np.log(probability)) / len(sequence) ** settings.length_penalty, sequence))
            else:
                frontier.append((total + np.log(probability), [*sequence, token]))
    return sorted(found, reverse=True)


def test_the_best_sequences_are_found() -> None:
    """A search finds the best that trying everything finds."""
    settings = dataclasses.replace(SETTINGS, beams=2, max_length=3, length_penalty=0.0)
    found = search_beams(Table(2), ScoreRules(end=END), np.array([[2]]), settings)
    expected = best(3, settings)[:2]
    np.testing.assert_allclose(found.scores[0, 0], expected[0][0], rtol=1e-5)
    assert found.sequences[0, 0].tolist() in [(sequence + [PAD] * 3)[:3] for _, sequence in expected]


def test_batch_elements_do_not_meddle() -> None:
    """Each element of a batch finds what it finds alone."""
    prompt = np.array([[2], [2], [2]])
    found = search_beams(Table(6), ScoreRules(end=END), prompt, SETTINGS)
    alone = search_beams(Table(2), ScoreRules(end=END), prompt[:1], SETTINGS)
    for element in range(3):
        np.testing.assert_array_equal(found.sequences[element], alone.sequences[0])


def test_what_a_graph_ranked_is_enough() -> None:
    """Where no rule changes scores, the best tokens of each row give what all scores give, which are not read."""
    settings = dataclasses.replace(SETTINGS, keeps_scores=False, max_length=7)
    prompt = np.array([[2], [3], [1]])
    ranked = search_beams(Table(6, ranks=True), ScoreRules(end=END), prompt, settings)
    searched = search_beams(Table(6), ScoreRules(end=END), prompt, settings)
    np.testing.assert_array_equal(ranked.sequences, searched.sequences)
    np.testing.assert_array_equal(ranked.scores, searched.scores)


@pytest.mark.parametrize("least", [0, 3, 9])
@pytest.mark.parametrize("end", [END, 3, 7])
def test_what_a_graph_chose_is_taken_until_a_sequence_ends(end: int, least: int) -> None:
    """The search finds what all scores give, whichever token is the end, and where it comes too early."""
    settings = dataclasses.replace(SETTINGS, keeps_scores=False, max_length=7, end=end)
    prompt, rules = np.array([[2], [3], [1]]), ScoreRules(end=end, min_length=least)
    chosen = search_beams(Table(6, chooses=True), rules, prompt, settings)
    searched = search_beams(Table(6), rules, prompt, settings)
    np.testing.assert_array_equal(chosen.sequences, searched.sequences)
    np.testing.assert_array_equal(chosen.scores, searched.scores)


def test_an_end_that_comes_too_early_is_left_out_of_what_was_ranked() -> None:
    """The other tokens are enough; the search finds what all scores give."""
    settings = dataclasses.replace(SETTINGS, keeps_scores=False, max_length=7)
    prompt, rules = np.array([[2], [1]]), ScoreRules(end=END, min_length=4)
    ranked = search_beams(Table(4, ranks=True), rules, prompt, settings)
    searched = search_beams(Table(4), rules, prompt, settings)
    np.testing.assert_array_equal(ranked.sequences, searched.sequences)
    np.testing.assert_array_equal(ranked.scores, searched.scores)
    assert (ranked.sequences[:, :, :4] != PAD).all()


def test_rules_read_all_scores() -> None:
    """A rule that may change scores is applied to those of all tokens, whatever was ranked."""
    settings = dataclasses.replace(SETTINGS, keeps_scores=False)
    found = search_beams(Table(2, ranks=True), ScoreRules(end=END, temperature=2.0), np.array([[2]]), settings)
    assert np.isnan(found.scores).all()


def test_paths_are_kept_where_they_are_asked_for() -> None:
    """One step for each token that the decoder read; none otherwise."""
    search = dataclasses.replace(SETTINGS, keeps_paths=True, early_stopping=True)
    assert search_beams(Table(2), ScoreRules(end=END), np.array([[2]]), search).paths.shape[2] > 0
    assert search_beams(Table(2), ScoreRules(end=END), np.array([[2]]), SETTINGS).paths.shape == (1, 2, 0)


def test_early_stopping_takes_the_first_that_end() -> None:
    """The search is over when as many sequences have ended as there are beams; further steps have no scores."""
    settings = dataclasses.replace(SETTINGS, early_stopping=True, max_length=9)
    found = search_beams(Table(2), ScoreRules(end=END), np.array([[2]]), settings)
    assert found.step_scores.shape == (8, 1, 2, 4)
    assert not found.step_scores[-1].any()


def test_log_softmax() -> None:
    """The exponentials of a row add up to one, however large the numbers."""
    logits = np.array([[1e4, 1e4 + 1], [-3, 5]], np.float32)
    np.testing.assert_allclose(np.exp(log_softmax(logits)).sum(axis=1), [1, 1], rtol=1e-6)


def test_the_best_places_are_those_of_a_stable_sort() -> None:
    """With equal scores, of which the first ones come first, and where all are equal."""
    scores = np.random.default_rng(1).integers(0, 6, (5, 40)).astype(np.float32)
    scores[4] = 3
    wanted = np.argsort(-scores, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(best_places(scores, 7), wanted)
