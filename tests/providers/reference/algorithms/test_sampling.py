"""Sampling at fractional positions."""

import numpy as np

from sardonyx.providers.reference.algorithms.sampling import linear_taps, sample


def test_linear_taps_blend_two_neighbours():
    """A position a quarter beyond element 1 takes three quarters of it and one of element 2."""
    (index, weight), (further, rest) = linear_taps(np.array([1.25]), 4)
    assert (index.tolist(), weight.tolist(), further.tolist(), rest.tolist()) == ([1], [0.75], [2], [0.25])


def test_neighbours_outside_weigh_nothing():
    """Beyond either end only the element inside counts, and far beyond none."""
    taps = linear_taps(np.array([-0.5, 3.5, -7.0, 1e30]), 4)
    assert sum(weight for _, weight in taps).tolist() == [0.5, 0.5, 0, 0]
    assert all(((index >= 0) & (index < 4)).all() for index, _ in taps)


def test_sample_multiplies_the_weights_of_all_axes():
    """Between four elements in the plane the result is their mean."""
    x = np.array([[[1.0, 2.0], [3.0, 6.0]]])
    middle = np.array([0.5])
    assert sample(x, [linear_taps(middle, 2), linear_taps(middle, 2)]).tolist() == [[3.0]]


def test_what_is_outside_is_not_read():
    """An element that is not finite shows only where it has weight."""
    x = np.array([[np.inf, 1.0, np.nan]])
    assert sample(x, [linear_taps(np.array([-5.0, 1.0, 9.0]), 3)]).tolist() == [[0.0, 1.0, 0.0]]
