"""From sums of votes to scores and labels."""

import dataclasses

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64
from sardonyx.codegen.kernels.trees.forest_scores import ScoresCode, ScoresParams, write_scores
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

SUMS = ScoresCode(F32, F32, "targets", "NONE", "all", average=True, bases=3, is_probability=False)
CODES = {
    "average": SUMS,
    "double": dataclasses.replace(SUMS, total=F64, average=False),
    "classes": ScoresCode(F32, F32, "classes", "SOFTMAX", "rows", average=False, bases=3, is_probability=False),
    "fixed": ScoresCode(F32, F32, "classes", "NONE", "fixed", average=False, bases=0, is_probability=False),
    "binary": ScoresCode(F32, F32, "binary", "NONE", "fixed", average=False, bases=0, is_probability=True),
}
ROWS = (1, 3, 15, 16, 17, 40)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """A kernel of each kind."""
    module = Module(target)
    for name, code in CODES.items():
        write_scores(module, name, code)
    engine = Engine(target)
    engine.add(module)
    return engine


def _totals(rows: int, targets: int) -> Array:
    found: Array = np.random.default_rng(rows).standard_normal((rows, targets)).astype(np.float32)
    return found


def _scored(engine: Engine, name: str, totals: Array, voted: Array, bases: int = 0) -> tuple[Array, Array]:
    rows, targets = totals.shape
    base = np.full(targets, -0.0, totals.dtype)
    base[:bases] = np.arange(1, bases + 1)
    scores, choice = np.full((rows + 1, targets), 9, np.float32), np.full(rows + 1, -1)
    params = ScoresParams(rows, targets, bases, 4, 16)
    labels = np.arange(targets) + 10
    call(engine, name, [totals.copy(), voted.astype(np.int32), base, scores, labels, choice], params.words(), 0, params.tasks())
    assert (scores[-1] == 9).all()
    assert choice[-1] == -1
    return scores[:-1], choice[:-1]


@pytest.mark.parametrize("rows", ROWS)
def test_averages_get_base_values(engine: Engine, rows: int) -> None:
    """Divided first; computed in the type of the sums."""
    totals, none = _totals(rows, 3), np.zeros(1)
    np.testing.assert_array_equal(_scored(engine, "average", totals, none, 3)[0], totals / np.float32(4) + np.float32([1, 2, 3]))
    found = _scored(engine, "double", totals.astype(np.float64), none, 3)[0]
    np.testing.assert_array_equal(found, (totals.astype(np.float64) + [1, 2, 3]).astype(np.float32))


@pytest.mark.parametrize("rows", ROWS)
def test_the_greatest_class_with_a_vote_or_a_base_value_wins(engine: Engine, rows: int) -> None:
    """Sums without a vote count as 0 in the scores only."""
    totals = _totals(rows, 5)
    voted = np.random.default_rng(1).random((rows, 5)) < 0.5
    scores, labels = _scored(engine, "classes", totals, voted, 1)
    sums = np.where(voted, totals, 0) + np.float32([1, 0, 0, 0, 0])
    voted[:, 0] = True
    np.testing.assert_array_equal(labels, 10 + np.where(voted, sums, -np.inf).argmax(axis=1))
    powers = np.exp(sums.astype(np.float64))
    np.testing.assert_allclose(scores, powers / powers.sum(axis=1, keepdims=True), rtol=1e-6)
    scores, labels = _scored(engine, "fixed", totals, np.array([0, 1, 1, 0, 1]))
    np.testing.assert_array_equal(labels, 10 + np.where([0, 1, 1, 0, 1], totals, -np.inf).argmax(axis=1))
    np.testing.assert_array_equal(scores, np.where([0, 1, 1, 0, 1], totals, 0))


def test_nan_wins_and_ties_go_to_the_first(engine: Engine) -> None:
    """As NumPy's argmax has it."""
    totals = np.float32([[1, np.nan, np.nan], [2, 2, 1], [-np.inf, -np.inf, -np.inf]])
    assert _scored(engine, "fixed", totals, np.ones(3))[1].tolist() == [11, 10, 10]


@pytest.mark.parametrize("rows", ROWS)
def test_one_score_makes_two(engine: Engine, rows: int) -> None:
    """Of the first class as 1 - s and s; of the second it stays where it is."""
    totals = np.abs(_totals(rows, 2))
    scores, labels = _scored(engine, "binary", totals, np.array([1, 0]))
    np.testing.assert_array_equal(scores, np.stack([1 - totals[:, 0], totals[:, 0]], axis=1))
    np.testing.assert_array_equal(labels, 10 + (totals[:, 0] > 0.5))
    scores, labels = _scored(engine, "binary", totals, np.array([0, 1]))
    np.testing.assert_array_equal(scores, np.stack([np.zeros(rows), totals[:, 1]], axis=1))
    np.testing.assert_array_equal(labels, 10 + (totals[:, 1] > 0.5))


def test_params_say_how_many_tasks() -> None:
    """Blocks of rows."""
    assert ScoresParams(33, 2, 0, 4, 16).tasks() == 3


def test_names_tell_codes_apart() -> None:
    """By every field."""
    assert len({code.name for code in CODES.values()}) == len(CODES)
