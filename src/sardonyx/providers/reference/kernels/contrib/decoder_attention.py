"""DecoderMaskedMultiHeadAttention and DecoderMaskedSelfAttention of com.microsoft: attention of one new token per sequence.

Dimension letters: B batch times beams, N heads, T keys, P past keys, D head size. Caches lie as they do elsewhere, (B, N, T, D);
ONNX Runtime's CUDA kernels reorder the keys inside a buffer that past and present share, its CPU kernels do not.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.algorithms.scaled_dot_product import ScoreOutput, Scoring, attend, expect_broadcast
from sardonyx.providers.reference.kernels.contrib.attention import merge_heads, split_heads
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["decoder_masked_multi_head_attention", "decoder_masked_self_attention"]

_MICROSOFT = "com.microsoft"


@kernel("DecoderMaskedMultiHeadAttention", domain=_MICROSOFT)
def decoder_masked_multi_head_attention(
    call: Call,
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    mask_index: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    past_sequence_length: Array | None = None,
    beam_width: Array | None = None,
    cache_indirection: Array | None = None,
    bias: Array | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    output_qk: int = 0,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
) -> tuple[Array, ...]:
    """Attend with query (B, 1, hidden) or packed Q, K and V; return Y (B, 1, hidden of V), present_key, present_value and weights.

    Keys (B, 1, hidden) are put behind the past; keys (B, N, T, D) are those of an encoder, and no present is made of them.
    `mask_index` (B, T) hides where it is 0. `cache_indirection` (B / beams, beams, length) tells of which beam of its batch each
    past token of a beam is. The fourth output is the softmax of the scores. Source: com.microsoft DecoderMaskedMultiHeadAttention.
    """
    if query.ndim != 3 or query.shape[1] != 1:
        raise InvalidArgument(f"query has shape {query.shape}; expected (B, 1, hidden)")
    if key is not None and value is not None and key.ndim == 4:
        q = split_heads(_with_bias(query, bias), num_heads)
        y, weights = _attend(widen(q), widen(key), widen(value), mask_index, attention_bias, mask_filter_value, scale)
        return _outputs(query, y, key, value, weights)
    q, k, v = (split_heads(part, num_heads) for part in _project(query, key, value, bias))
    used = _used_length(past_key, past_sequence_length, past_present_share_buffer)
    keys, values = _extend(past_key, k, used), _extend(past_value, v, used)
    read_keys, read_values = keys, values
    if cache_indirection is not None:
        rows = _beam_rows(cache_indirection, len(keys), used, beam_width)
        read_keys, read_values = _follow(keys, rows), _follow(values, rows)
    y, weights = _attend(widen(q), widen(read_keys), widen(read_values), mask_index, attention_bias, mask_filter_value, scale)
    if past_present_share_buffer:
        keys, values = _write_back(past_key, keys), _write_back(past_value, values)
    return _outputs(query, y, keys, values, weights)


@kernel("DecoderMaskedSelfAttention", domain=_MICROSOFT)
def decoder_masked_self_attention(
    call: Call,
    x: Array,
    weights: Array,
    bias: Array,
    mask_index: Array | None,
    past: Array,
    attention_bias: Array | None,
    past_sequence_length: Array | None = None,
    beam_width: Array | None = None,
    cache_indirection: Array | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
) -> tuple[Array, ...]:
    """Project X (B, 1, I) by weights (I, Q + K + V), attend, and return Y (B, 1, V) and present (2, B, N, P + 1, D).

    The rest is as in DecoderMaskedMultiHeadAttention. Source: com.microsoft DecoderMaskedSelfAttention.
    """
    if do_rotary:
        raise InvalidArgument("do_rotary is 1; ONNX Runtime's kernel for it rotates nothing, so its meaning is not known")
    if x.ndim != 3 or weights.ndim != 2 or weights.shape[0] != x.shape[2] or past.ndim != 5:
        raise InvalidArgument(
            f"input has shape {x.shape}, weights {weights.shape} and past {past.shape}; expected (B, 1, I), (I, Q + K + V) and "
            "(2, B, N, P, D)"
        )
    projected = np.matmul(widen(x), widen(weights)) + widen(bias)
    y, keys, values, _ = decoder_masked_multi_head_attention(
        call,
        projected,
        None,
        None,
        mask_index,
        attention_bias,
        past[0],
        past[1],
        past_sequence_length,
        beam_width,
        cache_indirection,
        None,
        mask_filter_value=mask_filter_value,
        num_heads=num_heads,
        past_present_share_buffer=past_present_share_buffer,
        scale=scale,
    )
    return y.astype(x.dtype, copy=False), np.stack([keys, values]).astype(x.dtype, copy=False)


def _with_bias(query: Array, bias: Array | None) -> Array:
    """Return the query plus its part of the bias, in its computing type."""
    return widen(query) if bias is None else widen(query) + widen(bias[: query.shape[2]])


def _project(query: Array, key: Array | None, value: Array | None, bias: Array | None) -> tuple[Array, Array, Array]:
    """Return Q, K and V (B, 1, hidden), from three inputs or one, each plus its part of the bias."""
    if key is None or value is None:
        hidden = query.shape[2] // 3
        whole = widen(query) if bias is None else widen(query) + widen(bias)
        q, k, v = whole[..., :hidden], whole[..., hidden : 2 * hidden], whole[..., 2 * hidden :]
        return q, k, v
    parts = [widen(part) for part in (query, key, value)]
    if bias is not None:
        starts = np.cumsum([query.shape[2], key.shape[2]])
        parts = [part + piece for part, piece in zip(parts, np.split(widen(bias), starts), strict=True)]
    return parts[0], parts[1], parts[2]


def _used_length(past: Array | None, given: Array | None, is_shared: int) -> int:
    """Return how many keys of the past count."""
    if past is None:
        return 0
    if past.ndim != 4:
        raise InvalidArgument(f"the past has shape {past.shape}; expected (B, N, P, D)")
    if not is_shared:
        return int(past.shape[2])
    if given is None:
        raise InvalidArgument("past_sequence_length is not given; it says how much of a shared buffer counts")
    used = int(given.reshape(-1)[0])
    if not 0 <= used < past.shape[2]:
        raise InvalidArgument(f"past_sequence_length is {used}; the shared buffer has space for {past.shape[2]} keys")
    return used


def _extend(past: Array | None, new: Array, used: int) -> Array:
    if past is None:
        return new
    if past.shape[:2] != new.shape[:2] or past.shape[3] != new.shape[3]:
        raise InvalidArgument(f"the past has shape {past.shape}; expected {new.shape} but for its keys")
    return np.concatenate([past[:, :, :used].astype(new.dtype, copy=False), new], axis=2)


def _beam_rows(cache_indirection: Array, rows: int, used: int, beam_width: Array | None) -> Array:
    """Return for each row and each of its keys the row that holds it; the new key is the row's own: (B, used + 1)."""
    beams = cache_indirection.shape[1] if cache_indirection.ndim == 3 else 0
    told = beams if beam_width is None else int(beam_width.reshape(-1)[0])
    if beams == 0 or told != beams or cache_indirection.shape[0] * beams != rows or cache_indirection.shape[2] < used:
        raise InvalidArgument(
            f"cache_indirection has shape {cache_indirection.shape} and beam_width is {told}; expected (batch, beams, "
            f"{used} or more) for {rows} rows"
        )
    chosen = cache_indirection.reshape(rows, cache_indirection.shape[2])[:, :used]
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < beams:
        raise InvalidArgument(f"cache_indirection names beams {chosen.min()} to {chosen.max()}; expected 0 to {beams - 1}")
    own = np.arange(rows)[:, None]
    return np.concatenate([own // beams * beams + chosen, own], axis=1)


def _follow(cache: Array, rows: Array) -> Array:
    """Return the keys of each row, taken from the rows that hold them."""
    return cache[rows[:, None], np.arange(cache.shape[1])[:, None], np.arange(cache.shape[2])]


def _attend(
    q: Array, k: Array, v: Array, mask: Array | None, attention_bias: Array | None, filter_value: float, scale: float
) -> tuple[Array, Array]:
    """Return the values (B, 1, N x D) and the softmax of the scores (B, N, 1, T)."""
    B, N, _, D = q.shape
    T = k.shape[2]
    added: Array | None = None
    if mask is not None:
        if mask.shape != (B, T):
            raise InvalidArgument(f"mask_index has shape {mask.shape}; expected {(B, T)}")
        added = np.where(mask == 0, q.dtype.type(filter_value), q.dtype.type(0))[:, None, None]
    if attention_bias is not None:
        expect_broadcast("attention_bias", attention_bias, (B, N, 1, T))
        added = widen(attention_bias) if added is None else added + widen(attention_bias)
    result = attend(q, k, v, Scoring(scale=scale or 1 / math.sqrt(max(D, 1)), bias=added, output=ScoreOutput.PROBABILITIES))
    assert result.scores is not None, "the weights were asked for"
    return merge_heads(result.values), result.scores


def _write_back(buffer: Array | None, extended: Array) -> Array:
    """Return the shared buffer with its used part replaced."""
    if buffer is None:
        return extended
    written = buffer.astype(extended.dtype)
    written[:, :, : extended.shape[2]] = extended
    return written


def _outputs(query: Array, *arrays: Array) -> tuple[Array, ...]:
    return tuple(array.astype(query.dtype, copy=False) for array in arrays)
