"""Weights of 2 to 8 bits, packed along their last axis with the low bits first, as numbers of float32.

Of 2, 4 and 8 bits a byte holds 8 / bits numbers; a table turns each byte into all of them at once: unpacking is one look-up.
"""

from __future__ import annotations

import functools

import numpy as np

from sardonyx.bit_fields import unpack_bits
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["BITS", "WIDTHS", "unpack"]

BITS = (2, 4, 8)
"""The widths that fill bytes."""
WIDTHS = range(2, 9)
"""The widths that `unpack` takes."""


def unpack(packed: Array, bits: int, offset: int = 0) -> Array:
    """Return the numbers of uint8 `packed`, minus `offset`, as a new float32 array whose last axis is 8 / bits times as long."""
    if bits not in WIDTHS:
        raise InvalidArgument(f"bits is {bits}; expected {WIDTHS[0]} to {WIDTHS[-1]}")
    if bits not in BITS:
        return unpack_bits(packed, bits).astype(np.float32) - np.float32(offset)
    table = _table(bits, offset)
    per_byte = 8 // bits
    if packed.size == 0:
        return np.zeros((*packed.shape[:-1], packed.shape[-1] * per_byte), np.float32)
    return np.take(table, packed, mode="clip").view(np.float32)


@functools.cache
def _table(bits: int, offset: int) -> Array:
    """Return, by byte, its numbers, as one element of 4, 8 or 16 bytes."""
    shifts = np.arange(0, 8, bits)
    numbers = (np.arange(256)[:, None] >> shifts) & ((1 << bits) - 1)
    element = {1: np.float32, 2: np.complex64, 4: np.complex128}[len(shifts)]
    return (numbers - offset).astype(np.float32).view(element).reshape(256)
