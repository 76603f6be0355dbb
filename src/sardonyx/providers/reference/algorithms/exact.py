"""Products of small integers on floating-point units, with every result exact.

A float32 holds every integer up to 2^24, so a sum of products stays exact, in any order, as long as the sum of their absolute
values does. Longer sums are cut into pieces that qualify and added as int32, which wraps as the standard's accumulators do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.convolve import convolve
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
from sardonyx.providers.reference.algorithms.window import PlacedWindow

__all__ = ["convolve_integers", "multiply_integers"]

_EXACT_FLOAT32 = 1 << 24
_MOST_SUMS = 1 << 22
"""Elements of a product that are added to at a time: some milliseconds, since a run can only be ended between two additions."""


def multiply_integers(a: Array, b: Array) -> Array:
    """Return the int32 product of a (..., M, K) and b (..., K, N), integer arrays of at most 17 bits; leading axes broadcast."""
    step = _exact_terms(a, b)
    a, b = a.astype(np.float32), b.astype(np.float32)
    if a.ndim != 2 or b.ndim != 2:
        return _products(a, b, step)
    y = np.empty((len(a), b.shape[1]), np.int32)
    rows = max(1, _MOST_SUMS // max(b.shape[1], 1))
    for start in range(0, len(a), rows):
        part = slice(start, start + rows)
        y[part] = _products(a[part], b, step)
    return y


def _products(a: Array, b: Array, step: int) -> Array:
    return _accumulate(a.shape[-1], step, lambda terms: matmul_in_parts(a[..., terms], b[..., terms, :]))


def convolve_integers(x: Array, w: Array, group: int, window: PlacedWindow) -> Array:
    """Return the int32 convolution of x (N, C, *spatial) with w (M, C / group, *kernel), integer arrays of at most 9 bits."""
    taps = max(1, int(np.prod(window.kernel)))
    step = _exact_terms(x, w) // taps
    if step == 0 or (group > 1 and w.shape[1] > step):
        return convolve(x.astype(np.float64), w.astype(np.float64), None, group, window).astype(np.int64).astype(np.int32)
    x, w = x.astype(np.float32), w.astype(np.float32)
    if group > 1:
        return convolve(x, w, None, group, window).astype(np.int32)
    return _accumulate(w.shape[1], step, lambda terms: convolve(x[:, terms], w[:, terms], None, 1, window))


def _exact_terms(a: Array, b: Array) -> int:
    """Return how many products of an element of `a` by one of `b` a float32 sum holds exactly."""
    largest = _magnitude(a) * _magnitude(b)
    return _EXACT_FLOAT32 // max(1, largest)


def _magnitude(a: Array) -> int:
    return max(abs(int(a.min())), abs(int(a.max()))) if a.size else 0


def _accumulate(length: int, step: int, multiply: Callable[[slice], Array]) -> Array:
    """Return the int32 sum of `multiply(terms)` over slices of at most `step` terms that cover `length`."""
    total = multiply(slice(0, step)).astype(np.int32)
    for start in range(step, length, step):
        total += multiply(slice(start, start + step)).astype(np.int32)
    return total
