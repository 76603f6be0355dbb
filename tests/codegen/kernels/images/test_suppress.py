"""Suppression of boxes: the greedy order, and the threshold."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.images.suppress import PADDING, work_words, write_selected, write_suppress
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Corners without and centers with a least score."""
    module = Module(target)
    write_suppress(module, "corners", centers=False, limits_scores=False)
    write_suppress(module, "centers", centers=True, limits_scores=True)
    write_suppress(module, "inclusive", centers=True, limits_scores=True, takes_least=True)
    write_selected(module, "selected")
    engine = Engine(target)
    engine.add(module)
    return engine


def _run(
    engine: Engine,
    name: str,
    boxes: Array,
    scores: Array,
    limit: int,
    overlap: float,
    least: float,
    share: int = 99,
    together: int = 1,
) -> tuple[Array, int]:
    classes, count = scores.shape
    kept, counts, status = np.full((classes, count), -1, np.int32), np.zeros(classes, np.int64), np.zeros(1, np.int64)
    words, parts = count * work_words()[0] + (count + PADDING) * work_words()[1] + 1, -(-count // share)
    work = np.zeros((together, words), np.int32)
    numbers = [np.array([limit]), np.array([overlap], np.float32), np.array([least], np.float32)]
    arrays = [boxes, scores, *numbers, kept, counts, work, status]
    tasks = -(-classes // together) * parts * together
    call(engine, name, arrays, [classes, count, count, together, words, parts, share, classes], 0, tasks)
    result, rows = np.full((classes * count, 3), -1), np.zeros(1, np.int64)
    call(engine, "selected", [kept, counts, result, rows], [classes, classes, count])
    return result[: rows[0]], int(status[0])


def test_better_boxes_suppress_worse_ones(engine: Engine) -> None:
    """Corners in any order; a box that was suppressed suppresses none; boxes without area stay."""
    boxes = np.array([[0, 0, 2, 2], [2, 1, 0, 3], [0, 2, 2, 4], [5, 5, 5, 5], [5, 5, 5, 5]], np.float32)
    scores = np.array([[0.9, 0.8, 0.7, 0.5, 0.6], [0.1, 0.9, 0.8, np.nan, 0.5]], np.float32)
    result, status = _run(engine, "corners", boxes, scores, 9, 0.25, 0)
    assert result.tolist() == [[0, 0, 0], [0, 0, 2], [0, 0, 4], [0, 0, 3], [0, 1, 1], [0, 1, 4], [0, 1, 3]]
    assert status == 0


@pytest.mark.parametrize("limit", [-1, 0, 1, 3, 1 << 62])
def test_the_limit_and_the_least_score(engine: Engine, limit: int) -> None:
    """A score that equals the least one is not enough; of equal scores the first box is met first."""
    boxes = np.array([[place * 10, 0, 2, 2] for place in range(40)], np.float32)
    scores = np.where(np.arange(40) % 2 == 0, 0.5, 0.25).astype(np.float32)[None]
    result, _ = _run(engine, "centers", boxes, scores, limit, 0.5, 0.25)
    assert result[:, 2].tolist() == list(range(0, 40, 2))[: max(limit, 0)]


def test_the_least_score_may_be_enough(engine: Engine) -> None:
    """No number is not, where a score is none."""
    boxes = np.array([[place * 10, 0, 2, 2] for place in range(20)], np.float32)
    scores = np.array([[0.5, 0.25, np.nan, 0.2] * 5], np.float32)
    result, _ = _run(engine, "inclusive", boxes, scores, 99, 0.5, 0.25)
    assert result[:, 2].tolist() == [*range(0, 20, 4), *range(1, 20, 4)]


@pytest.mark.parametrize("together", [1, 2, 5])
@pytest.mark.parametrize("share", [1, 7, 16, 49])
def test_boxes_in_parts_are_selected_as_all_at_once(engine: Engine, share: int, together: int) -> None:
    """Whatever the number of parts, and of classes that take turns."""
    draw = np.random.default_rng(3)
    boxes, scores = draw.random((50, 4), dtype=np.float32), draw.random((3, 50), dtype=np.float32)
    whole, _ = _run(engine, "centers", boxes, scores, 20, 0.3, 0.2)
    found, _ = _run(engine, "centers", boxes, scores, 20, 0.3, 0.2, share, together)
    assert found.tolist() == whole.tolist()
    assert len(whole) > 10


@pytest.mark.parametrize("overlap", [-0.1, 1.1, np.nan])
def test_an_overlap_that_cannot_be_is_reported(engine: Engine, overlap: float) -> None:
    """It is a number from 0 to 1."""
    boxes, scores = np.zeros((3, 4), np.float32), np.zeros((1, 3), np.float32)
    assert _run(engine, "corners", boxes, scores, 3, overlap, 0)[1] != 0
