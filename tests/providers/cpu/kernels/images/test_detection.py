"""DetectionPostProcess against the reference provider."""

from typing import Any

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference

from sardonyx.dtypes import Array

_OPTIONS = {
    "max_detections": 10,
    "num_classes": 5,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.4,
    "y_scale": 10.0,
    "x_scale": 8.0,
    "h_scale": 5.0,
    "w_scale": 4.0,
}


def _body(count: int, width: int = 4, columns: int = 6, outputs: str = "b, c, s, n", **changes: Any) -> str:
    options = ", ".join(f"{name} = {value}" for name, value in {**_OPTIONS, **changes}.items())
    return (
        f"graph(x: float[1, {count}, {width}], y: float[1, {count}, {columns}], a: float[{count}, 4]) -> ({outputs}) "
        f"{{ b, c, s, n = sardonyx.tflite.DetectionPostProcess(x, y, a) {{{options}}} }}"
    )


def _feed(count: int, width: int = 4, columns: int = 6) -> dict[str, Array]:
    rng = np.random.default_rng(count)
    return {
        "x": rng.normal(0, 3, (1, count, width)).astype(np.float32),
        "y": (rng.integers(0, 1000, (1, count, columns)) / 1000).astype(np.float32),
        "a": rng.uniform(0.1, 1, (count, 4)).astype(np.float32),
    }


def _check(body: str, feed: dict[str, Array], isa: str | None = None) -> None:
    """Corners are those of the reference provider but for rounding, and all else is the same."""
    found, expected = cpu_session(body, isa=isa).run(None, feed), reference(body, feed)
    for one, other in zip(found, expected, strict=True):
        if one.ndim == 3:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        else:
            assert one.tolist() == other.tolist()


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("count", [1, 3, 64, 65, 200])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_classes_per_detection": 3},
        {"max_classes_per_detection": 9},
        {"use_regular_nms": 1},
        {"use_regular_nms": 1, "detections_per_class": 2, "max_detections": 300},
        {"use_regular_nms": 1, "detections_per_class": 0},
        {"nms_score_threshold": 2.0},
        {"nms_iou_threshold": 0.0},
        {"nms_iou_threshold": 1.0, "nms_score_threshold": -1.0},
    ],
)
def test_detections(options: dict[str, Any], count: int, isa: str) -> None:
    """By the best class of each box or by class; with a background and without; boxes that have more than their corners."""
    _check(_body(count, **options), _feed(count), isa=isa)
    _check(_body(count, 7, 5, **options), _feed(count, 7, 5), isa=isa)


def test_scores_that_are_no_numbers_and_infinite_boxes() -> None:
    """No number is enough for no threshold; a box without a size overlaps none."""
    feed = _feed(40)
    feed["y"][0, ::3, 2], feed["y"][0, 1::3, 1], feed["x"][0, 4:9, 2] = np.nan, -np.inf, 1e4
    for regular in (0, 1):
        _check(_body(40, use_regular_nms=regular, max_classes_per_detection=2), feed)


@pytest.mark.parametrize("regular", [0, 1])
def test_any_number_of_threads_finds_the__check(regular: int) -> None:
    """Bit by bit."""
    body, feed = _body(3000, use_regular_nms=regular), _feed(3000)
    alone, shared = (cpu_session(body, threads=threads).run(None, feed) for threads in (1, 3))
    assert all(np.array_equal(one, other) for one, other in zip(alone, shared, strict=True))


def test_results_that_nobody_reads() -> None:
    """They need not be there."""
    _check(_body(20, outputs="s"), _feed(20))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (_body(4, columns=9), "do not go together"),
        (_body(4, nms_iou_threshold=1.5), "no number from 0 to 1"),
        (_body(4, max_detections=1 << 22), "4194304 detections"),
        (_body(4, max_classes_per_detection=0), "no class"),
        (_body(4).replace("float[4, 4]", "float[n, 4]"), "all known"),
    ],
)
def test_what_is_declined(body: str, reason: str) -> None:
    """With the reason."""
    (found,) = declined(body)
    assert reason in found
