"""Facts about how the votes of trees become labels and scores."""

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.tree_classes import classified


def decide(totals, targets, weights=(1.0,), base=(), any_vote=None, transform="NONE"):
    totals = np.float32([totals])
    votes = totals != 0 if any_vote is None else np.array([any_vote])
    choice, scores = classified(totals, votes, np.float32(base), np.array(targets), np.float32(weights), transform)
    return choice.tolist()[0], scores.tolist()[0]


@pytest.mark.parametrize(("score", "choice"), [(0.25, 0), (0.75, 1)])
def test_positive_votes_for_one_of_two_are_a_probability(score, choice):
    """Above a half it means the second class; the first one gets the rest."""
    assert decide([score, 0], [0, 0]) == (choice, [1 - score, score])


@pytest.mark.parametrize(("score", "choice"), [(-0.25, 0), (0.25, 1)])
def test_mixed_votes_for_one_of_two_are_a_margin(score, choice):
    """Above 0 it means the second class; the first one gets the negative."""
    assert decide([score, 0], [0, 0], weights=(1, -1)) == (choice, [-score, score])


def test_votes_for_the_second_class_only_keep_two_columns():
    """The first column stays 0."""
    assert decide([0, 0.75], [1, 1]) == (1, [0, 0.75])


def test_one_base_value_is_added_to_the_score():
    """It moves the decision."""
    assert decide([0.25, 0], [0, 0], base=(0.5,)) == (1, [0.25, 0.75])


def test_votes_for_both_classes_are_compared():
    """The greater score wins, whatever the smaller one is."""
    assert decide([0.75, 0.25], [0, 1]) == (0, [0.75, 0.25])


def test_a_class_without_votes_does_not_win():
    """Its score of 0 is no score, unless there is a base value."""
    assert decide([-1, 0, -2], [0, 2])[0] == 0
    assert decide([-1, 0, -2], [0, 2], base=(0, 0, 0))[0] == 1


def test_more_base_values_than_classes_are_rejected():
    """The message has both numbers."""
    with pytest.raises(InvalidArgument, match="3 entries"):
        decide([1, 0], [0, 0], base=(1, 2, 3))


def test_a_single_class_is_decided_by_the_sign():
    """The number of the label is 1 for a positive score."""
    assert decide([0.5], [0]) == (1, [0.5])
    assert decide([-0.5], [0])[0] == 0
