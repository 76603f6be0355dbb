"""Rows of weights in the block formats of ggml, which operators of com.microsoft name by their number there, as float32.

    block         one scale of float16, or more, and the numbers of 32, 64 or 256 weights, low bits first
    row           whole blocks, one after another
    format        its number of weights in a block, its bytes, and a function: bytes (blocks, bytes) -> weights (blocks, weights)

Source: the formats' definitions in ggml's ggml-common.h; numbers of formats are those of its `enum ggml_type`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import ml_dtypes
import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.errors import NotImplemented as NotSupported
from sardonyx.providers.reference.algorithms.packed_grids import points

__all__ = ["FORMATS", "PackedFormat", "find_format", "row_bytes", "unpack_rows"]


@dataclasses.dataclass(frozen=True, slots=True)
class PackedFormat:
    """How weights of a row are packed."""

    name: str
    """What ggml calls it."""
    block: int
    """How many weights share a block."""
    block_bytes: int
    """How many bytes a block has."""
    unpack: Callable[[Array], Array]
    """Takes uint8 (blocks, block_bytes) and gives float32 (blocks, block)."""


def find_format(number: int) -> PackedFormat:
    """Return the format of a number; raises NotImplemented where it is not known."""
    found = FORMATS.get(number)
    if found is None:
        known = ", ".join(f"{key} ({item.name})" for key, item in FORMATS.items())
        raise NotSupported(f"packed_type is {number}; known are {known}")
    return found


def row_bytes(number: int, K: int) -> int:
    """Return how many bytes a row of K weights has; raises InvalidArgument where these are no whole blocks."""
    found = find_format(number)
    if K <= 0 or K % found.block:
        raise InvalidArgument(f"K is {K}; a row of {found.name} has a multiple of {found.block} weights")
    return K // found.block * found.block_bytes


def unpack_rows(number: int, rows: Array) -> Array:
    """Return the weights, float32 (N, K), of uint8 rows (N, bytes) that are whole blocks."""
    found = find_format(number)
    K = rows.shape[1] // found.block_bytes * found.block
    if not rows.size:
        return np.zeros((len(rows), K), np.float32)
    blocks = np.ascontiguousarray(rows).reshape(-1, found.block_bytes)
    return found.unpack(blocks).astype(np.float32, copy=False).reshape(len(rows), K)


def _halves(blocks: Array, start: int) -> Array:
    """Return the float16 at a place of each block, as float32 (blocks, 1)."""
    return np.ascontiguousarray(blocks[:, start : start + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Array) -> Array:
    """Return the low halves of bytes, then the high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def _bits(packed: Array, count: int) -> Array:
    """Return the first `count` bits of 4 bytes, low bits first, as (blocks, count)."""
    return np.unpackbits(packed, axis=-1, count=count, bitorder="little")


def _floats(dtype: str | type) -> Callable[[Array], Array]:
    def unpack(blocks: Array) -> Array:
        return blocks.view(dtype).astype(np.float32)

    return unpack


def _q4_0(blocks: Array) -> Array:
    return (_nibbles(blocks[:, 2:]).astype(np.float32) - 8) * _halves(blocks, 0)


def _q5_0(blocks: Array) -> Array:
    high = _bits(blocks[:, 2:6], 32)
    weights: Array = ((_nibbles(blocks[:, 6:]) | high << 4).astype(np.float32) - 16) * _halves(blocks, 0)
    return weights


def _q8_0(blocks: Array) -> Array:
    weights: Array = blocks[:, 2:].view(np.int8).astype(np.float32) * _halves(blocks, 0)
    return weights


def _q5_k(blocks: Array) -> Array:
    """Weights of 5 bits in 8 groups of 32, each with a scale and a minimum of 6 bits."""
    scales, minima = _scales_and_minima(blocks[:, 4:16])
    groups = _nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    high = (blocks[:, 16:48, None] >> np.arange(8, dtype=np.uint8) & 1).transpose(0, 2, 1)
    numbers = (groups | high << 4).astype(np.float32)
    scale, least = (_halves(blocks, start) * part for start, part in ((0, scales), (2, minima)))
    weights: Array = scale[:, :, None] * numbers - least[:, :, None]
    return weights.reshape(len(blocks), -1)


