"""How the values of a tensor are spread, for the scales of float8: a histogram of both signs, its mean and standard deviation."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["SCENARIOS", "SignedHistogram"]

SCENARIOS = ("same", "p3")
"""What is spread as float8 is: the values themselves, or their cube roots."""
_MOST_BINS = 1 << 16


class SignedHistogram:
    """How often values occur, in bins of one width around 0, and the extremes."""

    def __init__(self, bins: int) -> None:
        """Begin empty; `bins`, or one more for an even number, reach the first values that are not all 0, on both sides."""
        self._bins, self._reach = bins + bins % 2, 0.0
        self.counts = np.zeros(self._bins, np.int64)
        """Values in each bin, from the least on."""
        self.lowest, self.highest = np.inf, -np.inf

    @property
    def edges(self) -> Array:
        """Where bins begin and end, one more than there are."""
        return np.linspace(-self._reach, self._reach, self.counts.size + 1)

    def add(self, array: Array) -> None:
        """Count the values of an array, which are finite."""
        if not array.size:
            return
        values = array.astype(np.float64, copy=False).ravel()
        self.lowest, self.highest = min(self.lowest, float(values.min())), max(self.highest, float(values.max()))
        self._extend(max(-self.lowest, self.highest))
        if self._reach == 0.0:
            self.counts[self.counts.size // 2] += values.size
            return
        self.counts += np.histogram(values, bins=self.counts.size, range=(-self._reach, self._reach))[0]

    def spread(self, scenario: str) -> tuple[Array, Array]:
        """Return the mean and the standard deviation of the middles of the bins, or of their cube roots ("p3"), as float32.

        Raises:
            InvalidArgument: the scenario is none of SCENARIOS.
        """
        if scenario not in SCENARIOS:
            raise InvalidArgument(f"scenario is one of {', '.join(SCENARIOS)}, got {scenario!r}")
        total = self.counts.sum()
        if not total or self._reach == 0.0:
            return np.array(0, np.float32), np.array(0, np.float32)
        middles = (self.edges[:-1] + self.edges[1:]) / 2
        numbers = middles if scenario == "same" else np.cbrt(middles)
        mean = (self.counts * numbers).sum() / total
        variance = (self.counts * (numbers - mean) ** 2).sum() / total
        return np.array(mean, np.float32), np.array(np.sqrt(variance), np.float32)

    def _extend(self, most: float) -> None:
        """Add bins on both sides until they hold `most`; where there would be too many, merge pairs of bins."""
        if most <= self._reach:
            return
        if self._reach == 0.0:
            zeros = int(self.counts.sum())
            self._reach, self.counts = most, np.zeros(self._bins, np.int64)
            self.counts[self._bins // 2] = zeros
            return
        width = 2 * self._reach / self.counts.size
        missing = int(np.ceil((most - self._reach) / width))
        while self.counts.size + 2 * missing > _MOST_BINS:
            self._merge()
            width = 2 * self._reach / self.counts.size
            missing = max(int(np.ceil((most - self._reach) / width)), 0)
        self.counts = np.pad(self.counts, missing)
        self._reach += missing * width

    def _merge(self) -> None:
        """Merge pairs of bins; one is added on each side first where an odd number would remain."""
        if self.counts.size % 4:
            self._reach += 2 * self._reach / self.counts.size
            self.counts = np.pad(self.counts, 1)
        self.counts = self.counts.reshape(-1, 2).sum(1)
