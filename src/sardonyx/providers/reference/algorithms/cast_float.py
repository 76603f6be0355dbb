"""Conversion to the floating-point types of 8 bits and fewer, and to bfloat16."""

from __future__ import annotations

import functools

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork

__all__ = ["NARROW_FLOATS", "convert_narrow"]

_FLOAT8 = {DataType.FLOAT8E4M3FN, DataType.FLOAT8E4M3FNUZ, DataType.FLOAT8E5M2, DataType.FLOAT8E5M2FNUZ}
_WITHOUT_NAN = {DataType.FLOAT4E2M1, DataType.FLOAT6E2M3, DataType.FLOAT6E3M2}

NARROW_FLOATS = {*_FLOAT8, *_WITHOUT_NAN, DataType.FLOAT8E8M0, DataType.BFLOAT16}
"""The types that `convert_narrow` converts to."""

_NO_EXPONENT = 0xFF
"""The bits of float8e8m0 that mean NaN."""
_BIAS = 127
"""The bits of float8e8m0 that mean 2^0."""


def convert_narrow(x: Array, wanted: DataType, *, saturate: bool, round_mode: str) -> Array:
    """Return `x`, of one of NumPy's own types, rounded to `wanted`, ties to even.

    Types of 4 and 6 bits always saturate, and take NaN as ±0, having none. float8 saturates, infinities included, if asked to;
    else what is too large becomes NaN, or infinity where the type has it. float8e8m0 rounds as `round_mode` says. Call it
    with floating-point warnings ignored.
    """
    exact = x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)
    if wanted is DataType.FLOAT8E8M0:
        return _to_exponents(exact, saturate, round_mode)
    if wanted in _FLOAT8 and saturate:
        limit = _largest(wanted)
        exact = np.clip(exact, -limit, limit)
    return np.asarray(exact).astype(wanted.numpy)


@functools.cache
def _largest(wanted: DataType) -> float:
    with without_fork():
        from ml_dtypes import finfo

    return float(finfo(wanted.numpy).max)


_ROUND_UP_FROM = {"up": 0.5, "nearest": 0.75, "down": 1.0}
"""The fraction in [0.5, 1) of x = fraction · 2^e above which (for nearest: from which) 2^e is taken rather than 2^(e-1)."""


def _to_exponents(x: Array, saturate: bool, round_mode: str) -> Array:
    """Return the powers of two that float8e8m0 holds, 2^-127 to 2^127, nearest to |x| as `round_mode` says (ONNX Cast-24).

    Saturating takes 0 to 2^-127 and infinity to 2^127; otherwise what is out of range is NaN. A sign is dropped.
    """
    threshold = _ROUND_UP_FROM.get(round_mode)
    if threshold is None:
        raise InvalidArgument(f"round_mode={round_mode!r}; expected one of {sorted(_ROUND_UP_FROM)}")
    fraction, exponent = np.frexp(np.absolute(x))
    rounds_up = fraction >= threshold if round_mode == "nearest" else fraction > threshold
    bits = np.where(rounds_up, exponent, exponent - 1) + _BIAS
    bits = np.where(x == 0, -1, np.where(np.isinf(x), _NO_EXPONENT, bits))
    if saturate:
        bits = np.clip(bits, 0, _NO_EXPONENT - 1)
    bits = np.where((bits < 0) | (bits > _NO_EXPONENT) | np.isnan(x), _NO_EXPONENT, bits)
    return np.asarray(bits).astype(np.uint8).view(DataType.FLOAT8E8M0.numpy)
