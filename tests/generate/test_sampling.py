"""Tests of the choice of tokens."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import RuntimeException
from sardonyx.generate.processors import probabilities
from sardonyx.generate.sampling import Sampler, draw
from sardonyx.generate.settings import Settings

SCORES = np.array([0, 2, 1, -3], np.float32)


def test_the_best_token_is_taken_unless_tokens_are_drawn() -> None:
    """Greedy search."""
    assert Sampler(Settings(), 5).choose([], 0, SCORES) == 1


def test_tokens_are_drawn_by_their_probability() -> None:
    """The counts of 20,000 draws are within four standard deviations."""
    random, count = np.random.default_rng(0), 20_000
    found = np.bincount([draw(SCORES, random) for _ in range(count)], minlength=4)
    expected = probabilities(SCORES)
    assert (abs(found - count * expected) < 4 * np.sqrt(count * expected * (1 - expected))).all()


def test_excluded_tokens_are_never_drawn() -> None:
    """Also where rounding would lead behind the last one."""
    scores = np.array([-np.inf, 1, -np.inf], np.float32)
    assert {draw(scores, np.random.default_rng(seed)) for seed in range(50)} == {1}


def test_equal_seeds_draw_equal_tokens() -> None:
    """Rows of one seed differ by their place."""
    settings = Settings(do_sample=True, seed=3)
    rows = [[Sampler(settings, 5, place).choose([], 0, np.zeros(1000, np.float32)) for _ in range(3)] for place in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]


def test_nan_is_an_error() -> None:
    """No token is made of it."""
    for settings in (Settings(), Settings(do_sample=True)):
        with pytest.raises(RuntimeException, match="NaN"):
            Sampler(settings, 5).choose([], 0, np.array([1, np.nan], np.float32))


def test_settings_that_leave_no_token_are_an_error() -> None:
    """It says why there is none."""
    with pytest.raises(RuntimeException, match="every token is excluded"):
        Sampler(Settings(suppress_tokens=(0, 1, 2, 3)), 5).choose([], 0, SCORES)


def test_nan_is_an_error_for_a_draft_too() -> None:
    """Chances are asked for where a draft proposes tokens."""
    with pytest.raises(RuntimeException, match="NaN"):
        Sampler(Settings(), 5).chances([], 0, np.array([1, np.nan], np.float32))
