"""Facts about ranges of arrays without a model."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.quantization.collectors import HistogramCollector

ARRAYS = np.random.default_rng(0).standard_normal((4, 500)).astype(np.float32)


def collected(method: str, *, symmetric: bool = False, percentile: float = 100.0) -> tuple[float, float]:
    """The range of two batches, one of them several arrays."""
    collector = HistogramCollector(method, symmetric, 128, 64, percentile, "same")
    collector.collect({"x": ARRAYS[0]})
    collector.collect({"x": list(ARRAYS[1:])})
    low, high = collector.compute_collection_result()["x"].range_value
    return float(low), float(high)


def test_all_magnitudes_are_the_extremes() -> None:
    """Of all batches."""
    assert collected("percentile") == (ARRAYS.min(), ARRAYS.max())


def test_a_percentage_leaves_rare_magnitudes_out() -> None:
    """To a bin's width."""
    low, high = collected("percentile", percentile=90.0)
    assert -low == high == pytest.approx(np.quantile(np.abs(ARRAYS), 0.9), abs=0.1)


@pytest.mark.parametrize("method", ["percentile", "entropy"])
def test_a_symmetric_range_has_0_in_its_middle(method: str) -> None:
    """The larger magnitude counts."""
    low, high = collected(method, symmetric=True)
    assert -low == high > 0


def test_a_distribution_has_a_mean_and_a_deviation() -> None:
    """And its histogram, as onnxruntime's collector gives."""
    collector = HistogramCollector("distribution", False, 512, 64, 99.0, "same")
    collector.collect({"x": list(ARRAYS)})
    found = collector.compute_collection_result()["x"]
    np.testing.assert_allclose(found.avg_std, [ARRAYS.mean(), ARRAYS.std()], atol=0.01)
    parts = found.to_dict()
    assert (parts["hist"].sum(), parts["hist_edges"].size) == (ARRAYS.size, parts["hist"].size + 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("distribute", False, 128, 64, 99.0, "same"), "method is one of"),
        (("distribution", False, 128, 64, 99.0, "same"), "at least 512"),
        (("distribution", False, 512, 64, 99.0, "p2"), "scenario"),
        (("entropy", False, 1, 64, 99.0, "same"), "num_bins"),
        (("percentile", False, 128, 64, 101.0, "same"), "percentile"),
    ],
)
def test_arguments_are_checked(arguments: tuple[str, bool, int, int, float, str], message: str) -> None:
    """When it is made."""
    with pytest.raises(InvalidArgument, match=message):
        HistogramCollector(*arguments)


def test_nothing_collected_is_an_error() -> None:
    """As is what has no range."""
    collector = HistogramCollector("entropy", False, 128, 64, 99.0, "same")
    with pytest.raises(ValueError, match="call collect first"):
        collector.compute_collection_result()
    with pytest.raises(ValueError, match="NaN or infinities"):
        collector.collect({"x": np.array([1, np.inf], np.float32)})
