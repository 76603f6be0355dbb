"""Sampling tensors at fractional positions: weighted sums of a few elements around each position."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array

__all__ = ["Tap", "linear_taps", "sample"]

Tap = tuple[Array, Array]
"""For one axis and every position: the index of an element, inside the axis, and its weight."""


def sample(x: Array, taps: Sequence[Sequence[Tap]]) -> Array:
    """Return the weighted sums (C, P) of x (C, *sizes): `taps` names, per axis, the elements that each of P positions blends.

    The weight of an element of x is the product of its taps' weights; one without weight counts for nothing, even if it is not
    finite. O(C * P * taps of all axes multiplied).
    """
    sizes = x.shape[1:]
    is_finite = bool(np.isfinite(x).all())
    flat = x.reshape(x.shape[0], -1)
    total: Array | None = None
    for choice in itertools.product(*taps):
        index = choice[0][0]
        weight = choice[0][1]
        for size, (further, factor) in zip(sizes[1:], choice[1:], strict=True):
            index = index * size + further
            weight = weight * factor
        term = np.take(flat, index, axis=1)
        if not is_finite:
            term[:, weight == 0] = 0
        term *= weight
        if total is None:
            total = term
        else:
            total += term
    assert total is not None, "every axis has a tap"
    return total


def linear_taps(position: Array, size: int) -> list[Tap]:
    """Return the two neighbours of each fractional position on an axis of `size` >= 1; those outside the axis weigh nothing."""
    below = np.floor(position)
    taps = []
    for corner, weight in ((below, 1 - (position - below)), (below + 1, position - below)):
        inside = (corner >= 0) & (corner <= size - 1)
        index = np.where(inside, corner, 0).astype(np.intp)
        taps.append((index, np.where(inside, weight, 0).astype(position.dtype)))
    return taps
