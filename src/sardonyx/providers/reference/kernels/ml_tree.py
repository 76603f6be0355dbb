"""Tree ensembles of ai.onnx.ml: every row walks every tree at once, then the votes of the leaves are gathered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.forest import Forest, forest_of_named_nodes, forest_of_split_nodes, numbers_of
from sardonyx.ops.views.ml_tree import AGGREGATES, POST_TRANSFORMS
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.forest import leaves_of
from sardonyx.providers.reference.algorithms.memo import remembered
from sardonyx.providers.reference.algorithms.scores import as_rows, label_array, regressed
from sardonyx.providers.reference.algorithms.tree_classes import classified
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


_forest_of_named_nodes = remembered(forest_of_named_nodes)
_forest_of_split_nodes = remembered(forest_of_split_nodes)


def _comparable(data: Array) -> Array:
    """Return rows in a type in which thresholds compare exactly enough: integers as floating point, half as float."""
    rows = as_rows(data)
    if rows.dtype == np.int64:
        return rows.astype(np.float64)
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float32)


def _votes(forest: Forest, leaves: Array) -> tuple[Array, Array, Array]:
    """Return the row, target and weight of every vote cast at `leaves` (trees, N), tree after tree."""
    trees, N = leaves.shape
    flat = leaves.reshape(-1)
    row = np.tile(np.arange(N), trees)
    first = forest.votes_start.take(flat)
    counts = forest.votes_start.take(flat + 1) - first
    if counts.size and counts.min() == counts.max() == 1:
        return row, forest.votes_target.take(first), forest.votes_weight.take(first)
    before = np.cumsum(counts) - counts
    places = np.repeat(first - before, counts) + np.arange(counts.sum())
    return np.repeat(row, counts), forest.votes_target.take(places), forest.votes_weight.take(places)


_COMBINE = {"AVERAGE": np.add, "SUM": np.add, "MIN": np.minimum, "MAX": np.maximum}
_ORIGIN = {"AVERAGE": 0.0, "SUM": 0.0, "MIN": np.inf, "MAX": -np.inf}


def _totals(forest: Forest, rows: Array, target_count: int, aggregate: str) -> tuple[Array, Array]:
    """Return the combined votes (N, targets), 0 where there are none, and whether there are any.

    Added in tree order, in double if the input or the weights are double, else in float32.
    """
    if aggregate not in _COMBINE:
        raise InvalidArgument(f"aggregate_function={aggregate!r}; expected one of {', '.join(AGGREGATES)}")
    row, target, weight = _votes(forest, leaves_of(forest, rows))
    dtype = np.float64 if np.float64 in (rows.dtype, weight.dtype) else np.float32
    place = row * target_count + target
    totals: Array = np.full(len(rows) * target_count, _ORIGIN[aggregate], dtype)
    _COMBINE[aggregate].at(totals, place, weight.astype(dtype, copy=False))
    any_vote = np.zeros(len(totals), bool)
    any_vote[place] = True
    totals[~any_vote] = 0
    if aggregate == "AVERAGE":
        np.divide(totals, max(len(forest.roots), 1), out=totals)
    return totals.reshape(-1, target_count), any_vote.reshape(-1, target_count)


def _regressed(forest: Forest, rows: Array, target_count: int, aggregate: str, base_values: Array, post_transform: str) -> Array:
    if target_count < 1:
        raise InvalidArgument(f"n_targets={target_count}; expected at least 1")
    check_output_size((len(rows), target_count), 8)
    totals, _ = _totals(forest, rows, target_count, aggregate)
    if base_values.size not in (0, target_count):
        raise InvalidArgument(f"base_values have {base_values.size} entries; expected none, or one for each of {target_count}")
    if base_values.size:
        totals = totals + base_values.astype(totals.dtype)
    return regressed(totals, post_transform)


@kernel("TreeEnsembleRegressor", domain="ai.onnx.ml")
def tree_ensemble_regressor(
    _node: Call,
    data: Array,
    *,
    nodes_treeids: Sequence[int],
    nodes_nodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_modes: Sequence[str],
    nodes_truenodeids: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    target_treeids: Sequence[int],
    target_nodeids: Sequence[int],
    target_ids: Sequence[int],
    nodes_values: Sequence[float] | None = None,
    nodes_values_as_tensor: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    target_weights: Sequence[float] | None = None,
    target_weights_as_tensor: Array | None = None,
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: Array | None = None,
    n_targets: int = 1,
    aggregate_function: str = "SUM",
    post_transform: str = "NONE",
) -> Array:
    """Aggregate the votes of all trees for each row of (N, F): float32 (N, n_targets). ONNX TreeEnsembleRegressor-1, -3.

    With one target only PROBIT is applied of the post transforms, as in ONNX Runtime, for whose models that matters.
    """
    forest = _forest_of_named_nodes(
        nodes_treeids,
        nodes_nodeids,
        nodes_featureids,
        nodes_modes,
        nodes_values,
        nodes_values_as_tensor,
        nodes_truenodeids,
        nodes_falsenodeids,
        nodes_missing_value_tracks_true,
        target_treeids,
        target_nodeids,
        target_ids,
        target_weights,
        target_weights_as_tensor,
        n_targets,
    )
    base = numbers_of(base_values, base_values_as_tensor)
    return _regressed(forest, _comparable(data), n_targets, aggregate_function, base, post_transform).astype(np.float32, copy=False)


@kernel("TreeEnsemble", since=5, domain="ai.onnx.ml")
def tree_ensemble(
    _node: Call,
    data: Array,
    *,
    tree_roots: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_modes: Array,
    nodes_splits: Array,
    nodes_truenodeids: Sequence[int],
    nodes_trueleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_falseleafs: Sequence[int],
    leaf_targetids: Sequence[int],
    leaf_weights: Array,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    membership_values: Array | None = None,
    n_targets: int = 1,
    aggregate_function: int = 1,
    post_transform: int = 0,
) -> Array:
    """Aggregate the leaves that each row of (N, F) reaches: (N, n_targets) of data's type. ONNX TreeEnsemble-5.

    With one target only PROBIT is applied of the post transforms, as in ONNX Runtime.
    """
    if not 0 <= aggregate_function < len(AGGREGATES) or not 0 <= post_transform < len(POST_TRANSFORMS):
        raise InvalidArgument(f"aggregate_function={aggregate_function}, post_transform={post_transform}; expected 0-3 and 0-4")
    forest = _forest_of_split_nodes(
        tree_roots,
        nodes_featureids,
        nodes_modes,
        nodes_splits,
        nodes_truenodeids,
        nodes_trueleafs,
        nodes_falsenodeids,
        nodes_falseleafs,
        nodes_missing_value_tracks_true,
        membership_values,
        leaf_targetids,
        leaf_weights,
        n_targets,
    )
    aggregate, transform = AGGREGATES[aggregate_function], POST_TRANSFORMS[post_transform]
    result = _regressed(forest, _comparable(data), n_targets, aggregate, np.zeros(0, np.float32), transform)
    return result.astype(data.dtype, copy=False)


@kernel("TreeEnsembleClassifier", domain="ai.onnx.ml")
def tree_ensemble_classifier(
    _node: Call,
    data: Array,
    *,
    nodes_treeids: Sequence[int],
    nodes_nodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_modes: Sequence[str],
    nodes_truenodeids: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    class_treeids: Sequence[int],
    class_nodeids: Sequence[int],
    class_ids: Sequence[int],
    nodes_values: Sequence[float] | None = None,
    nodes_values_as_tensor: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    class_weights: Sequence[float] | None = None,
    class_weights_as_tensor: Array | None = None,
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: Array | None = None,
    classlabels_strings: Sequence[str] = (),
    classlabels_int64s: Sequence[int] = (),
    post_transform: str = "NONE",
) -> tuple[Array, Array]:
    """Label each row of (N, F) and score its classes: labels (N,), float32 scores (N, classes).

    tree_classes says how scores become labels. ONNX TreeEnsembleClassifier-1, -3.
    """
    labels = label_array(classlabels_strings, classlabels_int64s)
    forest = _forest_of_named_nodes(
        nodes_treeids,
        nodes_nodeids,
        nodes_featureids,
        nodes_modes,
        nodes_values,
        nodes_values_as_tensor,
        nodes_truenodeids,
        nodes_falsenodeids,
        nodes_missing_value_tracks_true,
        class_treeids,
        class_nodeids,
        class_ids,
        class_weights,
        class_weights_as_tensor,
        len(labels),
    )
    totals, any_vote = _totals(forest, _comparable(data), len(labels), "SUM")
    base = numbers_of(base_values, base_values_as_tensor).astype(totals.dtype)
    choice, scores = classified(totals, any_vote, base, forest.votes_target, forest.votes_weight, post_transform)
    if len(labels) == 1 and labels.dtype == np.int64:
        labels = np.array([0, 1])
    return labels[np.minimum(choice, len(labels) - 1)], scores.astype(np.float32, copy=False)
