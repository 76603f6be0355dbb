"""Linear models and support vector machines of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.ml_tree import batch_of

__all__: list[str] = []


@shape_function("LinearClassifier", domain="ai.onnx.ml")
def linear_classifier(
    call: ShapeCall, x: Fact, *, classlabels_strings: Sequence[str] = (), classlabels_ints: Sequence[int] = ()
) -> tuple[Fact, ...]:
    """Infer (N, features) -> labels (N) and scores (N, classes)."""
    N = batch_of(x)
    labels = DataType.STRING if classlabels_strings else DataType.INT64
    classes: Dim = max(len(classlabels_strings), len(classlabels_ints)) or anonymous()
    return tensor(labels, (N,)), tensor(DataType.FLOAT, (N, classes))


@shape_function("SVMClassifier", domain="ai.onnx.ml")
def svm_classifier(
    call: ShapeCall,
    x: Fact,
    *,
    classlabels_strings: Sequence[str] = (),
    classlabels_ints: Sequence[int] = (),
    vectors_per_class: Sequence[int] = (),
    prob_a: Sequence[float] = (),
) -> tuple[Fact, ...]:
    """Infer (N, features) -> labels (N) and scores.

    Scores are of each class, or of each pair of more than two classes without probabilities.
    """
    N, classes = batch_of(x), max(len(classlabels_strings), len(classlabels_ints))
    has_pairs = sum(vectors_per_class) > 0 and not prob_a and classes > 2
    columns: Dim = classes * (classes - 1) // 2 if has_pairs else classes or anonymous()
    labels = DataType.STRING if classlabels_strings else DataType.INT64
    return tensor(labels, (N,)), tensor(DataType.FLOAT, (N, columns))


@shape_function("LinearRegressor", domain="ai.onnx.ml")
def linear_regressor(call: ShapeCall, x: Fact, *, targets: int = 1) -> Fact:
    """Infer (N, features) -> (N, targets)."""
    return tensor(DataType.FLOAT, (batch_of(x), targets))


@shape_function("SVMRegressor", domain="ai.onnx.ml")
def svm_regressor(call: ShapeCall, x: Fact) -> Fact:
    """Infer (N, features) -> (N, 1)."""
    return tensor(DataType.FLOAT, (batch_of(x), 1))
