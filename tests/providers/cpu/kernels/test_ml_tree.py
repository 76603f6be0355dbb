"""Tree ensembles as kernels: the same bits as the reference provider, for all forms of trees and votes, sizes and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits
from support.forests import features, forest_model, forest_session, named_trees, split_trees
from support.run_op import run_op

import sardonyx
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes

REGRESSOR, CLASSIFIER, ENSEMBLE = "TreeEnsembleRegressor", "TreeEnsembleClassifier", "TreeEnsemble"
ALL_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
SIZES = (0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 1000)
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def _expected(op_type: str, attributes: dict[str, Any], x: Array) -> list[Array]:
    found = run_op(op_type, x, domain="ai.onnx.ml", outputs=1 + (op_type == CLASSIFIER), **attributes)
    return list(found) if isinstance(found, tuple) else [found]


def _same(op_type: str, attributes: dict[str, Any], *rows: Array, isa: str | None = None, threads: int = 1) -> None:
    session = forest_session(op_type, attributes, rows[0].dtype.type, rows[0].shape[1], isa=isa, threads=threads)
    for x in rows:
        for found, expected in zip(session.run(None, {"x": x}), _expected(op_type, attributes, x), strict=True):
            assert_same_bits(found, expected)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(("trees", "nodes"), [(1, 0), (1, 1), (3, 7), (70, 5), (9, 60)])
def test_votes_for_one_target_are_added_in_the_order_of_trees(trees: int, nodes: int, isa: str) -> None:
    """For any number of rows, trees of a single leaf too."""
    attributes = named_trees("target", trees, nodes)
    _same(REGRESSOR, attributes, *(features(rows, 5) for rows in SIZES), isa=isa)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("votes", ["one", "dense", "list", "first"])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_votes_for_several_targets_are_combined(votes: str, aggregate: str, isa: str) -> None:
    """A target for each tree, all targets or any number of votes for each leaf; targets without votes are 0."""
    for targets, trees in ((3, 20), (17, 6)):
        attributes = named_trees("target", trees, 6, targets=targets, votes=votes) | {"aggregate_function": aggregate}
        bases = {"base_values": tuple(map(float, range(targets)))}
        _same(REGRESSOR, attributes | bases, *(features(rows, 5) for rows in (1, 17, 100)), isa=isa)
        _same(REGRESSOR, attributes, features(33, 5), isa=isa)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_every_test_type_and_special_value(dtype: type, double: bool, missing: bool) -> None:
    """Thresholds, features and weights in float32 or float64, integers, NaN, infinities and -0."""
    attributes = named_trees("target", 12, 30, modes=ALL_MODES, missing=missing, double=double, seed=1)
    for rows in (3, 200):
        _same(REGRESSOR, attributes, features(rows, 5, dtype, special=dtype in (np.float32, np.float64)))


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ALL_MODES)
def test_thresholds_at_the_edges(mode: str, isa: str) -> None:
    """Infinite, NaN, zero of both signs and beyond float32: each x is compared as in the type that both have in common."""
    thresholds = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300, -1e300, 0.1, np.float32(0.1), 1e-46, 3.4028236e38])
    numbers = [np.inf, -np.inf, np.nan, 0.0, -0.0, 0.1, np.nextafter(np.float32(0.1), np.float32(0)), 1e-45, -1e-45, 3.4028235e38]
    x = np.float32(numbers)[:, None]
    with np.errstate(over="ignore"):
        given = thresholds.astype(np.float32), thresholds
    for numbers_given in given:
        count = len(thresholds)
        attributes = {
            "nodes_treeids": tuple(np.repeat(np.arange(count), 3).tolist()),
            "nodes_nodeids": (0, 1, 2) * count,
            "nodes_featureids": (0, 0, 0) * count,
            "nodes_values_as_tensor": np.repeat(numbers_given, 3),
            "nodes_modes": (mode, "LEAF", "LEAF") * count,
            "nodes_truenodeids": (1, 0, 0) * count,
            "nodes_falsenodeids": (2, 0, 0) * count,
            "nodes_missing_value_tracks_true": (0, 0, 0, 1, 0, 0) * (count // 2) + (0, 0, 0),
            "target_treeids": tuple(np.repeat(np.arange(count), 2).tolist()),
            "target_nodeids": (1, 2) * count,
            "target_ids": tuple(np.repeat(np.arange(count), 2).tolist()),
            "target_weights": (1.0, 2.0) * count,
            "n_targets": count,
        }
        _same(REGRESSOR, attributes, x, isa=isa)
        _same(REGRESSOR, attributes, x.astype(np.float64), isa=isa)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("targets", [1, 4])
def test_trees_of_version_5(dtype: type, targets: int) -> None:
    """Inner nodes and leaves apart, every mode, any target for each leaf."""
    for aggregate in range(4):
        attributes = split_trees(9, 15, targets=targets, dtype=dtype) | {"aggregate_function": aggregate}
        _same(ENSEMBLE, attributes, *(features(rows, 5, dtype, special=True) for rows in (1, 50, 300)))


def test_no_tree_adds_nothing() -> None:
    """Where version 5 names no root."""
    for aggregate in range(4):
        attributes = split_trees(9, 15, targets=3) | {"aggregate_function": aggregate, "tree_roots": ()}
        _same(ENSEMBLE, attributes, features(50, 5, np.float32))


def _close(op_type: str, attributes: dict[str, Any], *rows: Array, isa: str | None = None) -> None:
    """Labels are equal; scores are as close as two exponentials in the type of the totals are."""
    session = forest_session(op_type, attributes, rows[0].dtype.type, rows[0].shape[1], isa=isa)
    for x in rows:
        with np.errstate(all="ignore"):
            expected = _expected(op_type, attributes, x)
        found = session.run(None, {"x": x})
        for left, right in zip(found[:-1], expected[:-1], strict=True):
            assert_same_bits(left, right)
        np.testing.assert_allclose(found[-1], expected[-1], rtol=3e-6, atol=3e-7)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("votes", ["one", "dense", "list", "first"])
def test_classes_are_chosen_and_scored(transform: str, votes: str, isa: str) -> None:
    """One class, two and more, with base values for none, some and all."""
    for classes in (1, 2, 3, 20):
        for bases in {0, 1, classes}:
            attributes = named_trees("class", 12, 3, targets=classes, votes=votes, nonnegative=transform == "PROBIT")
            attributes |= {"post_transform": transform} | ({"base_values": (0.25, -0.5, *[0.0] * 18)[:bases]} if bases else {})
            _close(CLASSIFIER, attributes, features(1, 5), features(35, 5, special=True), isa=isa)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("double", [False, True])
def test_two_classes_of_votes_for_one(transform: str, double: bool) -> None:
    """Votes for the second class alone, probabilities or not, with none, one and two base values; leaves without votes."""
    for nonnegative in (False, True):
        for bases in ((), (0.25,), (0.25, -0.5)):
            attributes = named_trees("class", 8, 3, targets=2, votes="first", double=double, nonnegative=nonnegative)
            attributes |= {"post_transform": transform, "base_values": bases} if bases else {"post_transform": transform}
            _close(CLASSIFIER, attributes, features(40, 5))
            attributes["class_ids"] = tuple(1 for _ in attributes["class_ids"])
            _close(CLASSIFIER, attributes, features(40, 5))
            for name in ("class_treeids", "class_nodeids", "class_ids", "class_weights"):
                if name in attributes:
                    attributes[name] = attributes[name][3:]
            if double:
                attributes["class_weights_as_tensor"] = attributes["class_weights_as_tensor"][3:]
            _close(CLASSIFIER, attributes, features(40, 5))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_of_regressions(transform: str) -> None:
    """On one target only PROBIT acts."""
    for targets in (1, 3):
        attributes = named_trees("target", 5, 4, targets=targets, nonnegative=True) | {"post_transform": transform}
        _close(REGRESSOR, attributes, features(40, 5))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_row_has_the_same_bits_alone_as_in_a_batch(threads: int) -> None:
    """And for any number of threads."""
    attributes = named_trees("target", 200, 9, targets=2, votes="dense")
    session = forest_session(REGRESSOR, attributes, threads=threads)
    x = features(600, 5)
    whole = session.run(None, {"x": x})[0]
    assert_same_bits(whole, _expected(REGRESSOR, attributes, x)[0])
    for row in (0, 255, 256, 599):
        assert_same_bits(session.run(None, {"x": x[row : row + 1]})[0], whole[row : row + 1])


def test_a_chain_of_500_nodes() -> None:
    """Depth is no bound."""
    depth = 500
    attributes = {
        "nodes_treeids": (0,) * (2 * depth + 1),
        "nodes_nodeids": tuple(range(2 * depth + 1)),
        "nodes_featureids": (0,) * (2 * depth + 1),
        "nodes_values": tuple([float(node // 2) for node in range(2 * depth + 1)]),
        "nodes_modes": ("BRANCH_LEQ", "LEAF") * depth + ("LEAF",),
        "nodes_truenodeids": tuple([node + 1 if node % 2 == 0 else 0 for node in range(2 * depth)]) + (0,),
        "nodes_falsenodeids": tuple([node + 2 if node % 2 == 0 else 0 for node in range(2 * depth)]) + (0,),
        "target_treeids": (0,) * (depth + 1),
        "target_nodeids": (*range(1, 2 * depth, 2), 2 * depth),
        "target_ids": (0,) * (depth + 1),
        "target_weights": tuple(map(float, range(depth + 1))),
        "n_targets": 1,
    }
    x = np.arange(-1, depth + 3, dtype=np.float32)[:, None]
    _same(REGRESSOR, attributes, x, x[:1], x[-1:])


def test_shared_children_and_roots_anywhere() -> None:
    """Trees that share nodes, and roots in any order, walk as in the reference provider."""
    attributes = {
        "tree_roots": (2, 0, 1),
        "nodes_featureids": (0, 1, 2),
        "nodes_modes": np.array([0, 1, 4], np.uint8),
        "nodes_splits": np.float32([0, 1, 2]),
        "nodes_truenodeids": (1, 0, 1),
        "nodes_trueleafs": (0, 1, 0),
        "nodes_falsenodeids": (1, 1, 0),
        "nodes_falseleafs": (0, 1, 1),
        "leaf_targetids": (0, 1),
        "leaf_weights": np.float32([1, 2]),
        "n_targets": 2,
    }
    _same(ENSEMBLE, attributes, features(1, 5), features(90, 5))


def test_many_features_need_wider_records() -> None:
    """A feature number that leaves no space for a child is read from records of twice the size."""
    x = np.random.default_rng(0).standard_normal((5, 70_000)).astype(np.float32)
    _same(REGRESSOR, named_trees("target", 40, 400, width=70_000), x, np.repeat(x, 20, axis=0))


def test_too_few_features_are_an_error_of_the_run() -> None:
    """Which names the node; the next run is well again."""
    attributes = named_trees("target", 3, 9)
    session = forest_session(REGRESSOR, attributes, width=None)
    most = max(attributes["nodes_featureids"])
    with pytest.raises(InvalidArgument, match=f"trees.*has {most} features, but a node tests feature {most}"):
        session.run(None, {"x": np.zeros((4, most), np.float32)})
    assert session.run(None, {"x": np.zeros((4, most + 1), np.float32)})[0].shape == (4, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes_truenodeids": (9, 0, 0)}, "nodes_truenodeids names node 9"),
        ({"nodes_truenodeids": (0, 0, 0)}, "own ancestor"),
        ({"nodes_featureids": (-1, 0, 0)}, "tests feature -1"),
        ({"target_ids": (0, 5)}, "targets 0 to 5"),
        ({"target_nodeids": (1, 7)}, "a vote names node 7"),
        ({"nodes_values": (0.0,)}, "lengths"),
        ({"base_values": (1.0, 2.0)}, "base_values have 2 entries"),
    ],
)
def test_damaged_trees_are_refused_with_the_session(changes: dict[str, Any], message: str) -> None:
    """A child, feature or target that is not there, or a path that never ends."""
    attributes = {
        "nodes_treeids": (0, 0, 0),
        "nodes_nodeids": (0, 1, 2),
        "nodes_featureids": (0, 0, 0),
        "nodes_values": (0.0, 0.0, 0.0),
        "nodes_modes": ("BRANCH_LEQ", "LEAF", "LEAF"),
        "nodes_truenodeids": (1, 0, 0),
        "nodes_falsenodeids": (2, 0, 0),
        "target_treeids": (0, 0),
        "target_nodeids": (1, 2),
        "target_ids": (0, 0),
        "target_weights": (1.0, 2.0),
        "n_targets": 1,
    }
    with pytest.raises(InvalidArgument, match=f"trees.*{message}"):
        forest_session(REGRESSOR, attributes | changes)


def test_what_is_left_to_the_reference_provider() -> None:
    """Membership of sets."""
    members = split_trees(2, 3) | {"nodes_modes": np.full(6, 6, np.uint8), "membership_values": np.float32([1, np.nan] * 6)}
    session = sardonyx.InferenceSession(to_bytes(forest_model(ENSEMBLE, members)))
    assert "membership of sets" in session.explain()[0].declined["CPUExecutionProvider"]
    assert len(session.run(None, {"x": features(3, 5)})[0]) == 3
