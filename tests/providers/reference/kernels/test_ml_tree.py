"""Facts about tree ensembles."""

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

ROWS = np.float32([[0, 0], [0, 1], [1, 0], [1, 1]])
TWO_TREES = {
    "nodes_treeids": (7, 7, 7, 9, 9, 9),
    "nodes_nodeids": (0, 1, 2, 0, 5, 6),
    "nodes_featureids": (0, -2, -2, 1, -2, -2),
    "nodes_values": (0.5, 0.0, 0.0, 0.5, 0.0, 0.0),
    "nodes_modes": ("BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"),
    "nodes_truenodeids": (1, 0, 0, 5, 0, 0),
    "nodes_falsenodeids": (2, 0, 0, 6, 0, 0),
}
"""Tree 7 votes at node 1 for feature 0 <= 0.5, else at 2; tree 9 at node 5 for feature 1 > 0.5, else at 6."""


def regress(data=ROWS, weights=(1.0, 2.0, 10.0, 20.0), ids=(0, 0, 0, 0), **attributes):
    votes = {"target_treeids": (7, 7, 9, 9), "target_nodeids": (1, 2, 5, 6), "target_ids": ids, "target_weights": weights}
    return run_op("TreeEnsembleRegressor", data, domain="ai.onnx.ml", **(TWO_TREES | votes | attributes))


def classify(data=ROWS, weights=(0.25, 0.5, 0.25, 0.5), ids=(0, 1, 0, 1), **attributes):
    votes = {"class_treeids": (7, 7, 9, 9), "class_nodeids": (1, 2, 5, 6), "class_ids": ids, "class_weights": weights}
    labels = {} if "classlabels_strings" in attributes else {"classlabels_int64s": (3, 4)}
    return run_op("TreeEnsembleClassifier", data, domain="ai.onnx.ml", outputs=2, **(TWO_TREES | votes | labels | attributes))


@pytest.mark.parametrize(
    ("aggregate", "want"),
    [("SUM", [21, 11, 22, 12]), ("AVERAGE", [10.5, 5.5, 11, 6]), ("MIN", [1, 1, 2, 2]), ("MAX", [20, 10, 20, 10])],
)
def test_votes_are_aggregated(aggregate, want):
    """Each row gets one vote of each tree."""
    result = regress(aggregate_function=aggregate)
    assert result.dtype == np.float32
    assert result[:, 0].tolist() == want


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_every_input_type_gives_float(dtype):
    """Integers and doubles are compared with the thresholds as they are."""
    assert regress(ROWS.astype(dtype))[:, 0].tolist() == [21, 11, 22, 12]


def test_targets_are_apart_and_base_values_added():
    """A leaf votes for its target only."""
    assert regress(ids=(0, 0, 1, 1), n_targets=2, base_values=(0.5, -0.5)).tolist()[1] == [1.5, 9.5]


def test_leaves_may_vote_often_or_not_at_all():
    """Votes of one leaf add up; a leaf without votes counts 0."""
    votes = {"target_treeids": (7, 7), "target_nodeids": (1, 1)}
    assert regress(weights=(1.0, 2.0), ids=(0, 1), n_targets=2, **votes).tolist() == [[1, 2], [1, 2], [0, 0], [0, 0]]


def test_doubles_keep_their_digits():
    """Thresholds and weights given as tensors decide in double."""
    near = 0.5 + 1e-12
    values = {"nodes_values": None, "nodes_values_as_tensor": np.array([near, 0, 0, 0.5, 0, 0])}
    assert regress(np.array([[near, 0.0]]), **values)[0, 0] == 21
    assert regress(np.array([[near + 1e-12, 0.0]]), **values)[0, 0] == 22


def test_missing_values_follow_their_track():
    """The first tree's test holds for NaN, the second one's does not."""
    tracks = (1, 0, 0, 0, 0, 0)
    assert regress(np.float32([[np.nan, np.nan]]), nodes_missing_value_tracks_true=tracks)[0, 0] == 21


