"""The rotation of rotary position embeddings (RoPE, arXiv:2104.09864), as RotaryEmbedding and GroupQueryAttention use it."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["look_up", "rotate"]


def rotate(x: Array, cos: Array, sin: Array, *, interleaved: bool) -> Array:
    """Rotate pairs of the last axis of `x` by the angles of `cos` and `sin`, whose last axis holds one angle per pair.

    Pairs are (k, k + half), or (2k, 2k + 1) where `interleaved`; elements behind the pairs pass unchanged. `cos` and `sin`
    broadcast to `x` on the axes before. The result is a new array of the type of `x`, float32 or float64.
    """
    half = cos.shape[-1]
    if interleaved:
        first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    else:
        first, second = slice(0, half), slice(half, 2 * half)
    out = np.empty(x.shape, x.dtype)
    a, b = x[..., first], x[..., second]
    np.multiply(a, cos, out=out[..., first])
    out[..., first] -= b * sin
    np.multiply(b, cos, out=out[..., second])
    out[..., second] += a * sin
    out[..., 2 * half :] = x[..., 2 * half :]
    return out


def look_up(cache: Array, positions: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return rows of `cache` (positions, half) at `positions`, in `dtype`; raises InvalidArgument for a position outside it."""
    if positions.size and (positions.min() < 0 or positions.max() >= len(cache)):
        raise InvalidArgument(
            f"position ids run from {positions.min()} to {positions.max()}, but the cos and sin caches hold positions 0 to "
            f"{len(cache) - 1}"
        )
    return cache[positions].astype(dtype, copy=False)
