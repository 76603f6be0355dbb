"""Histograms of tensors that grow with their values, and the ranges that follow from them."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["Histogram", "smooth_distribution"]

_LEAST_LEVELS = 2
_MOST_BINS = 1 << 16


class Histogram:
    """How often magnitudes occur, in bins of one width from 0 on, and the extremes."""

    def __init__(self, bins: int) -> None:
        """Begin empty; the first values that are not all 0 set the width, of which `bins` reach the largest."""
        self._bins, self._width = bins, 0.0
        self.counts = np.zeros(bins, np.int64)
        """Values in each bin."""
        self.lowest, self.highest = np.inf, -np.inf

    def add(self, array: Array) -> None:
        """Count the values of an array, which are finite."""
        if not array.size:
            return
        values = np.abs(array.astype(np.float64, copy=False)).ravel()
        self.lowest, self.highest = min(self.lowest, float(array.min())), max(self.highest, float(array.max()))
        most = float(values.max())
        if most == 0.0:
            self.counts[0] += values.size
            return
        if self._width == 0.0:
            self._width = most / self._bins
        self._reach(most)
        places = np.minimum((values / self._width).astype(np.int64), self.counts.size - 1)
        self.counts += np.bincount(places, minlength=self.counts.size)

    def range_of(self, share: float) -> tuple[Array, Array]:
        """Return the range of the magnitudes that `share` (0 to 1) of all values do not exceed, within the extremes."""
        total = self.counts.sum()
        if not total:
            return self._clipped(0.0)
        reached = np.searchsorted(np.cumsum(self.counts), share * total)
        return self._clipped((min(int(reached), self.counts.size - 1) + 1) * self._width)

    def entropy_range(self, levels: int) -> tuple[Array, Array]:
        """Return the range whose quantization to `levels` differs least from the distribution.

        Of each range the magnitudes, with those beyond in the last bin, are compared with the same in `levels` steps, by the
        Kullback-Leibler divergence. Source: S. Migacz, "8-bit Inference with TensorRT", GTC 2017.
        """
        levels = max(levels // 2, _LEAST_LEVELS)
        if self.counts.size <= levels or not self.counts[1:].any():
            return self._clipped(np.inf)
        sizes = range(levels, self.counts.size + 1)
        best = min(sizes, key=lambda size: _divergence(self.counts, size, levels))
        return self._clipped(best * self._width)

    def _reach(self, most: float) -> None:
        """Add bins until they hold `most`; where there would be too many, merge pairs of bins first."""
        while most > self._width * _MOST_BINS:
            even = self.counts if self.counts.size % 2 == 0 else np.append(self.counts, 0)
            self.counts, self._width = even.reshape(-1, 2).sum(1), 2 * self._width
        missing = int(np.ceil(most / self._width)) - self.counts.size
        if missing > 0:
            self.counts = np.append(self.counts, np.zeros(missing, np.int64))

    def _clipped(self, most: float) -> tuple[Array, Array]:
        if self.lowest > self.highest:
            return np.array(0, np.float32), np.array(0, np.float32)
        return np.array(max(self.lowest, -most), np.float32), np.array(min(self.highest, most), np.float32)


def _divergence(counts: Array, size: int, levels: int) -> float:
    """Return how much is lost when the first `size` bins are written in `levels` steps."""
    kept = counts[:size].astype(np.float64)
    clipped = kept.copy()
    clipped[-1] += counts[size:].sum()
    steps = np.minimum(np.arange(size) * levels // size, levels - 1)
    is_used = kept > 0
    sums = np.bincount(steps, weights=kept, minlength=levels)
    used = np.bincount(steps, weights=is_used.astype(np.float64), minlength=levels)
    spread = np.where(is_used, (sums / np.maximum(used, 1))[steps], 0.0)
    if not spread.sum():
        return float("inf")
    p, q = clipped / clipped.sum(), spread / spread.sum()
    is_counted = (p > 0) & (q > 0)
    lost = p[(p > 0) & (q == 0)].sum()
    return float(np.sum(p[is_counted] * np.log(p[is_counted] / q[is_counted])) + lost * np.log(1e12))


def smooth_distribution(p: Array, eps: float = 0.0001) -> Array | None:
    """Return a distribution without zeros: each becomes `eps`, and the others are that much less in all, in equal shares.

    Args:
        p: counts or shares, none negative.
        eps: what a zero becomes.

    Returns:
        float32 in the shape of `p`; None where all of it is 0.

    Raises:
        InvalidArgument: a share would become 0 or less.
    """
    is_zero = np.asarray(p) == 0
    zeros, others = int(is_zero.sum()), int((~is_zero).sum())
    if not others:
        return None
    smoothed: Array = np.where(is_zero, eps, np.asarray(p, np.float32) - eps * zeros / others).astype(np.float32)
    if (smoothed <= 0).any():
        raise InvalidArgument(f"{zeros} zeros of {eps} each are more than the least of {others} other shares has")
    return smoothed
