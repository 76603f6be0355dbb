"""Caches of keys and values in narrow types, as GroupQueryAttention of com.microsoft may keep them.

    int8           round(x / scale)                                  float8e4m3fn   x / scale, rounded
    uint8, 4 bit   round(x / scale) + 8, two per byte, the even element in the low half

A float cache passes as it is. Dimension letters: B batch, M heads, C keys, D head size.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.packed_weights import unpack

__all__ = ["CacheFormat", "choose_format"]

_KINDS = ("NONE", "PER_TENSOR", "PER_CHANNEL")


@dataclasses.dataclass(frozen=True, slots=True)
class CacheFormat:
    """How the elements of a cache are stored."""

    dtype: np.dtype[np.generic]
    """The type of the stored array."""
    bits: int
    """Bits per element; 4 are packed in pairs."""
    scale: Array | None
    """Float32, broadcast to (B, M, C, D); None for a float cache."""

    def encode(self, x: Array) -> Array:
        """Return the stored form of float32 `x` (B, M, C, D)."""
        if self.scale is None:
            return x.astype(self.dtype, copy=False)
        scaled = x / self.scale
        if self.dtype == DataType.FLOAT8E4M3FN.numpy:
            return np.asarray(np.clip(scaled, -448, 448).astype(self.dtype))
        limit = 1 << (self.bits - 1)
        rounded = np.clip(np.rint(scaled), -limit, limit - 1)
        if self.bits == 8:
            return rounded.astype(np.int8)
        codes = (rounded + limit).astype(np.uint8)
        return codes[..., ::2] | codes[..., 1::2] << 4

    def decode(self, stored: Array) -> Array:
        """Return the float32 numbers behind `stored`."""
        if self.scale is None:
            return stored.astype(np.float32, copy=False)
        numbers = unpack(stored, 4, 8) if self.bits == 4 else stored.astype(np.float32)
        numbers *= self.scale
        return numbers


def choose_format(
    name: str, kind: str, bits: int, scale: Array | None, past: Array | None, default: np.dtype[np.generic]
) -> CacheFormat:
    """Return the format that attributes and the type of the past name; `default` is that of a cache without quantization.

    A scale by channel has a number for each head and each of its elements, in this order, in any shape.
    """
    if kind not in _KINDS:
        raise InvalidArgument(f"the quantization of {name} is {kind!r}; expected one of {', '.join(_KINDS)}")
    if kind == "NONE":
        return CacheFormat(default, 32, None)
    known = {(np.dtype(np.int8), 8), (np.dtype(np.uint8), 4), (DataType.FLOAT8E4M3FN.numpy, 8)}
    if past is None or scale is None or (past.dtype, bits or 8) not in known:
        found = "no past" if past is None else str(past.dtype)
        raise InvalidArgument(
            f"{name} is quantized with {found}, {bits} bits and {'no' if scale is None else 'a'} scale; expected a past of int8 or "
            "float8e4m3fn with 8 bits, or of uint8 with 4, and its scale"
        )
    by_channel = (1, past.shape[1], 1, past.shape[3] * 8 // (bits or 8)) if past.ndim == 4 else (0,)
    if scale.size not in (1, math.prod(by_channel)):
        raise InvalidArgument(
            f"the scale of {name} has shape {scale.shape}; the past {past.shape} makes it one element, or those of {by_channel}"
        )
    wide = scale.astype(np.float32)
    return CacheFormat(past.dtype, bits or 8, wide.reshape(() if scale.size == 1 else by_channel))
