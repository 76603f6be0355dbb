"""Elements of tensors as files hold them: packed, little-endian bytes, and arrays of one element per place.

    int4, uint4, float4     2 per byte, the first in the low half
    int2, uint2             4 per byte, the first in the lowest bits
    float6                  4 in 3 bytes, a stream of bits from the lowest
    all others              as in memory on a little-endian machine

Strings are no elements of this kind: each is a field of its own.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from sardonyx.bit_fields import pack_bits, unpack_bits
from sardonyx.dtypes import Array, DataType, bit_width

__all__ = ["pack", "packed_size_bytes", "unpack"]


def packed_size_bytes(dtype: DataType, count: int) -> int:
    """Return bytes that `count` elements of `dtype` take in a file."""
    return (count * bit_width(dtype) + 7) // 8


def unpack(data: bytes | memoryview, dtype: DataType, shape: tuple[int, ...]) -> Array:
    """Return the array of `shape` whose elements `data` holds.

    A view of `data` where elements take whole bytes and any byte is valid.
    A view is read-only where `data` is, and aligned only as `data` is.
    """
    bits = bit_width(dtype)
    if bits < 8:
        codes = np.ascontiguousarray(unpack_bits(np.frombuffer(data, np.uint8), bits)[: math.prod(shape)])
        return codes.view(dtype.numpy).reshape(shape)
    if dtype is DataType.BOOL:  # a byte that is neither 0 nor 1 would make a bool that compares unequal to True
        return np.frombuffer(data, np.uint8).astype(np.bool_).reshape(shape)
    return _little_endian(np.frombuffer(data, dtype.numpy)).reshape(shape)


def pack(array: Array, dtype: DataType) -> bytes:
    """Return the bytes that a file holds for `array`, whose elements are `dtype.numpy`."""
    bits = bit_width(dtype)
    flat = np.ascontiguousarray(array).reshape(-1)
    if bits < 8:
        return pack_bits(flat.view(np.uint8), bits).tobytes()
    return _little_endian(flat).tobytes()


def _little_endian(array: Array) -> Array:
    swapped: Array = array.byteswap() if sys.byteorder == "big" else array
    return swapped
