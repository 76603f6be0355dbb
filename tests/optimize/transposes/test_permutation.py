"""Permutations."""

from __future__ import annotations

import numpy as np
from support.models import graph

from sardonyx.optimize.transposes.permutation import (
    changes_layout,
    identity,
    inverse,
    moves_nothing,
    permutation_of,
    permuted,
    reordering,
    then,
    weight_of,
)


def test_a_permutation_and_its_inverse_undo_each_other() -> None:
    """One after the other changes nothing."""
    assert then((2, 0, 1, 3), inverse((2, 0, 1, 3))) == identity(4)


def test_one_after_the_other_is_what_numpy_does() -> None:
    """`then` composes in the order of the transposes."""
    x = np.arange(24).reshape(2, 3, 4)
    both = x.transpose((2, 0, 1)).transpose((1, 0, 2))
    assert both.shape == permuted((2, 3, 4), then((2, 0, 1), (1, 0, 2)))
    np.testing.assert_array_equal(both, x.transpose(then((2, 0, 1), (1, 0, 2))))


def test_moving_dimensions_of_one_moves_no_element() -> None:
    """The others keep their order; of an unknown shape all dimensions count."""
    assert moves_nothing((0, 3, 1, 2), (5, 1, 1, 7))
    assert not moves_nothing((0, 3, 1, 2), (5, 1, 2, 7))
    assert not moves_nothing((0, 3, 1, 2), None)


def test_layouts_are_recognized_from_three_dimensions_on() -> None:
    """Channels go first or last; all else keeps its order."""
    assert all(changes_layout(permutation) for permutation in [(0, 2, 1), (0, 2, 3, 1), (0, 3, 1, 2)])
    assert not any(changes_layout(permutation) for permutation in [(0, 1), (1, 0), (0, 1, 3, 2)])


def test_a_transpose_without_perm_reverses() -> None:
    """Where the rank is known."""
    (node,) = graph("graph(x: float[2, 3, 4]) -> (y: float[4, 3, 2]) {\ny = Transpose(x)\n}")
    assert permutation_of(node) == (2, 1, 0)
    (other,) = graph("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}")
    assert permutation_of(other) is None


def test_the_weight_counts_dimensions_that_are_not_one() -> None:
    """An unknown rank counts as five."""
    assert [weight_of(shape) for shape in [(1, 2, 3), (1, 1), None]] == [2, 0, 5]


def test_labels_tell_a_permutation() -> None:
    """The order before and the order after."""
    assert reordering("abc", "cab") == (2, 0, 1)
