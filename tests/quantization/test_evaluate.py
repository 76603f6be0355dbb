"""Accuracy on labelled feeds."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.quantization.evaluate import accuracy, predicted_classes

SCORES = to_bytes(model("graph(x: float[n, 3]) -> (y: float[n, 3]) { y = Neg(x) }"))
FEEDS = [{"x": np.float32([[1, 0, 1], [0, 1, 1]])}, {"x": np.float32([[1, 1, 0]])}]


def test_the_greatest_score_is_the_class() -> None:
    """Over all feeds."""
    assert accuracy(SCORES, FEEDS, np.array([1, 0, 2])) == 1
    assert accuracy(SCORES, FEEDS, np.array([1, 1, 1])) == pytest.approx(1 / 3)


def test_whole_numbers_are_classes_themselves() -> None:
    """As classifiers of ai.onnx.ml give them."""
    np.testing.assert_array_equal(predicted_classes(np.array([[3], [5]])), [3, 5])


@pytest.mark.parametrize("labels", [[1], [], [1, 2, 3, 4]])
def test_labels_are_as_many_as_examples(labels: list[int]) -> None:
    """Others are refused."""
    with pytest.raises(InvalidArgument, match="3 classes"):
        accuracy(SCORES, FEEDS, np.array(labels))
