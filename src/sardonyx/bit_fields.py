"""Numbers of a few bits in bytes: one behind the other, the first in the lowest bits, also across the ends of bytes."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array

__all__ = ["pack_bits", "unpack_bits"]


def unpack_bits(packed: Array, bits: int) -> Array:
    """Return the numbers of 1 to 8 bits of bytes (…, n), uint8 (…, 8 n // bits)."""
    count = packed.shape[-1] * 8 // bits
    if 8 % bits == 0:
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        fields: Array = packed[..., None] >> shifts & np.uint8((1 << bits) - 1)
        return fields.reshape(*packed.shape[:-1], count)
    stream = np.unpackbits(packed, axis=-1, bitorder="little")[..., : count * bits]
    numbers: Array = np.packbits(stream.reshape(*packed.shape[:-1], count, bits), axis=-1, bitorder="little")
    return numbers.reshape(*packed.shape[:-1], count)


def pack_bits(numbers: Array, bits: int) -> Array:
    """Return bytes (…, ceil(n x bits / 8)) that hold the lowest 1 to 8 bits of uint8 numbers (…, n)."""
    count = numbers.shape[-1]
    if 8 % bits == 0:
        places = 8 // bits
        padded = np.zeros((*numbers.shape[:-1], -(-count // places) * places), np.uint8)
        padded[..., :count] = numbers & np.uint8((1 << bits) - 1)
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        fields = padded.reshape(*numbers.shape[:-1], padded.shape[-1] // places, places)
        return np.asarray(np.bitwise_or.reduce(fields << shifts, axis=-1)).astype(np.uint8, copy=False)
    stream = np.unpackbits(numbers[..., None], axis=-1, bitorder="little")[..., :bits]
    return np.packbits(stream.reshape(*numbers.shape[:-1], count * bits), axis=-1, bitorder="little")
