"""RotaryEmbedding and MRotaryEmbedding of com.microsoft: rotary positions looked up in caches of cosines and sines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.algorithms.rotary import look_up, rotate
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["microsoft_rotary_embedding", "multimodal_rotary_embedding"]

_MICROSOFT = "com.microsoft"


@kernel("RotaryEmbedding", domain=_MICROSOFT)
def microsoft_rotary_embedding(
    call: Call,
    x: Array,
    position_ids: Array,
    cos_cache: Array,
    sin_cache: Array,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Array:
    """Rotate X, (B, S, N x D) or (B, N, S, D), by position; the result has its shape and type.

    `position_ids` (1,) is the position of the first step, or (B, S). The caches are (positions, rotated / 2). Source:
    com.microsoft RotaryEmbedding, whose `scale` and `is_packed_batching` change nothing on a CPU.
    """
    tokens = _split_tokens(x, cos_cache, sin_cache, num_heads, rotary_embedding_dim)
    positions = _read_positions(position_ids, *tokens.shape[:2])
    cos, sin = (look_up(cache, positions, tokens.dtype) for cache in (cos_cache, sin_cache))
    return _rotate_tokens(x, tokens, cos, sin, interleaved)


@kernel("MRotaryEmbedding", domain=_MICROSOFT)
def multimodal_rotary_embedding(
    call: Call,
    x: Array,
    position_ids: Array,
    cos_cache: Array,
    sin_cache: Array,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    mrope_layout: int = 0,
    mrope_section: Sequence[int],
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Array:
    """Rotate as RotaryEmbedding does, by positions (3, B, S) in time, height and width, each of which serves some of the angles.

    `mrope_section` counts the angles of each; `mrope_layout` 0 puts them one behind the other, 1 alternates them by threes.
    Source: com.microsoft MRotaryEmbedding.
    """
    tokens = _split_tokens(x, cos_cache, sin_cache, num_heads, rotary_embedding_dim)
    half = cos_cache.shape[1]
    if position_ids.shape != (3, *tokens.shape[:2]):
        raise InvalidArgument(f"position_ids has shape {position_ids.shape}; expected {(3, *tokens.shape[:2])}")
    stream = _choose_streams(tuple(mrope_section), mrope_layout, half)
    cos, sin = (_select(look_up(cache, position_ids, tokens.dtype), stream) for cache in (cos_cache, sin_cache))
    return _rotate_tokens(x, tokens, cos, sin, interleaved)


def _split_tokens(x: Array, cos_cache: Array, sin_cache: Array, num_heads: int, rotated: int) -> Array:
    """Return X as (B, S, N, D) in the computing type, checked against the caches."""
    if x.ndim not in (3, 4) or cos_cache.ndim != 2 or cos_cache.shape != sin_cache.shape:
        raise InvalidArgument(
            f"input has shape {x.shape} and the caches {cos_cache.shape} and {sin_cache.shape}; expected rank 3 or 4 "
            "and (positions, half)"
        )
    half = cos_cache.shape[1]
    tokens = x.swapaxes(1, 2) if x.ndim == 4 else x
    if x.ndim == 3:
        heads = num_heads if rotated else x.shape[2] // max(2 * half, 1)
        if heads < 1 or x.shape[2] % heads:
            raise InvalidArgument(f"input has shape {x.shape}; its last dimension does not split into {heads} heads")
        tokens = x.reshape(*x.shape[:2], heads, x.shape[2] // heads)
    if 2 * half > tokens.shape[3] or rotated not in (0, 2 * half):
        raise InvalidArgument(
            f"the caches hold {half} angles, for {2 * half} elements; the head size is {tokens.shape[3]} and rotary_embedding_dim "
            f"{rotated}"
        )
    return widen(tokens)


def _rotate_tokens(x: Array, tokens: Array, cos: Array, sin: Array, interleaved: int) -> Array:
    """Return the rotated tokens in the shape and type of x; cos and sin are (B, S, half)."""
    result: Array = rotate(tokens, cos[:, :, None], sin[:, :, None], interleaved=bool(interleaved)).astype(x.dtype, copy=False)
    return result.swapaxes(1, 2) if x.ndim == 4 else result.reshape(x.shape)


def _read_positions(position_ids: Array, B: int, S: int) -> Array:
    """Return positions (B, S), or (1, S) where they are the same for the whole batch."""
    if position_ids.size == 1 and position_ids.shape != (B, S):
        return position_ids.reshape(1, 1) + np.arange(S)
    if position_ids.shape != (B, S):
        raise InvalidArgument(f"position_ids has shape {position_ids.shape}; expected (1,) or {(B, S)}")
    return position_ids


def _choose_streams(sections: tuple[int, ...], layout: int, half: int) -> Array:
    """Return for each angle the position stream that it follows: 0 time, 1 height, 2 width."""
    if len(sections) != 3 or min(sections) < 0 or sum(sections) != half or layout not in (0, 1):
        raise InvalidArgument(
            f"mrope_section is {sections} and mrope_layout {layout}; expected three counts that sum to {half}, and 0 or 1"
        )
    if layout == 0:
        return np.repeat(np.arange(3), sections)
    stream = np.zeros(half, np.int64)
    for offset in (1, 2):
        stream[offset : 3 * sections[offset] : 3] = offset
    return stream


def _select(angles: Array, stream: Array) -> Array:
    """Select from (3, B, S, half) the angles (B, S, half) of the streams that they follow."""
    chosen: Array = np.take_along_axis(angles, stream[None, None, None], axis=0)[0]
    return chosen
