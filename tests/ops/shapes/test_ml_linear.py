"""Facts about linear models and support vector machines."""

from __future__ import annotations

from typing import Any

from support.infer_op import UNKNOWN_DIM, A, floats, infer_op, infer_shape, plain

from sardonyx.dtypes import DataType

ML = "ai.onnx.ml"


def test_linear_models() -> None:
    """Scores have a column for each class, regressions for each target."""
    labels, scores = infer_op("LinearClassifier", floats(A, 4), domain=ML, outputs=2, classlabels_ints=(0, 1, 2))
    assert (labels.dtype, labels.shape, scores.shape) == (DataType.INT64, (A,), (A, 3))
    assert infer_shape("LinearRegressor", floats(A, 4), domain=ML, targets=2) == (A, 2)


def test_machines_score_pairs_of_classes() -> None:
    """More than two classes without probabilities have a score for each pair."""

    def columns(**attributes: Any) -> object:
        found = infer_op("SVMClassifier", floats(A, 4), domain=ML, outputs=2, **attributes)
        return (plain(found[1]) or ())[1]

    assert columns(classlabels_ints=(0, 1, 2, 3), vectors_per_class=(1, 1, 1, 1)) == 6
    assert columns(classlabels_ints=(0, 1, 2, 3), vectors_per_class=(1, 1, 1, 1), prob_a=(0.1,)) == 4
    assert columns(classlabels_ints=(0, 1), vectors_per_class=(1, 1)) == 2
    assert columns() == UNKNOWN_DIM
    assert infer_shape("SVMRegressor", floats(A, 4), domain=ML) == (A, 1)
