"""Unique and NonMaxSuppression against the reference provider."""

import itertools

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined
from support.moving import same

from sardonyx.errors import InvalidArgument


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_unique(axis: int | None, is_sorted: int, isa: str) -> None:
    """Elements and slices of several types, of nothing too."""
    attributes = f"sorted = {is_sorted}" + ("" if axis is None else f", axis = {axis}")
    shapes = [(3, 40, 1), (7, 1, 2), (0, 3, 4), (1, 1, 1), (2, 2, 50), (3, 4, 0)]
    for kind in ("float", "int64", "uint8"):
        body = f"graph(x: {kind}[A, B, C]) -> (y, i, j, c) {{ y, i, j, c = Unique(x) {{{attributes}}} }}"
        name = "float32" if kind == "float" else kind
        cases = [{"x": np.random.default_rng(0).integers(0, 3, shape).astype(name)} for shape in shapes]
        same(body, *cases, isa=isa)


def test_unique_without_its_other_results() -> None:
    """They are not computed for anybody."""
    same("graph(x: float[A]) -> (y) { y = Unique(x) }", {"x": np.array([2, 1, 2], np.float32)})


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("declared", ["A", "70001"])
def test_many_elements_are_sorted_block_by_block(declared: str, is_sorted: int) -> None:
    """On any number of threads, whether their number is known before or not."""
    body = f"graph(x: int32[{declared}]) -> (y, i, j, c) {{ y, i, j, c = Unique(x) {{sorted = {is_sorted}}} }}"
    x = np.random.default_rng(0).integers(-40_000, 40_000, 70_001).astype(np.int32)
    same(body, {"x": x})
    alone, shared = (cpu_session(body, threads=threads).run(None, {"x": x}) for threads in (1, 3))
    assert all(np.array_equal(one, other) for one, other in zip(alone, shared, strict=True))


NUMBERS = [("", ""), (", f: float[]", ", f"), (", f: float[], t: float[1]", ", f, t")]


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("centers", [0, 1])
@pytest.mark.parametrize(("declared", "given"), NUMBERS)
def test_suppression(declared: str, given: str, centers: int, isa: str) -> None:
    """Ties, NaN, limits that are negative, 0 and enormous, no boxes, no classes."""
    body = f"""graph(b: float[N, M, 4], s: float[N, C, M], m: int64[]{declared}) -> (y) {{
        y = NonMaxSuppression(b, s, m{given}) {{center_point_box = {centers}}}
    }}"""
    random, cases = np.random.default_rng(0), []
    for (n, c, m), limit in itertools.product([(2, 3, 50), (1, 2, 300), (1, 1, 0), (0, 1, 3), (1, 0, 4)], (0, -1, 3, 1 << 62)):
        boxes, scores = random.random((n, m, 4)).astype(np.float32), np.round(random.random((n, c, m)), 2).astype(np.float32)
        boxes[random.random(boxes.shape) < 0.01] = np.nan
        scores[random.random(scores.shape) < 0.02] = np.nan
        numbers = {"f": np.float32(0.4), "t": np.array([0.3], np.float32)}
        cases.append(
            {"b": boxes, "s": scores, "m": np.array(limit), **{name: numbers[name] for name in given[2:].split(", ") if name}}
        )
    same(body, *cases, isa=isa)


def test_a_constant_limit_bounds_the_memory() -> None:
    """And no limit selects nothing."""
    feeds = {
        "b": np.random.default_rng(1).random((1, 90, 4), np.float32),
        "s": np.random.default_rng(2).random((1, 2, 90), np.float32),
    }
    head = "graph(b: float[N, M, 4], s: float[N, C, M]) -> (y) {"
    same(head + " m: int64[1] = [5] y = NonMaxSuppression(b, s, m) }", feeds)
    same(head + " y = NonMaxSuppression(b, s) }", feeds)


def test_an_overlap_that_cannot_be() -> None:
    """An error that says what is expected."""
    session = cpu_session(
        "graph(b: float[1, 5, 4], s: float[1, 1, 5], m: int64[], f: float[]) -> (y) { y = NonMaxSuppression(b, s, m, f) }"
    )
    feeds = {"b": np.zeros((1, 5, 4), np.float32), "s": np.zeros((1, 1, 5), np.float32), "m": np.array(3)}
    for wrong in (-0.5, 1.5, np.nan):
        with pytest.raises(InvalidArgument, match="iou_threshold is no number from 0 to 1"):
            session.run(None, {**feeds, "f": np.float32(wrong)})
    assert session.run(None, {**feeds, "f": np.float32(0.5)})[0].shape == (3, 3)


def test_numbers_of_boxes_and_scores_that_only_the_run_shows() -> None:
    """Are compared then."""
    body = "graph(b: float[N, M, 4], s: float[K, C, L]) -> (y) { m: int64[1] = [5] y = NonMaxSuppression(b, s, m) }"
    feeds = {"b": np.random.default_rng(1).random((1, 9, 4), np.float32), "s": np.zeros((1, 2, 9), np.float32)}
    same(body, feeds)
    with pytest.raises(InvalidArgument, match=r"boxes \(1, 9, 4\) and scores \(1, 2, 8\); expected"):
        cpu_session(body).run(None, {**feeds, "s": np.zeros((1, 2, 8), np.float32)})


def test_what_is_left_to_others() -> None:
    """Strings."""
    assert "type string" in declined("graph(x: string[A]) -> (y) { y = Unique(x) }")[0]
