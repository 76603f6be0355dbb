"""Tests of changes of scores."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.generate.processors import change_scores, limit_scores, probabilities
from sardonyx.generate.settings import Settings

SCORES = np.array([2, 1, -1, 0.5], np.float32)
NEVER = -np.inf


def _changed(ids: list[int], made: int = 0, most: int = 10, **settings: object) -> list[float]:
    before = SCORES.copy()
    found = change_scores(Settings(**settings), ids, made, most, SCORES)  # type: ignore[arg-type]  # each test gives the types
    assert np.array_equal(before, SCORES)
    return found.tolist()


def test_repeated_tokens_are_made_less_likely() -> None:
    """Positive scores are divided, negative ones multiplied; how often a token came does not matter."""
    assert _changed([0, 2, 2], repetition_penalty=2.0) == [1, 1, -2, 0.5]


def test_sequences_are_not_repeated() -> None:
    """After 0 1 0, a 1 would be the second "0 1"."""
    assert _changed([0, 1, 0], no_repeat_ngram_size=2) == [2, NEVER, -1, 0.5]


def test_rows_do_not_end_before_the_minimum() -> None:
    """Tokens that end rows are excluded until then."""
    assert _changed([], made=1, min_new_tokens=2, eos_token_id=(1,))[1] == NEVER
    assert _changed([], made=2, min_new_tokens=2, eos_token_id=(1,))[1] == 1


def test_forced_tokens_come_first_and_last() -> None:
    """All others are excluded at these places."""
    assert _changed([], forced_bos_token_id=3) == [NEVER, NEVER, NEVER, 0]
    assert _changed([], made=9, forced_eos_token_id=(2,)) == [NEVER, NEVER, 0, NEVER]


def test_suppressed_tokens_never_come() -> None:
    """Those of the beginning are excluded there only."""
    assert _changed([], made=1, suppress_tokens=(0,), begin_suppress_tokens=(1,)) == [NEVER, 1, -1, 0.5]


def test_functions_of_the_users_get_tokens_and_scores() -> None:
    """What they return is taken."""
    assert _changed([1], processors=(lambda ids, scores: scores + len(ids),)) == [3, 2, 0, 1.5]


def test_a_function_that_returns_something_else_is_an_error() -> None:
    """It says which shape was expected."""
    with pytest.raises(InvalidArgument, match="returned the shape"):
        _changed([1], processors=(lambda ids, scores: scores[:2],))


def test_top_k_keeps_the_highest_scores() -> None:
    """The others are excluded."""
    assert limit_scores(Settings(top_k=2), SCORES).tolist() == [2, 1, NEVER, NEVER]


def test_top_p_keeps_the_fewest_that_reach_it() -> None:
    """0.61 + 0.22 is the first sum of at least 0.7."""
    assert probabilities(SCORES).round(2).tolist() == [0.61, 0.22, 0.03, 0.14]
    assert limit_scores(Settings(top_p=0.7), SCORES).tolist() == [2, 1, NEVER, NEVER]


def test_min_p_is_a_part_of_the_highest_probability() -> None:
    """0.14 is less than 0.3 of 0.61."""
    assert limit_scores(Settings(min_p=0.3), SCORES).tolist() == [2, 1, NEVER, NEVER]


def test_scores_are_divided_by_the_temperature() -> None:
    """Before any limit."""
    assert limit_scores(Settings(temperature=0.5), SCORES).tolist() == [4, 2, -2, 1]


@pytest.mark.parametrize("temperature", [1e-37, 1e-45, 1e-300])
def test_a_temperature_near_0_leaves_the_best_tokens(temperature: float) -> None:
    """Where scores divided by it would be beyond float32, their differences are divided; what is excluded stays so."""
    scores = np.array([3, 50, -np.inf, 50, -4], np.float32)
    limited = limit_scores(Settings(do_sample=True, temperature=temperature), scores)
    assert probabilities(limited).tolist() == [0, 0.5, 0, 0.5, 0]


def test_one_of_several_tokens_comes_last() -> None:
    """Where a model has several that end a text."""
    changed = change_scores(Settings(forced_eos_token_id=(1, 3)), [], 4, 5, np.zeros(5, np.float32))
    assert np.flatnonzero(changed == 0).tolist() == [1, 3]
