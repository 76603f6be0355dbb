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

    Floats are computed in the wider compute type of the two, integers of integer powers modulo 2^n (a negative power is the
    reciprocal, truncated, and that of 0 the least integer), and integers of fractional powers in float64, truncated. Call it with
    floating-point warnings ignored.
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
    if y.dtype.kind not in "iu":
        return combine(np.power, x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    negative = y < 0
    if not negative.any():
        return _whole_power(x, y)
    whole = _whole_power(x, np.where(negative, y.dtype.type(0), y))
    reciprocal = combine(_reciprocal, x.astype(np.int64), y.astype(np.int64)).astype(x.dtype)
    return np.where(negative, np.where(x == 0, x.dtype.type(np.iinfo(x.dtype).min), reciprocal), whole)


def _whole_power(x: Array, y: Array) -> Array:
    if x.dtype == y.dtype:
        return combine(np.power, x, y)
    exponent = y.astype(np.int64) & np.iinfo(np.int64).max
    return combine(np.power, x.astype(np.int64), exponent).astype(x.dtype)


def _reciprocal(x: Array, y: Array) -> Array:
    """Return x to a negative power, truncated."""
    sign = np.where(y % 2 == 0, 1, -1)
    return np.where(x == 1, 1, np.where(x == -1, sign, 0))
