"""Conversion between float16 and float32 by integer arithmetic: NumPy converts one element at a time.

float16   s eeeee mmmmmmmmmm                         exponent biased by 15
float32   s eeeeeeee mmmmmmmmmm 0000000000000        exponent biased by 127
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array

__all__ = ["from_half", "to_half"]

_BLOCK_ELEMENTS = 65_536
"""Elements per block: the buffers stay in a second-level cache."""
_FEW = 1024
"""Arrays up to this many elements are converted by NumPy."""

_SIGN_AND_MAGNITUDE = np.int32(0x8FFFE000 - (1 << 32))
"""Where a float16's bits lie after its sign-extended 32 bits were shifted to the left by 13."""
_REBIAS = np.float32(2.0**112)
"""2^(127 - 15): what the exponent of such a number lacks; of a subnormal one, too."""
_NOT_FINITE = np.float32(2.0**16)
"""What an infinity or NaN becomes, with mantissa 0; finite numbers are less."""

_SMALLEST_NORMAL = 113 << 23
"""The bits of 2^-14 as a float32."""
_ROUND = np.uint32((1 << 32) - _SMALLEST_NORMAL + 0xFFF)
"""Counts magnitudes from the smallest normal number, and adds what rounds 13 bits away, ties down."""
_RANGE = 0x7800
"""From here on such a number, shifted, is no normal float16: it is too large, or too small and wrapped around."""


def from_half(x: Array) -> Array:
    """Return float16 `x` as float32, exactly; NaN stays NaN."""
    if x.size <= _FEW:
        return x.astype(np.float32)
    out = np.empty(x.shape, np.float32)
    source, target = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
    bits = source.view(np.int16)
    for start in range(0, x.size, _BLOCK_ELEMENTS):
        part = slice(start, start + _BLOCK_ELEMENTS)
        block = target[part]
        wide = block.view(np.int32)
        wide[...] = bits[part]
        wide <<= 13
        wide &= _SIGN_AND_MAGNITUDE
        block *= _REBIAS
        if block.max() >= _NOT_FINITE or block.min() <= -_NOT_FINITE:
            block[...] = source[part]
    return out


def to_half(x: Array) -> Array:
    """Return float32 `x` rounded to float16, ties to even; what is too large becomes infinite."""
    if x.size <= _FEW:
        return x.astype(np.float16)
    out = np.empty(x.shape, np.float16)
    source, target = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
    magnitude, other = np.empty((2, min(x.size, _BLOCK_ELEMENTS)), np.uint32)
    sign = np.empty(len(other), np.uint16)
    for start in range(0, x.size, _BLOCK_ELEMENTS):
        part = slice(start, start + _BLOCK_ELEMENTS)
        count = len(source[part])
        _round_block(source[part], target[part], magnitude[:count], other[:count], sign[:count])
    return out


def _round_block(x: Array, out: Array, magnitude: Array, other: Array, sign: Array) -> None:
    """Fill `out`; the last three are room to work in."""
    bits, result = x.view(np.uint32), out.view(np.uint16)
    np.bitwise_and(bits, np.uint32(0x7FFFFFFF), out=magnitude)
    np.right_shift(magnitude, np.uint32(13), out=other)
    other &= np.uint32(1)
    magnitude += other
    magnitude += _ROUND
    magnitude >>= np.uint32(13)
    np.right_shift(bits, np.uint32(16), out=other)
    sign[...] = other
    sign &= np.uint16(0x8000)
    result[...] = magnitude
    result += np.uint16(0x400)
    result |= sign
    if magnitude.max() >= _RANGE:
        odd = np.flatnonzero(magnitude >= _RANGE)
        out[odd] = x[odd]
