"""Facts about trees as flat arrays and the walk through them."""

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.ops.forest import MEMBER, MODES, assemble
from sardonyx.providers.reference.algorithms.forest import leaves_of


def stump(mode, threshold=0.5, members=None, missing=None, feature=0):
    """A tree of one test: node 0, where node 1 is the leaf of failure, node 2 that of success."""
    return assemble(
        roots=np.array([0]),
        features=np.array([feature, 0, 0]),
        thresholds=np.float32([threshold, 0, 0]),
        modes=np.array([mode, 0, 0]),
        is_inner=np.array([True, False, False]),
        children=np.array([1, 2, 1, 1, 2, 2]),
        missing=missing,
        members=members,
        vote_nodes=np.array([2, 1]),
        vote_targets=np.array([0, 0]),
        vote_weights=np.float32([10, 20]),
        target_count=1,
    )


ROWS = np.float32([[0], [0.5], [1]])


@pytest.mark.parametrize(
    ("mode", "holds"),
    [
        ("BRANCH_LEQ", [1, 1, 0]),
        ("BRANCH_LT", [1, 0, 0]),
        ("BRANCH_GTE", [0, 1, 1]),
        ("BRANCH_GT", [0, 0, 1]),
        ("BRANCH_EQ", [0, 1, 0]),
        ("BRANCH_NEQ", [1, 0, 1]),
    ],
)
def test_each_mode_compares_the_feature_with_the_threshold(mode, holds):
    """Where the test holds, the walk goes to the second child."""
    assert leaves_of(stump(MODES.index(mode)), ROWS)[0].tolist() == [1 + hold for hold in holds]


def test_a_member_test_looks_into_its_set():
    """Sets are delimited by NaN."""
    assert leaves_of(stump(MEMBER, members=np.array([1.0, 0.0, np.nan])), ROWS)[0].tolist() == [2, 1, 2]
    with pytest.raises(InvalidArgument, match="2 sets for 1 nodes"):
        stump(MEMBER, members=np.array([1.0, np.nan, 2.0]))


@pytest.mark.parametrize(("missing", "leaf"), [(None, 1), ((0, 0, 0), 1), ((1, 0, 0), 2)])
def test_a_missing_value_follows_its_track(missing, leaf):
    """NaN fails the test unless the node says otherwise."""
    assert leaves_of(stump(0, missing=missing), np.float32([[np.nan]]))[0].tolist() == [leaf]


def test_many_rows_walk_in_blocks():
    """More rows than walk at once find the same leaves."""
    rows = np.random.default_rng(0).random((150_000, 1), np.float32)
    np.testing.assert_array_equal(leaves_of(stump(0), rows)[0], np.where(rows[:, 0] <= 0.5, 2, 1))


def test_no_rows_and_too_few_features():
    """An empty batch is walked; a feature that the input lacks is an error."""
    assert leaves_of(stump(0), np.zeros((0, 1), np.float32)).shape == (1, 0)
    with pytest.raises(InvalidArgument, match="tests feature 3"):
        leaves_of(stump(0, feature=3), ROWS)
