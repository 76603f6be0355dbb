"""Histograms that grow, and their ranges."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.quantization.histogram import Histogram, smooth_distribution


def _of(*arrays: object, bins: int = 64) -> Histogram:
    histogram = Histogram(bins)
    for array in arrays:
        histogram.add(np.asarray(array, np.float32))
    return histogram


def test_all_values_are_counted_however_the_range_grows() -> None:
    """Later values may be many times larger than the first."""
    histogram = _of([0.5, -1], np.linspace(-40, 40, 100), [1e6], [])
    assert histogram.counts.sum() == 103
    assert histogram.range_of(1.0)[1] == np.float32(1e6)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_percentile_leaves_out_the_largest_magnitudes(share: float) -> None:
    """To the width of a bin."""
    values = np.random.default_rng(0).uniform(-1, 1, 10000)
    low, high = _of(values, bins=2048).range_of(share)
    assert abs(high - share) < 0.02
    assert low == -high


def test_the_range_stays_within_the_extremes() -> None:
    """Values of one sign have a range of one sign."""
    low, high = _of([0.25, 1, 2]).range_of(1.0)
    assert (low, high) == (0.25, 2)


def test_entropy_leaves_out_a_lonely_large_value() -> None:
    """But not the body of the distribution."""
    values = np.append(np.random.default_rng(0).standard_normal(50000), 40)
    _, high = _of(values, bins=512).entropy_range(128)
    assert 2 < high < 20


@pytest.mark.parametrize("values", [[], [0, 0], [3.0], [1e-30, -1e-30]])
def test_few_values_have_a_range(values: list[float]) -> None:
    """None, zeros, one value, tiny ones."""
    for low, high in (_of(values).entropy_range(128), _of(values).range_of(0.999)):
        assert np.isfinite(low)
        assert np.isfinite(high)
        assert low <= high


def test_smoothing_takes_zeros_from_the_others() -> None:
    """The sum stays; a distribution of zeros has no smoothed one."""
    found = smooth_distribution(np.array([0, 3, 0, 1]))
    assert found is not None
    np.testing.assert_allclose(found, [1e-4, 3 - 1e-4, 1e-4, 1 - 1e-4], rtol=1e-6)
    assert smooth_distribution(np.zeros(3)) is None


def test_smoothing_needs_shares_that_suffice() -> None:
    """Many zeros and small shares are refused."""
    with pytest.raises(InvalidArgument, match="2 zeros"):
        smooth_distribution(np.array([0, 0, 1e-5]))
