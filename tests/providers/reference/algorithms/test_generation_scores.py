"""The rules for the scores of the next token, one at a time."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.generation_scores import ScoreRules, WhisperTokens

LEAST = np.finfo(np.float32).min


def applied(rules: ScoreRules, *sequences: list[int], vocabulary: int = 6, step: int = 0) -> Array:
    scores = np.tile(np.linspace(-1, 1, vocabulary, dtype=np.float32), (len(sequences), 1))
    rules.apply(scores, np.array(sequences), step=step)
    return scores


def forbidden(scores: Array) -> list[list[int]]:
    return [np.flatnonzero(row == LEAST).tolist() for row in scores]


def test_what_was_said_is_penalized() -> None:
    """A negative score is multiplied, a positive one divided, once for each token."""
    scores = applied(ScoreRules(end=0, repetition_penalty=2.0), [0, 5, 5])
    np.testing.assert_allclose(scores[0, [0, 1, 5]], [-2, -0.6, 0.5], rtol=1e-6)


def test_ngrams_do_not_come_twice() -> None:
    """The last token of an n-gram that was there is forbidden behind its beginning; with n = 1 every token that was there."""
    assert forbidden(applied(ScoreRules(end=0, no_repeat_ngram_size=2), [1, 2, 1], [3, 3, 4])) == [[2], []]
    assert forbidden(applied(ScoreRules(end=0, no_repeat_ngram_size=1), [1, 2, 1])) == [[1, 2]]


def test_masks_forbid() -> None:
    """One mask holds always, the other in the first step; each batch element's serves all its beams."""
    rules = ScoreRules(end=0, vocab_mask=np.array([1, 1, 1, 1, 1, 0]), prefix_vocab_mask=np.array([[0, 1, 1, 1, 1, 1]]))
    assert forbidden(applied(rules, [1], [2])) == [[0, 5], [0, 5]]
    assert forbidden(applied(rules, [1], [2], step=1)) == [[5], [5]]
    with pytest.raises(InvalidArgument, match="vocab_mask has shape"):
        applied(ScoreRules(end=0, vocab_mask=np.ones(3)), [1])


def test_forced_tokens_come_first() -> None:
    """A batch element's token has the score 0 in its step for all beams; one below 0 or beyond the vocabulary forces nothing."""
    rules = ScoreRules(end=0, forced=np.array([[2, 9], [-1, 4]]))
    first, second, later = (applied(rules, [1], [1], [1], [1], step=step) for step in (0, 1, 2))
    assert forbidden(first) == [[0, 1, 3, 4, 5], [0, 1, 3, 4, 5], [], []]
    assert first[0, 2] == 0
    assert forbidden(second) == [[], [], [0, 1, 2, 3, 5], [0, 1, 2, 3, 5]]
    assert forbidden(later) == [[]] * 4


def test_the_mask_of_the_first_step_lasts_while_tokens_are_forced() -> None:
    """It holds up to the first step that is chosen."""
    rules = ScoreRules(end=0, forced=np.array([[-1, -1]]), prefix_vocab_mask=np.array([[1, 1, 0, 1, 1, 1]]))
    assert [forbidden(applied(rules, [1], step=step))[0] for step in range(4)] == [[2], [2], [2], []]


def test_the_end_waits() -> None:
    """Below the least length the end is forbidden."""
    assert forbidden(applied(ScoreRules(end=3, min_length=3), [1, 2])) == [[3]]
    assert forbidden(applied(ScoreRules(end=3, min_length=3), [1, 2, 2])) == [[]]


def test_temperature_divides_and_presence_subtracts() -> None:
    """First the one, then the other."""
    rules = ScoreRules(end=0, temperature=2.0, presence_mask=np.array([[0, 0, 0, 0, 0, 1]]), presence_penalty=3.0)
    np.testing.assert_allclose(applied(rules, [1])[0, [0, 5]], [-0.5, -2.5], rtol=1e-6)


def test_timestamps_come_in_pairs_and_in_order() -> None:
    """Behind a pair comes text, behind a single one its partner or the end, never an earlier one."""
    rules = ScoreRules(end=3, timestamps=WhisperTokens(end=3, begin=8, forbidden=(7,), forbidden_later=(6,)))
    assert forbidden(applied(rules, [0, 8], vocabulary=12))[0] == [7, 8, 9, 10, 11]
    assert forbidden(applied(rules, [8, 1, 10], vocabulary=12))[0] == list(range(10))
    assert forbidden(applied(rules, [8, 1, 10, 10], vocabulary=12))[0] == [6, 7, 8, 9, 10, 11]


def test_unknown_tokens_are_refused() -> None:
    """A sequence with a token that the scores do not have names it."""
    with pytest.raises(InvalidArgument, match="tokens run from 1 to 9; the vocabulary has 6"):
        applied(ScoreRules(end=0, repetition_penalty=2.0), [1, 9])


def test_rules_say_where_they_change_no_score() -> None:
    """But for that of an end which comes too early, of which they say so by itself."""
    assert ScoreRules(end=1, min_length=5).is_idle(3, step=0)
    assert ScoreRules(end=1, min_length=5).forbids_end(4)
    assert not ScoreRules(end=1, min_length=5).forbids_end(5)
    assert not ScoreRules(end=1, repetition_penalty=1.1).is_idle(3, step=0)
    assert not ScoreRules(end=1, no_repeat_ngram_size=2).is_idle(2, step=0)
    assert ScoreRules(end=1, no_repeat_ngram_size=2).is_idle(1, step=0)
    assert not ScoreRules(end=1, forced=np.array([[3]])).is_idle(1, step=0)
    assert ScoreRules(end=1, forced=np.array([[3]])).is_idle(2, step=1)
