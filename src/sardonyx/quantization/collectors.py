"""Ranges of arrays that a script gives, without a model: onnxruntime's collectors.

collector = HistogramCollector("percentile", False, 2048, 128, 99.9, "same")
collector.collect({"x": arrays})
collector.compute_collection_result()["x"].range_value
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.quantization.histogram import Histogram
from sardonyx.quantization.signed_histogram import SCENARIOS, SignedHistogram
from sardonyx.quantization.tensors_data import TensorData

__all__ = ["METHODS", "CalibrationDataCollector", "HistogramCollector"]

METHODS = ("entropy", "percentile", "distribution")
"""What is found of a histogram: a range, in two ways, or how values are spread."""
_LEAST_SPREAD_BINS = 512


class CalibrationDataCollector(abc.ABC):
    """Takes arrays by their names, and says something of each name."""

    @abc.abstractmethod
    def collect(self, name_to_arr: Mapping[str, Array | Sequence[Array]]) -> None:
        """Take arrays, name -> one or several."""

    @abc.abstractmethod
    def compute_collection_result(self) -> Mapping[str, TensorData]:
        """Return what follows from all that were taken, by name."""


class HistogramCollector(CalibrationDataCollector):
    """Keeps a histogram for each name: of magnitudes, or for "distribution" of values."""

    def __init__(
        self, method: str, symmetric: bool, num_bins: int, num_quantized_bins: int, percentile: float, scenario: str
    ) -> None:
        """Begin with no name.

        Args:
            method: "entropy", "percentile", or "distribution".
            symmetric: whether ranges have 0 in their middle.
            num_bins: the bins of a histogram that has taken one array; at least 2, for "distribution" 512.
            num_quantized_bins: the levels that "entropy" compares a distribution with.
            percentile: the percentage of all magnitudes that a range holds, 0 to 100.
            scenario: of "distribution": "same", or "p3" where float8 is spread as the cubes of the values are.

        Raises:
            InvalidArgument: an argument is none of these.
        """
        if method not in METHODS:
            raise InvalidArgument(f"method is one of {', '.join(METHODS)}, got {method!r}")
        least = _LEAST_SPREAD_BINS if method == "distribution" else 2
        if num_bins < least:
            raise InvalidArgument(f"num_bins of {method} is at least {least}, got {num_bins}")
        if not 0 <= percentile <= 100:
            raise InvalidArgument(f"percentile is from 0 to 100, got {percentile}")
        if scenario not in SCENARIOS:
            raise InvalidArgument(f"scenario is one of {', '.join(SCENARIOS)}, got {scenario!r}")
        self.method, self.symmetric, self.num_bins = method, symmetric, num_bins
        self.num_quantized_bins, self.percentile, self.scenario = num_quantized_bins, percentile, scenario
        self.histogram_dict: dict[str, Histogram | SignedHistogram] = {}
        """Name -> what is counted."""

    def get_histogram_dict(self) -> dict[str, Histogram | SignedHistogram]:
        """Return what is counted, by name."""
        return self.histogram_dict

    def collect(self, name_to_arr: Mapping[str, Array | Sequence[Array]]) -> None:
        """Count the elements of arrays, name -> one or several.

        Raises:
            ValueError: an element is NaN or infinite.
        """
        for name, arrays in name_to_arr.items():
            kind = SignedHistogram if self.method == "distribution" else Histogram
            histogram = self.histogram_dict.setdefault(name, kind(self.num_bins))
            for array in [arrays] if isinstance(arrays, np.ndarray) else arrays:
                if not np.isfinite(array).all():
                    raise ValueError(f"tensor {name!r} has NaN or infinities for the calibration data; its range is not defined")
                histogram.add(array)

    def compute_collection_result(self) -> dict[str, TensorData]:
        """Return what was found of each name; raises ValueError where there is none."""
        if not self.histogram_dict:
            raise ValueError("no calibration data was collected: call collect first")
        return {
            name: self._range(histogram) if isinstance(histogram, Histogram) else self._spread(histogram)
            for name, histogram in self.histogram_dict.items()
        }

    def _range(self, histogram: Histogram) -> TensorData:
        is_share = self.method == "percentile"
        low, high = histogram.range_of(self.percentile / 100) if is_share else histogram.entropy_range(self.num_quantized_bins)
        most = np.maximum(np.abs(low), np.abs(high))
        low, high = (-most, most) if self.symmetric else (low, high)
        return TensorData(lowest=low, highest=high)

    def _spread(self, histogram: SignedHistogram) -> TensorData:
        mean, deviation = histogram.spread(self.scenario)
        edges = histogram.edges.astype(np.float32)
        ends = {"lowest": edges[0], "highest": edges[-1]}
        return TensorData(avg=mean, std=deviation, hist=histogram.counts, hist_edges=edges, **ends)
