"""Tree ensembles of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor

__all__: list[str] = []


def batch_of(x: Fact) -> Dim:
    """Return how many rows (N, features) has; a vector is one row."""
    if x.shape is None or not x.shape:
        return anonymous()
    return x.shape[0] if len(x.shape) > 1 else 1


@shape_function("TreeEnsembleClassifier", domain="ai.onnx.ml")
def tree_ensemble_classifier(
    call: ShapeCall, x: Fact, *, classlabels_strings: Sequence[str] = (), classlabels_int64s: Sequence[int] = ()
) -> tuple[Fact, ...]:
    """Infer (N, features) -> labels (N) and scores (N, classes)."""
    N = batch_of(x)
    labels = DataType.STRING if classlabels_strings else DataType.INT64
    classes: Dim = max(len(classlabels_strings), len(classlabels_int64s)) or anonymous()
    return tensor(labels, (N,)), tensor(DataType.FLOAT, (N, classes))


@shape_function("TreeEnsembleRegressor", domain="ai.onnx.ml")
def tree_ensemble_regressor(call: ShapeCall, x: Fact, *, n_targets: int | None = None) -> Fact:
    """Infer (N, features) -> (N, targets)."""
    return tensor(DataType.FLOAT, (batch_of(x), anonymous() if n_targets is None else n_targets))


@shape_function("TreeEnsemble", domain="ai.onnx.ml")
def tree_ensemble(call: ShapeCall, x: Fact, *, n_targets: int = 1) -> Fact:
    """Infer (N, features) -> (N, targets), in the input's type."""
    return tensor(x.dtype, (batch_of(x), n_targets))