def test_labels_are_those_of_the_greatest_score():
    """Strings or integers, as the model says."""
    labels, scores = classify()
    assert labels.tolist() == [4, 3, 4, 4]
    assert scores.tolist() == [[0.25, 0.5], [0.5, 0], [0, 1], [0.25, 0.5]]
    assert classify(classlabels_strings=("no", "yes"))[0].tolist() == ["yes", "no", "yes", "yes"]


def test_one_voted_class_of_two_is_the_binary_case():
    """Its score is that of the second label."""
    labels, scores = classify(ids=(0, 0, 0, 0), post_transform="LOGISTIC", weights=(-1.0, 1.0, 0.0, 0.0))
    assert labels.tolist() == [3, 3, 4, 4]
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-6)


def test_a_vector_is_one_row():
    """Rank 1 is a batch of one; an empty batch gives empty outputs."""
    assert regress(ROWS[3]).tolist() == [[12]]
    assert [part.shape for part in classify(ROWS[:0])] == [(0,), (0, 2)]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"nodes_truenodeids": (8, 0, 0, 5, 0, 0)}, "node 8 of tree 7"),
        ({"nodes_nodeids": (0, 1, 1, 0, 5, 6)}, "twice"),
        ({"nodes_modes": ("BRANCH_LEQ",) * 5 + ("BRANCH",)}, "'BRANCH'"),
        ({"nodes_truenodeids": (0, 0, 0, 5, 0, 0)}, "own ancestor"),
        ({"target_ids": (0, 0, 0, 1)}, "there are 1"),
        ({"nodes_featureids": (0,)}, "lengths"),
        ({"aggregate_function": "MEDIAN"}, "MEDIAN"),
        ({"base_values": (1.0, 2.0)}, "base_values"),
    ],
)
def test_damaged_ensembles_are_rejected(attributes, message):
    """The message names the node, the value or the lengths."""
    with pytest.raises(InvalidArgument, match=message):
        regress(**attributes)


SPLIT = {
    "tree_roots": (0,),
    "nodes_featureids": (0, 0),
    "nodes_modes": np.array([0, 6], np.uint8),
    "nodes_splits": np.float32([1.5, 0]),
    "nodes_truenodeids": (0, 1),
    "nodes_trueleafs": (1, 1),
    "nodes_falsenodeids": (1, 2),
    "nodes_falseleafs": (0, 1),
    "leaf_targetids": (0, 1, 0),
    "leaf_weights": np.float32([5, 6, 7]),
    "membership_values": np.float32([2, 4, np.nan]),
    "n_targets": 2,
}
"""x <= 1.5 votes 5 for target 0; x in {2, 4} votes 6 for target 1; any other votes 7 for target 0."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_tree_ensemble_5_gives_the_input_type(dtype):
    """Leaves lie apart from nodes, sets are tested by membership."""
    weights = SPLIT["leaf_weights"].astype(dtype)
    result = run_op(
        "TreeEnsemble", np.array([[1], [2], [3], [4]], dtype), domain="ai.onnx.ml", **(SPLIT | {"leaf_weights": weights})
    )
    assert result.dtype == dtype
    assert result.tolist() == [[5, 0], [0, 6], [7, 0], [0, 6]]


def test_tree_ensemble_5_transforms_by_number():
    """1 is SOFTMAX; other numbers than 0 to 4 are rejected."""
    result = run_op("TreeEnsemble", np.float32([[1]]), domain="ai.onnx.ml", post_transform=1, **SPLIT)
    np.testing.assert_allclose(result.sum(), 1, rtol=1e-6)
    with pytest.raises(InvalidArgument, match="post_transform=5"):
        run_op("TreeEnsemble", np.float32([[1]]), domain="ai.onnx.ml", post_transform=5, **SPLIT)


@pytest.mark.parametrize("change", [{"tree_roots": (2,)}, {"nodes_falsenodeids": (1, 3)}, {"nodes_falsenodeids": (0, 2)}])
def test_tree_ensemble_5_rejects_what_leads_nowhere(change):
    """A root or a branch outside the lists, a node that leads to itself."""
    with pytest.raises(InvalidArgument):
        run_op("TreeEnsemble", np.float32([[2]]), domain="ai.onnx.ml", **(SPLIT | change))
