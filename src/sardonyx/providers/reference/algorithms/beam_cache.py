"""Buffers of keys and values that former steps wrote and that beams share, as com.microsoft's decoders keep them.

    past_key, past_value   (B, N, P, D), of which the first `used` keys count
    cache_indirection      (B / beams, beams, length): for each beam and each of its past keys the beam of its batch that wrote it

Dimension letters: B batch times beams, N heads, P keys of the buffer, D head size. Source: DecoderMaskedMultiHeadAttention and
MultiHeadAttention of com.microsoft, whose CPU kernels leave keys in their places in the buffer.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["choose_rows", "follow_beams", "used_keys", "write_back"]


def used_keys(past_sequence_length: Array, past: Array, added: int) -> int:
    """Return how many keys of the buffer `past` (B, N, P, D) count, where `added` more go behind them.

    Raises:
        InvalidArgument: the buffer has no space for the new keys.
    """
    if past.ndim != 4 or past_sequence_length.size != 1:
        raise InvalidArgument(
            f"the past has shape {past.shape} and past_sequence_length {past_sequence_length.shape}; expected (B, N, P, D) and one "
            "element"
        )
    used = int(past_sequence_length.reshape(-1)[0])
    if not 0 <= used <= past.shape[2] - added:
        raise InvalidArgument(
            f"past_sequence_length is {used} and {added} keys are new; the shared buffer has space for {past.shape[2]} keys"
        )
    return used


def choose_rows(cache_indirection: Array, rows: int, used: int, beam_width: Array | None = None) -> Array:
    """Return for each of `rows` sequences and each of its keys the row that holds it, (rows, used + 1); the new key is its own.

    Raises:
        InvalidArgument: the shape does not fit the rows, or a beam that is named does not exist.
    """
    beams = cache_indirection.shape[1] if cache_indirection.ndim == 3 else 0
    stated = beams if beam_width is None else int(beam_width.reshape(-1)[0])
    if beams == 0 or stated != beams or cache_indirection.shape[0] * beams != rows or cache_indirection.shape[2] < used:
        raise InvalidArgument(
            f"cache_indirection has shape {cache_indirection.shape} and beam_width is {stated}; expected (batch, beams, "
            f"{used} or more) for {rows} rows"
        )
    chosen = cache_indirection.reshape(rows, cache_indirection.shape[2])[:, :used]
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < beams:
        raise InvalidArgument(f"cache_indirection names beams {chosen.min()} to {chosen.max()}; expected 0 to {beams - 1}")
    own = np.arange(rows)[:, None]
    return np.concatenate([own // beams * beams + chosen, own], axis=1)


def follow_beams(cache: Array, rows: Array) -> Array:
    """Return the keys (B, N, T, D) of each sequence, taken from the rows (B, T) that hold them."""
    return cache[rows[:, None], np.arange(cache.shape[1])[:, None], np.arange(cache.shape[2])]


def write_back(buffer: Array | None, extended: Array) -> Array:
    """Return the buffer (B, N, P, D) with `extended` (B, N, T, D) in place of its first T keys; `extended` where there is none."""
    if buffer is None:
        return extended
    written = buffer.astype(extended.dtype)
    written[:, :, : extended.shape[2]] = extended
    return written
