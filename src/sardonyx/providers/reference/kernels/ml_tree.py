"""Tree ensembles of ai.onnx.ml: every row walks every tree at once, then the votes of the leaves are gathered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.forest import MODES, Forest, assemble, leaves_of
from sardonyx.providers.reference.algorithms.memo import remembered
from sardonyx.providers.reference.algorithms.scores import as_rows, label_array, regressed
from sardonyx.providers.reference.algorithms.tree_classes import classified
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_LEAF = len(MODES)
_MODE_CODES = {name: code for code, name in enumerate(MODES)} | {"LEAF": _LEAF}
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""The names of TreeEnsemble-5's codes, in their order."""


def _numbers(floats: Sequence[float] | None, tensor: Array | None) -> Array:
    """Return an attribute that comes as floats (float32 in the file) or, for doubles, as a tensor."""
    return np.array(floats or (), np.float32) if tensor is None else tensor.reshape(-1)


class _NodeNames:
    """Finds nodes by (tree id, node id)."""

    def __init__(self, trees: Array, nodes: Array) -> None:
        self._trees, tree_rank = np.unique(trees, return_inverse=True)
        self._nodes, node_rank = np.unique(nodes, return_inverse=True)
        names = tree_rank * len(self._nodes) + node_rank
        self._order = np.argsort(names, kind="stable")
        self._names = names[self._order]
        twice = np.flatnonzero(self._names[1:] == self._names[:-1])
        if twice.size:
            index = self._order[twice[0]]
            raise InvalidArgument(f"node {nodes[index]} of tree {trees[index]} is there twice; each node has one entry")

    def find(self, trees: Array, nodes: Array, what: str) -> Array:
        """Return the index of each named node; raises InvalidArgument for one that is not there."""
        tree_rank = np.searchsorted(self._trees, trees).clip(max=len(self._trees) - 1)
        node_rank = np.searchsorted(self._nodes, nodes).clip(max=len(self._nodes) - 1)
        at = np.searchsorted(self._names, tree_rank * len(self._nodes) + node_rank).clip(max=len(self._names) - 1)
        found: Array = self._order[at]
        wrong = np.flatnonzero(
            (self._trees[tree_rank] != trees)
            | (self._nodes[node_rank] != nodes)
            | (self._names[at] != tree_rank * len(self._nodes) + node_rank)
        )
        if wrong.size:
            raise InvalidArgument(f"{what} names node {nodes[wrong[0]]} of tree {trees[wrong[0]]}, which is not there")
        return found


@remembered
def _forest_of_named_nodes(
    trees: Sequence[int],
    nodes: Sequence[int],
    features: Sequence[int],
    modes: Sequence[str],
    values: Sequence[float] | None,
    values_tensor: Array | None,
    true_nodes: Sequence[int],
    false_nodes: Sequence[int],
    missing: Sequence[int] | None,
    vote_trees: Sequence[int],
    vote_nodes: Sequence[int],
    vote_targets: Sequence[int],
    vote_weights: Sequence[float] | None,
    vote_weights_tensor: Array | None,
    target_count: int,
) -> Forest:
    """Return the ensemble that TreeEnsembleClassifier and TreeEnsembleRegressor write: nodes and votes named by tree and node."""
    thresholds, weights = _numbers(values, values_tensor), _numbers(vote_weights, vote_weights_tensor)
    lengths = {len(part) for part in (trees, nodes, features, modes, thresholds, true_nodes, false_nodes)}
    vote_lengths = {len(part) for part in (vote_trees, vote_nodes, vote_targets, weights)}
    if len(lengths) != 1 or len(vote_lengths) != 1 or 0 in lengths:
        raise InvalidArgument(f"nodes_* have lengths {sorted(lengths)}, votes {sorted(vote_lengths)}; expected one of each, > 0")
    unknown = set(modes) - set(_MODE_CODES)
    if unknown:
        raise InvalidArgument(f"nodes_modes hold {sorted(unknown)}; expected {', '.join(_MODE_CODES)}")
    tree = np.array(trees, np.int64)
    codes = np.array([_MODE_CODES[mode] for mode in modes], np.int64)
    is_inner = codes != _LEAF
    names = _NodeNames(tree, np.array(nodes, np.int64))
    children = np.repeat(np.arange(len(tree)), 2)
    inner = np.flatnonzero(is_inner)
    children[2 * inner] = names.find(tree[inner], np.array(false_nodes, np.int64)[inner], "nodes_falsenodeids")
    children[2 * inner + 1] = names.find(tree[inner], np.array(true_nodes, np.int64)[inner], "nodes_truenodeids")
    starts = np.ones(len(tree), bool)
    starts[1:] = tree[1:] != tree[:-1]
    return assemble(
        roots=np.flatnonzero(starts),
        features=np.where(is_inner, np.array(features, np.int64), 0),
        thresholds=thresholds,
        modes=codes,
        is_inner=is_inner,
        children=children,
        missing=missing,
        members=None,
        vote_nodes=names.find(np.array(vote_trees, np.int64), np.array(vote_nodes, np.int64), "a vote"),
        vote_targets=np.array(vote_targets, np.int64),
        vote_weights=weights,
        target_count=target_count,
    )


