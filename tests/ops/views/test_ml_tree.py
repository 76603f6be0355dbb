"""The view of tree ensembles."""

from __future__ import annotations

import numpy as np
import pytest
from support.forests import forest_model, named_trees, split_trees

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Attribute, Node
from sardonyx.ops.views.ml_tree import TreeEnsemble


def _node(op_type: str, **changes: object) -> Node:
    kind = {"TreeEnsembleClassifier": "class", "TreeEnsembleRegressor": "target"}.get(op_type)
    attributes = split_trees(2, 3, targets=4) if kind is None else named_trees(kind, 2, 3, targets=4)
    node = next(iter(forest_model(op_type, attributes).graph))
    node.attributes.update({name: Attribute.of(value) for name, value in changes.items()})
    return node


def test_a_classifier_has_labels_and_sums() -> None:
    """As many targets as labels; strings come before integers."""
    view = TreeEnsemble.of(_node("TreeEnsembleClassifier"))
    assert (view.targets, view.labels, view.aggregate, view.post_transform) == (4, (7, 8, 9, 10), "SUM", "NONE")
    assert TreeEnsemble.of(_node("TreeEnsembleClassifier", classlabels_strings=("a", "b"))).labels == ("a", "b")


def test_a_regressor_has_targets() -> None:
    """And names of its functions."""
    view = TreeEnsemble.of(_node("TreeEnsembleRegressor", aggregate_function="MIN", base_values=(1.0,)))
    assert (view.targets, view.labels, view.aggregate, view.base.tolist()) == (4, None, "MIN", [1.0])


def test_version_5_has_codes() -> None:
    """Of the functions and of tests."""
    view = TreeEnsemble.of(_node("TreeEnsemble", aggregate_function=3, post_transform=2))
    assert (view.targets, view.aggregate, view.post_transform, view.has_members) == (4, "MAX", "LOGISTIC", False)
    node = _node("TreeEnsemble")
    node.attributes.update(next(iter(forest_model("TreeEnsemble", {"nodes_modes": np.full(6, 6, np.uint8)}).graph)).attributes)
    assert TreeEnsemble.of(node).has_members


@pytest.mark.parametrize(
    ("op_type", "changes", "message"),
    [
        ("TreeEnsembleRegressor", {"aggregate_function": "MEAN"}, "aggregate_function='MEAN'"),
        ("TreeEnsembleRegressor", {"post_transform": "RELU"}, "post_transform='RELU'"),
        ("TreeEnsemble", {"aggregate_function": 4}, "expected 0-3"),
        ("TreeEnsemble", {"post_transform": -1}, "expected 0-3 and 0-4"),
    ],
)
def test_unknown_functions_are_refused(op_type: str, changes: dict[str, object], message: str) -> None:
    """By name or code."""
    with pytest.raises(InvalidGraph, match=message):
        TreeEnsemble.of(_node(op_type, **changes))


@pytest.mark.parametrize("op_type", ["TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"])
def test_trees_are_read(op_type: str) -> None:
    """Of every operator."""
    forest = TreeEnsemble.forest(_node(op_type))
    assert len(forest.roots) == 2
    assert forest.is_inner.sum() == 6
