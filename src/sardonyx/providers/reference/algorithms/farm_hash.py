"""Fingerprint64 of FarmHash, for many keys of one length at a time.

Source: FarmHash's farmhashna, Geoff Pike 2014.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array

__all__ = ["fingerprint64"]

_WORD = np.uint64
_K0, _K1, _K2 = _WORD(0xC3A5C85C97CB3127), _WORD(0xB492B66FBE98F273), _WORD(0x9AE16A3B2F90404F)
_BLOCK = 64


def fingerprint64(keys: Array) -> Array:
    """Return the fingerprints (count,) uint64 of keys (count, bytes) uint8."""
    length = keys.shape[1]
    with np.errstate(over="ignore"):
        if length > _BLOCK:
            return _long(keys, length)
        if length > 32:
            return _upto_64(keys, length)
        if length > 16:
            return _upto_32(keys, length)
        return _upto_16(keys, length)


def _fetch(keys: Array, place: int, size: int = 8) -> Array:
    """Return little-endian words that begin at a byte of each key."""
    found = np.zeros(len(keys), _WORD)
    for byte in range(size):
        found |= keys[:, place + byte].astype(_WORD) << _WORD(8 * byte)
    return found


def _rotate(word: Array, bits: int) -> Array:
    result: Array = (word >> _WORD(bits)) | (word << _WORD(64 - bits))
    return result


def _shift_mix(word: Array) -> Array:
    result: Array = word ^ (word >> _WORD(47))
    return result


def _mix(left: Array, right: Array, factor: np.uint64 | Array) -> Array:
    """Return the hash of two words."""
    first = _shift_mix((left ^ right) * factor)
    result: Array = _shift_mix((right ^ first) * factor) * factor
    return result


def _upto_16(keys: Array, length: int) -> Array:
    factor = _K2 + _WORD(2 * length)
    if length >= 8:
        a, b = _fetch(keys, 0) + _K2, _fetch(keys, length - 8)
        return _mix(_rotate(b, 37) * factor + a, (_rotate(a, 25) + b) * factor, factor)
    if length >= 4:
        return _mix(_WORD(length) + (_fetch(keys, 0, 4) << _WORD(3)), _fetch(keys, length - 4, 4), factor)
    if length == 0:
        return np.full(len(keys), _K2)
    first, middle, last = (keys[:, place].astype(_WORD) for place in (0, length >> 1, length - 1))
    low, high = first + (middle << _WORD(8)), _WORD(length) + (last << _WORD(2))
    result: Array = _shift_mix(low * _K2 ^ high * _K0) * _K2
    return result


def _upto_32(keys: Array, length: int) -> Array:
    factor = _K2 + _WORD(2 * length)
    a, b = _fetch(keys, 0) * _K1, _fetch(keys, 8)
    c, d = _fetch(keys, length - 8) * factor, _fetch(keys, length - 16) * _K2
    return _mix(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, factor)


def _upto_64(keys: Array, length: int) -> Array:
    factor = _K2 + _WORD(2 * length)
    a, b = _fetch(keys, 0) * _K2, _fetch(keys, 8)
    c, d = _fetch(keys, length - 8) * factor, _fetch(keys, length - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _mix(y, a + _rotate(b + _K2, 18) + c, factor)
    e, f = _fetch(keys, 16) * factor, _fetch(keys, 24)
    g, h = (y + _fetch(keys, length - 32)) * factor, (z + _fetch(keys, length - 24)) * factor
    return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, factor)


def _weak(keys: Array, place: int, a: Array, b: Array) -> tuple[Array, Array]:
    """Return two words of 32 bytes and two seeds."""
    first, second, third, fourth = (_fetch(keys, place + 8 * word) for word in range(4))
    a = a + first
    b = _rotate(b + a + fourth, 21)
    start = a
    a = a + second + third
    return a + fourth, b + _rotate(a, 44) + start


def _long(keys: Array, length: int) -> Array:
    seed = np.full(len(keys), _WORD(81))
    x, y = seed * _K2 + _fetch(keys, 0), seed * _K1 + _WORD(113)
    z = _shift_mix(y * _K2 + _WORD(113)) * _K2
    v = w = (np.zeros(len(keys), _WORD), np.zeros(len(keys), _WORD))
    rest = (length - 1) % _BLOCK
    for place in range(0, length - 1 - rest, _BLOCK):
        x = _rotate(x + y + v[0] + _fetch(keys, place + 8), 37) * _K1
        y = _rotate(y + v[1] + _fetch(keys, place + 48), 42) * _K1
        x, y, z = x ^ w[1], y + v[0] + _fetch(keys, place + 40), _rotate(z + w[0], 33) * _K1
        v, w = _weak(keys, place, v[1] * _K1, x + w[0]), _weak(keys, place + 32, z + w[1], y + _fetch(keys, place + 16))
        x, z = z, x
    factor, place = _K1 + ((z & _WORD(0xFF)) << _WORD(1)), length - _BLOCK
    w = (w[0] + _WORD(rest), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _rotate(x + y + v[0] + _fetch(keys, place + 8), 37) * factor
    y = _rotate(y + v[1] + _fetch(keys, place + 48), 42) * factor
    x, y = x ^ (w[1] * _WORD(9)), y + v[0] * _WORD(9) + _fetch(keys, place + 40)
    z = _rotate(z + w[0], 33) * factor
    v, w = _weak(keys, place, v[1] * factor, x + w[0]), _weak(keys, place + 32, z + w[1], y + _fetch(keys, place + 16))
    x, z = z, x
    return _mix(_mix(v[0], w[0], factor) + _shift_mix(y) * _K0 + z, _mix(v[1], w[1], factor) + x, factor)