@remembered
def _forest_of_split_nodes(
    roots: Sequence[int],
    features: Sequence[int],
    modes: Array,
    splits: Array,
    true_nodes: Sequence[int],
    true_leafs: Sequence[int],
    false_nodes: Sequence[int],
    false_leafs: Sequence[int],
    missing: Sequence[int] | None,
    members: Array | None,
    leaf_targets: Sequence[int],
    leaf_weights: Array,
    target_count: int,
) -> Forest:
    """Return the ensemble that TreeEnsemble-5 writes: inner nodes and leaves apart, leaves put after the inner nodes here."""
    count, leaf_count = len(features), len(leaf_targets)
    lengths = {len(part) for part in (features, modes, splits, true_nodes, true_leafs, false_nodes, false_leafs)}
    if lengths != {count} or len(leaf_weights) != leaf_count or not count:
        raise InvalidArgument(
            f"nodes_* have lengths {sorted(lengths)}, leaf_targetids {leaf_count}, leaf_weights {len(leaf_weights)}; "
            "expected one length for nodes, > 0, and one for leaves"
        )
    children = np.repeat(np.arange(count + leaf_count), 2)
    for side, (ids, leafs) in enumerate(((false_nodes, false_leafs), (true_nodes, true_leafs))):
        to, is_leaf = np.array(ids, np.int64), np.array(leafs, np.int64) != 0
        if (to < 0).any() or (to >= np.where(is_leaf, leaf_count, count)).any():
            raise InvalidArgument(f"a node's branch leads outside the {count} nodes and {leaf_count} leaves")
        children[side : 2 * count : 2] = to + np.where(is_leaf, count, 0)
    starts = np.array(roots, np.int64)
    if starts.size and not 0 <= starts.min() <= starts.max() < count:
        raise InvalidArgument(f"tree_roots={list(roots)}; expected indices in [0, {count - 1}]")
    leaf_zeros = np.zeros(leaf_count, np.int64)
    return assemble(
        roots=starts,
        features=np.concatenate([np.array(features, np.int64), leaf_zeros]),
        thresholds=np.concatenate([splits, leaf_zeros.astype(splits.dtype)]),
        modes=np.concatenate([modes.astype(np.int64), leaf_zeros]),
        is_inner=np.arange(count + leaf_count) < count,
        children=children,
        missing=missing,
        members=None if members is None else members.astype(np.float64),
        vote_nodes=count + np.arange(leaf_count),
        vote_targets=np.array(leaf_targets, np.int64),
        vote_weights=leaf_weights,
        target_count=target_count,
    )


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
        raise InvalidArgument(f"aggregate_function={aggregate!r}; expected one of {', '.join(_AGGREGATES)}")
    row, target, weight = _votes(forest, leaves_of(forest, rows))
    dtype = np.float64 if np.float64 in (rows.dtype, weight.dtype) else np.float32
    place = row * target_count + target
    totals: Array = np.full(len(rows) * target_count, _ORIGIN[aggregate], dtype)
    _COMBINE[aggregate].at(totals, place, weight.astype(dtype, copy=False))
    any_vote = np.zeros(len(totals), bool)
    any_vote[place] = True
    totals[~any_vote] = 0
    if aggregate == "AVERAGE":
        np.divide(totals, len(forest.roots), out=totals)
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
    base = _numbers(base_values, base_values_as_tensor)
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
    if not 0 <= aggregate_function < len(_AGGREGATES) or not 0 <= post_transform < len(_POST_TRANSFORMS):
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
    aggregate, transform = _AGGREGATES[aggregate_function], _POST_TRANSFORMS[post_transform]
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
    base = _numbers(base_values, base_values_as_tensor).astype(totals.dtype)
    choice, scores = classified(totals, any_vote, base, forest.votes_target, forest.votes_weight, post_transform)
    if len(labels) == 1 and labels.dtype == np.int64:
        labels = np.array([0, 1])
    return labels[np.minimum(choice, len(labels) - 1)], scores.astype(np.float32, copy=False)
