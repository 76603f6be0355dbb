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
from sardonyx.quantization.tensors_data import TensorData

__all__ = ["METHODS", "CalibrationDataCollector", "HistogramCollector"]

METHODS = ("entropy", "percentile")
"""How a range follows from a histogram."""


class CalibrationDataCollector(abc.ABC):
    """Takes arrays by their names, and says something of each name."""

    @abc.abstractmethod
    def collect(self, name_to_arr: Mapping[str, Array | Sequence[Array]]) -> None:
        """Take arrays, name -> one or several."""

    @abc.abstractmethod
    def compute_collection_result(self) -> Mapping[str, TensorData]:
        """Return what follows from all that were taken, by name."""


class HistogramCollector(CalibrationDataCollector):
    """Keeps a histogram of magnitudes for each name."""

    def __init__(
        self, method: str, symmetric: bool, num_bins: int, num_quantized_bins: int, percentile: float, scenario: str
    ) -> None:
        """Begin with no name.

        Args:
            method: "entropy", or "percentile".
            symmetric: whether ranges have 0 in their middle.
            num_bins: the bins of a histogram that has taken one array; at least 2.
            num_quantized_bins: the levels that "entropy" compares a distribution with.
            percentile: the percentage of all magnitudes that a range holds, 0 to 100.
            scenario: accepted; it is about float8.

        Raises:
            InvalidArgument: an argument is none of these.
        """
        if method not in METHODS:
            raise InvalidArgument(f"method is one of {', '.join(METHODS)}, got {method!r}")
        if num_bins < 2:
            raise InvalidArgument(f"num_bins is at least 2, got {num_bins}")
        if not 0 <= percentile <= 100:
            raise InvalidArgument(f"percentile is from 0 to 100, got {percentile}")
        self.method, self.symmetric, self.num_bins = method, symmetric, num_bins
        self.num_quantized_bins, self.percentile, self.scenario = num_quantized_bins, percentile, scenario
        self.histogram_dict: dict[str, Histogram] = {}
        """Name -> what is counted."""

    def get_histogram_dict(self) -> dict[str, Histogram]:
        """Return what is counted, by name."""
        return self.histogram_dict

    def collect(self, name_to_arr: Mapping[str, Array | Sequence[Array]]) -> None:
        """Count the elements of arrays, name -> one or several.

        Raises:
            ValueError: an element is NaN or infinite.
        """
        for name, arrays in name_to_arr.items():
            histogram = self.histogram_dict.setdefault(name, Histogram(self.num_bins))
            for array in [arrays] if isinstance(arrays, np.ndarray) else arrays:
                if not np.isfinite(array).all():
                    raise ValueError(f"tensor {name!r} has NaN or infinities for the calibration data; its range is not defined")
                histogram.add(array)

    def compute_collection_result(self) -> dict[str, TensorData]:
        """Return the range of each name; raises ValueError where there is none."""
        if not self.histogram_dict:
            raise ValueError("no calibration data was collected: call collect first")
        found = {}
        for name, histogram in self.histogram_dict.items():
            is_share = self.method == "percentile"
            low, high = histogram.range_of(self.percentile / 100) if is_share else histogram.entropy_range(self.num_quantized_bins)
            most = np.maximum(np.abs(low), np.abs(high))
            low, high = (-most, most) if self.symmetric else (low, high)
            found[name] = TensorData(lowest=low, highest=high)
        return found