def _scales_and_minima(packed: Array) -> tuple[Array, Array]:
    """Return 8 scales and 8 minima of 6 bits from 12 bytes: the last four have their upper two bits above the first four's."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=1)
    minima = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _q6_k(blocks: Array) -> Array:
    """Weights of 6 bits in 16 groups of 16, each with a scale of 8 bits."""
    low = blocks[:, :128].reshape(-1, 2, 64)
    high = blocks[:, 128:192].reshape(-1, 2, 32)
    four = np.stack([low[:, :, :32] & 15, low[:, :, 32:] & 15, low[:, :, :32] >> 4, low[:, :, 32:] >> 4], axis=2)
    two = high[:, :, None, :] >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    numbers = (four | two << 4).astype(np.float32) - 32
    scales = _halves(blocks, 208) * blocks[:, 192:208].view(np.int8)
    weights: Array = numbers.reshape(-1, 16, 16) * scales[:, :, None]
    return weights.reshape(len(blocks), -1)


_CURVE = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
"""What the 16 numbers of IQ4_NL and IQ4_XS stand for."""


def _iq4_nl(blocks: Array) -> Array:
    return _CURVE[_nibbles(blocks[:, 2:])] * _halves(blocks, 0)


def _iq4_xs(blocks: Array) -> Array:
    """Weights of 4 bits in 8 groups of 32, each with a scale of 6 bits around 32."""
    upper = np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> np.arange(0, 16, 2) & 3
    lower = np.stack([blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4], axis=2).reshape(-1, 8)
    scales = _halves(blocks, 0) * ((lower | upper << 4).astype(np.float32) - 32)
    numbers = _CURVE[_nibbles(blocks[:, 8:].reshape(-1, 8, 16))]
    weights: Array = scales[:, :, None] * numbers
    return weights.reshape(len(blocks), -1)


def _q2_0(blocks: Array) -> Array:
    numbers = blocks[:, 2:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3
    return (numbers.reshape(len(blocks), -1).astype(np.float32) - 1) * _halves(blocks, 0)


def _words(blocks: Array, start: int, stop: int, dtype: str) -> Array:
    return np.ascontiguousarray(blocks[:, start:stop]).view(dtype).astype(np.int64)


def _signs(eight: Array) -> Array:
    """Return -1 for each bit that is set and 1 for others, low bits first, with a further axis of 8."""
    return 1 - 2 * (eight[..., None] >> np.arange(8) & 1).astype(np.float32)


def _even(seven: Array) -> Array:
    """Return 7 bits with an eighth, which makes the number of set bits even."""
    odd = functools.reduce(np.bitwise_xor, [seven >> bit for bit in range(7)]) & 1
    eight: Array = seven | odd << 7
    return eight


def _iq2_xxs(blocks: Array) -> Array:
    """Points of 8 weights in 8 groups of 4; a group has the signs of its points, 7 bits each, and 4 bits of its scale."""
    words = _words(blocks, 2, 66, "<u4").reshape(-1, 8, 2)
    places, rest = words[..., 0, None] >> np.arange(0, 32, 8) & 255, words[..., 1]
    signs = _signs(_even(rest[..., None] >> np.arange(0, 28, 7) & 127))
    return _scaled(blocks, points("IQ2_XXS")[places] * signs, (rest >> 28)[..., None], 0.25)


def _iq2_xs(blocks: Array) -> Array:
    """Points of 8 weights, each a word with its signs; two of them share a scale of 4 bits."""
    words = _words(blocks, 2, 66, "<u2").reshape(-1, 8, 4)
    numbers = points("IQ2_XS")[words & 511] * _signs(_even(words >> 9))
    return _scaled(blocks, numbers, _scales_of_pairs(blocks[:, 66:]), 0.25)


def _iq2_s(blocks: Array) -> Array:
    """Points of 8 weights, the low bytes of their places, their signs, the high bits of their places, the scales of pairs."""
    low, signs = (_words(blocks, start, start + 32, "u1").reshape(-1, 8, 4) for start in (2, 34))
    high = _words(blocks, 66, 74, "u1")[..., None] >> np.arange(0, 8, 2) & 3
    numbers = points("IQ2_S")[low | high << 8] * _signs(signs)
    return _scaled(blocks, numbers, _scales_of_pairs(blocks[:, 74:]), 0.25)


def _iq3_xxs(blocks: Array) -> Array:
    """Points of 4 weights in 8 groups of 8; a group has signs for each 8 weights, 7 bits each, and 4 bits of its scale."""
    places, rest = _words(blocks, 2, 66, "u1"), _words(blocks, 66, 98, "<u4")
    signs = _signs(_even(rest[..., None] >> np.arange(0, 28, 7) & 127))
    return _scaled(blocks, points("IQ3_XXS")[places].reshape(-1, 8, 4, 8) * signs, (rest >> 28)[..., None], 0.5)


def _scales_of_pairs(packed: Array) -> Array:
    """Return for each of 8 groups of 4 points the scales of 4 bits, (blocks, 8, 4)."""
    return np.stack([packed & 15, packed & 15, packed >> 4, packed >> 4], axis=2).astype(np.int64)


def _scaled(blocks: Array, numbers: Array, scales: Array, factor: float) -> Array:
    """Return numbers (blocks, 8, 4, 8) by the scale of their block, and that of their point, (blocks, 8, 1 or 4)."""
    scale = _halves(blocks, 0)[:, :, None] * (scales.astype(np.float32) + np.float32(0.5)) * np.float32(factor)
    weights: Array = scale[..., None] * numbers
    return weights.reshape(len(blocks), -1)


FORMATS: dict[int, PackedFormat] = {
    0: PackedFormat("F32", 1, 4, _floats("<f4")),
    1: PackedFormat("F16", 1, 2, _floats("<f2")),
    2: PackedFormat("Q4_0", 32, 18, _q4_0),
    6: PackedFormat("Q5_0", 32, 22, _q5_0),
    8: PackedFormat("Q8_0", 32, 34, _q8_0),
    13: PackedFormat("Q5_K", 256, 176, _q5_k),
    14: PackedFormat("Q6_K", 256, 210, _q6_k),
    16: PackedFormat("IQ2_XXS", 256, 66, _iq2_xxs),
    17: PackedFormat("IQ2_XS", 256, 74, _iq2_xs),
    18: PackedFormat("IQ3_XXS", 256, 98, _iq3_xxs),
    20: PackedFormat("IQ4_NL", 32, 18, _iq4_nl),
    22: PackedFormat("IQ2_S", 256, 82, _iq2_s),
    23: PackedFormat("IQ4_XS", 256, 136, _iq4_xs),
    30: PackedFormat("BF16", 1, 2, _floats(ml_dtypes.bfloat16)),
    42: PackedFormat("Q2_0", 64, 18, _q2_0),
}
"""Number of a format -> the format."""
