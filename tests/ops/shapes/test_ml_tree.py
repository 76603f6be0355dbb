"""Facts about tree ensembles."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, floats, infer_op, infer_shape, plain

from sardonyx.dtypes import DataType

ML = "ai.onnx.ml"


def test_classifier_gives_labels_and_scores() -> None:
    """The labels' kind and number come from the attributes."""
    labels, scores = infer_op("TreeEnsembleClassifier", floats(A, 4), domain=ML, outputs=2, classlabels_strings=("a", "b", "c"))
    assert (labels.dtype, labels.shape) == (DataType.STRING, (A,))
    assert scores.shape == (A, 3)
    assert infer_op("TreeEnsembleClassifier", floats(4), domain=ML, outputs=2, classlabels_int64s=(0, 1))[0].shape == (1,)


def test_regressor_gives_targets() -> None:
    """A column for each target."""
    assert infer_shape("TreeEnsembleRegressor", floats(A, 4), domain=ML, n_targets=2) == (A, 2)
    assert plain(infer_op("TreeEnsembleRegressor", floats(A, 4), domain=ML)[0]) == (A, UNKNOWN_DIM)
    assert infer_shape("TreeEnsemble", floats(A, 4), domain=ML, n_targets=2) == (A, 2)
