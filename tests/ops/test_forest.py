"""Facts about trees as flat arrays."""

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.ops.forest import MEMBER, MODES, assemble


def stump(mode, members=None):
    """A tree of one test: node 0, where node 1 is the leaf of failure, node 2 that of success."""
    return assemble(
        roots=np.array([0]),
        features=np.array([0, 0, 0]),
        thresholds=np.float32([0.5, 0, 0]),
        modes=np.array([mode, 0, 0]),
        is_inner=np.array([True, False, False]),
        children=np.array([1, 2, 1, 1, 2, 2]),
        missing=None,
        members=members,
        vote_nodes=np.array([2, 1]),
        vote_targets=np.array([0, 0]),
        vote_weights=np.float32([10, 20]),
        target_count=1,
    )


def test_sets_of_members_belong_to_nodes():
    """Sets are delimited by NaN: there are no more of them than nodes."""
    assert stump(MEMBER, np.array([1.0, np.nan])).members.values.tolist() == [1]
    with pytest.raises(InvalidArgument, match="2 sets for 1 nodes"):
        stump(MEMBER, np.array([1.0, np.nan, 2.0]))
    assert MODES[MEMBER] == "BRANCH_MEMBER"


def test_votes_lie_by_node():
    """The votes are sorted by their node."""
    forest = stump(0)
    assert forest.votes_start.tolist() == [0, 0, 1, 2]
    assert forest.votes_weight.tolist() == [20, 10]


def test_an_endless_path_is_rejected():
    """A node that is its own ancestor is found before any walk."""
    with pytest.raises(InvalidArgument, match="own ancestor"):
        assemble(
            roots=np.array([0]),
            features=np.array([0, 0]),
            thresholds=np.float32([0, 0]),
            modes=np.array([0, 0]),
            is_inner=np.array([True, True]),
            children=np.array([1, 1, 0, 0]),
            missing=None,
            members=None,
            vote_nodes=np.zeros(0, np.int64),
            vote_targets=np.zeros(0, np.int64),
            vote_weights=np.zeros(0, np.float32),
            target_count=1,
        )
