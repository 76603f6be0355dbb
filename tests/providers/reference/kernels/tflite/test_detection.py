"""Operators of sardonyx.tflite that choose boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6]], np.float32)
SCORES = np.array([0.9, 0.8, 0.3], np.float32)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="sardonyx.tflite", outputs=4, **options)


def _suppressed(most: int, overlap: float, least: float, *sigma: np.ndarray) -> list[Any]:
    limits = [np.float32(overlap), np.float32(least)]
    return [part.tolist() for part in run("NonMaxSuppressionPadded", BOXES, SCORES, np.int32(most), *limits, *sigma)]


def test_a_box_that_overlaps_a_better_one_goes() -> None:
    """Zeros fill the places behind those that count."""
    indices, scores, count = _suppressed(4, 0.5, 0.1)
    assert (indices, count) == ([0, 2, 0, 0], 2)
    np.testing.assert_allclose(scores, [0.9, 0.3, 0, 0], rtol=1e-6)
    assert _suppressed(2, 0.5, 0.5)[2] == 1


def test_a_width_lowers_scores_instead() -> None:
    """By how much boxes overlap."""
    indices, scores, count = _suppressed(3, 1, 0.1, np.array(0.5, np.float32))
    assert (indices, count) == ([0, 1, 2], 3)
    assert 0.3 < scores[1] < 0.8


OPTIONS = {
    "max_detections": 3,
    "num_classes": 2,
    "nms_score_threshold": 0.2,
    "nms_iou_threshold": 0.5,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}
ANCHORS = np.array([[0.5, 0.5, 1, 1], [0.5, 0.6, 1, 1], [0.5, 5.5, 1, 1]], np.float32)
CLASSES = np.array([[[0, 0.9, 0.1], [0, 0.8, 0.6], [0, 0.1, 0.4]]], np.float32)


@pytest.mark.parametrize(("regular", "classes"), [(0, [0, 1]), (1, [0, 1, 1])])
def test_detections_are_decoded_and_chosen(regular: int, classes: list[int]) -> None:
    """By the best class of each box, or class by class; the background is none."""
    boxes, names, scores, count = run(
        "DetectionPostProcess", np.zeros((1, 3, 4), np.float32), CLASSES, ANCHORS, use_regular_nms=regular, **OPTIONS
    )
    assert names[0, : len(classes)].tolist() == classes
    assert count.tolist() == [len(classes)]
    np.testing.assert_allclose(boxes[0, 0], [0, 0, 1, 1], atol=1e-6)
    assert scores[0, 0] == np.float32(0.9)


def test_what_does_not_go_together_is_refused() -> None:
    """With the shapes."""
    with pytest.raises(InvalidArgument, match="do not go together"):
        run("DetectionPostProcess", np.zeros((1, 2, 4), np.float32), CLASSES, ANCHORS, **OPTIONS)
    with pytest.raises(InvalidArgument, match="do not go together"):
        _suppressed(-1, 0.5, 0.1)
