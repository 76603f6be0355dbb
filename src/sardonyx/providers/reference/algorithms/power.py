"""x to the power y for every pair of numeric types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.broadcast import combine
from sardonyx.providers.reference.algorithms.precision import compute_type, widen

__all__ = ["power"]

_SHORT_CUTS: dict[float, Callable[[Array], Array]] = {
    1.0: np.positive,
    2.0: np.square,
    3.0: lambda x: np.square(x) * x,
}
"""Exponents that multiplication serves better than the general power."""


def power(x: Array, y: Array) -> Array:
    """Return `x` to the power `y`, broadcast together, in the type of `x` (ONNX Pow-15).

    Floats are computed in the wider compute type of the two, integers of non-negative integer powers modulo 2^n, and integers
    of other powers in float64, truncated. Call it with floating-point warnings ignored.
    """
    if x.dtype.kind in "iu":
        return _integer_power(x, y)
    if y.size == 1 and y.ndim <= x.ndim:
        short_cut = _SHORT_CUTS.get(float(y.reshape(-1)[0]))
        if short_cut is not None:
            return np.asarray(short_cut(widen(x))).astype(x.dtype, copy=False)
    wide = np.result_type(compute_type(x.dtype), compute_type(y.dtype))
    result = combine(np.power, x.astype(wide, copy=False), y.astype(wide, copy=False))
    return result.astype(x.dtype, copy=False)


def _integer_power(x: Array, y: Array) -> Array:
    if y.dtype.kind not in "iu" or (y < 0).any():
        return combine(np.power, x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    if x.dtype == y.dtype:
        return combine(np.power, x, y)
    exponent = y.astype(np.int64) & np.iinfo(np.int64).max
    return combine(np.power, x.astype(np.int64), exponent).astype(x.dtype)
