"""Facts about how the values of a tensor are spread."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.quantization.signed_histogram import SignedHistogram

VALUES = np.random.default_rng(0).normal(1.5, 3.0, (4, 5000)).astype(np.float32)


def counted(arrays: object, bins: int = 2048) -> SignedHistogram:
    """A histogram of some arrays."""
    histogram = SignedHistogram(bins)
    for array in np.asarray(arrays, np.float32):
        histogram.add(array)
    return histogram


def test_mean_and_deviation_are_those_of_the_values() -> None:
    """To the width of a bin, for batches that reach farther and farther."""
    mean, deviation = counted([VALUES[0] * 0.01, *VALUES]).spread("same")
    values = np.concatenate([VALUES[0] * 0.01, *VALUES])
    np.testing.assert_allclose([mean, deviation], [values.mean(), values.std()], atol=0.01)


def test_cube_roots_are_spread_otherwise() -> None:
    """Both signs have one."""
    mean, deviation = counted(VALUES, 1 << 15).spread("p3")
    roots = np.cbrt(VALUES.astype(np.float64))
    np.testing.assert_allclose([mean, deviation], [roots.mean(), roots.std()], atol=0.01)


def test_bins_hold_all_values_and_stay_few() -> None:
    """Though a later one is a million times as large."""
    histogram = counted([[1.0, -2.0, 0.5], [3e6, 0.0, -1e5]])
    assert histogram.counts.sum() == 6
    assert histogram.counts.size <= 1 << 16
    assert histogram.edges[-1] >= 3e6
    assert (histogram.lowest, histogram.highest) == (-1e5, 3e6)


def test_zeros_count_once_the_first_other_value_is_there() -> None:
    """And alone they have no spread."""
    histogram = counted([[0.0, 0.0]])
    assert [float(part) for part in histogram.spread("same")] == [0, 0]
    histogram.add(np.float32([4.0, -4.0]))
    np.testing.assert_allclose(histogram.spread("same")[1], np.sqrt(8), rtol=1e-3)


def test_another_scenario_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(InvalidArgument, match="same, p3"):
        counted(VALUES).spread("p2")
