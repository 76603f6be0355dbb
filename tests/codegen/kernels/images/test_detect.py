"""Detections: decoded boxes, ranks, and lists of the best."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.images.detect import write_best, write_decode, write_merged
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_SCALES = np.array([10, 8, 5, 4], np.float32)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """All four kernels."""
    module = Module(target)
    write_decode(module, "best", by_class=False)
    write_decode(module, "classes", by_class=True)
    write_best(module, "list_best")
    write_merged(module, "list_merged")
    engine = Engine(target)
    engine.add(module)
    return engine


def _drawn(count: int, width: int, columns: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(count)
    shapes = (count, width), (count, 4), (count, columns)
    boxes, anchors, scores = (rng.normal(0, 1, shape).astype(np.float32) for shape in shapes)
    return boxes, np.abs(anchors), scores


def _decode(engine: Engine, name: str, boxes: Array, anchors: Array, scores: Array, first: int, block: int = 7) -> list[Array]:
    count, classes = len(boxes), scores.shape[1] - first
    corners, ranked = np.zeros((count, 4), np.float32), np.zeros((classes if name == "classes" else 1, count), np.float32)
    params = [count, boxes.shape[1], scores.shape[1], first, classes, block]
    call(engine, name, [boxes, anchors, scores, _SCALES, corners, ranked], params, 0, -(-count // block))
    return [corners, ranked]


@pytest.mark.parametrize("count", [1, 7, 8, 31])
@pytest.mark.parametrize(("columns", "first"), [(1, 0), (2, 1), (16, 0), (17, 0), (18, 1), (33, 0)])
def test_boxes_are_decoded_and_ranked(engine: Engine, count: int, columns: int, first: int) -> None:
    """As float64 has them; by the best class, or by each."""
    boxes, anchors, scores = _drawn(count, 5, columns)
    wide = boxes[:, :4].astype(np.float64) / _SCALES
    center, half = wide[:, :2] * anchors[:, 2:] + anchors[:, :2], np.exp(wide[:, 2:]) * anchors[:, 2:] / 2
    corners, ranked = _decode(engine, "best", boxes, anchors, scores, first)
    np.testing.assert_allclose(corners, np.concatenate([center - half, center + half], axis=1), rtol=1e-6, atol=1e-6)
    assert ranked.tolist() == [scores[:, first:].max(axis=1).tolist()]
    assert _decode(engine, "classes", boxes, anchors, scores, first)[1].tolist() == scores[:, first:].T.tolist()


def test_a_score_that_is_no_number_is_the_best_one(engine: Engine) -> None:
    """So that no threshold lets it pass; infinities are compared."""
    boxes, anchors, scores = _drawn(3, 4, 20)
    scores[0, 17], scores[1, :], scores[2, 3] = np.nan, -np.inf, np.inf
    assert np.array_equal(_decode(engine, "best", boxes, anchors, scores, 0)[1], [[np.nan, -np.inf, np.inf]], equal_nan=True)


def _listed(engine: Engine, name: str, scores: Array, first: int, kept: Array, counts: Array, rows: int, most: int) -> list[Array]:
    corners = np.arange(4 * len(scores), dtype=np.float32).reshape(-1, 4)
    classes, places = scores.shape[1] - first, rows + (name == "list_merged")
    results = [np.full(shape, 9, np.float32) for shape in ((places, 4), (places,), (places,), (1,))]
    heads = [np.zeros(classes, np.int64)] if name == "list_merged" else []
    params = [scores.shape[1], first, classes, places, most, rows]
    call(engine, name, [corners, scores, kept, counts, *results, *heads], params)
    assert all(box.tolist() in (corners.tolist()) or not box.any() for box in results[0])
    return [results[0][:, 0] // 4, *results[1:]]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_classes_of_a_box_are_listed_from_the_best_on(engine: Engine, most: int) -> None:
    """Of equal scores the first comes first; there are no more than the box has."""
    scores = np.array([[0, 0.5, 0.7, 0.5], [9, -np.inf, 0.2, -np.inf]], np.float32)
    boxes, names, values, number = _listed(
        engine, "list_best", scores, 1, np.array([[1, 0]], np.int32), np.array([2]), rows=2 * most + 1, most=most
    )
    each = min(most, 3)
    expected = [(1, 1, np.float32(0.2)), (1, 0, -np.inf), (1, 2, -np.inf)][:each] + [
        (0, 1, np.float32(0.7)),
        (0, 0, 0.5),
        (0, 2, 0.5),
    ][:each]
    padding = [(0, 0, 0)] * (2 * most + 1 - len(expected))
    assert list(zip(boxes.tolist(), names.tolist(), values.tolist(), strict=True)) == [*expected, *padding]
    assert number.tolist() == [2 * each]


@pytest.mark.parametrize("rows", [1, 3, 4, 6])
def test_boxes_of_all_classes_are_merged(engine: Engine, rows: int) -> None:
    """By their scores; of equal ones that of the first class comes first."""
    scores = np.array([[0.9, 0.5, 0.1], [0.5, 0.4, 0.8], [0.3, 0.5, 0.0]], np.float32)
    kept, counts = np.array([[0, 1, -1], [0, -1, -1], [-1, -1, -1]], np.int32), np.array([2, 1, 0])
    boxes, names, values, number = _listed(engine, "list_merged", scores, 0, kept, counts, rows, 3)
    expected = [(0, 0, np.float32(0.9)), (1, 0, 0.5), (0, 1, 0.5)][:rows]
    padding = [(0, 0, 0)] * (rows + 1 - len(expected))
    assert list(zip(boxes.tolist(), names.tolist(), values.tolist(), strict=True)) == [*expected, *padding]
    assert number.tolist() == [min(rows, 3)]
