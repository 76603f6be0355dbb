"""DecoderMaskedMultiHeadAttention and DecoderMaskedSelfAttention of com.microsoft: attention of one new token per sequence.

Dimension letters: B batch times beams, N heads, T keys, P past keys, D head size. Caches lie as they do elsewhere, (B, N, T, D);
ONNX Runtime's CUDA kernels reorder the keys inside a buffer that past and present share, its CPU kernels do not.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.beam_cache import choose_rows, follow_beams, used_keys, write_back
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
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
    """Attend with query (B, 1, hidden) or packed Q, K and V; return Y (B, 1, hidden of V), present_key, present_value and scores.

    Keys (B, 1, hidden) are put behind the past; keys (B, N, T, D) are those of an encoder, and no present is made of them.
    `mask_index` (B, T) hides where it is 0. `cache_indirection` (B / beams, beams, length) tells of which beam of its batch each
    past token of a beam is. The fourth output, made where `output_qk` is 1, is what enters the softmax: the scaled product with
    mask and bias added, as ONNX Runtime gives it. Source: com.microsoft DecoderMaskedMultiHeadAttention.
    """
    if query.ndim != 3 or query.shape[1] != 1:
        raise InvalidArgument(f"query has shape {query.shape}; expected (B, 1, hidden)")
    if key is not None and value is not None and key.ndim == 4:
        q = split_heads(_with_bias(query, bias), num_heads)
        y, scores = _attend(widen(q), widen(key), widen(value), mask_index, attention_bias, mask_filter_value, scale)
        return _outputs(query, y, key, value, *_chosen(scores, output_qk))
    q, k, v = (split_heads(part, num_heads) for part in _project(query, key, value, bias))
    used = _used_length(past_key, past_sequence_length, past_present_share_buffer)
    keys, values = _extend(past_key, k, used), _extend(past_value, v, used)
    read_keys, read_values = keys, values
    if cache_indirection is not None:
        rows = choose_rows(cache_indirection, len(keys), used, beam_width)
        read_keys, read_values = follow_beams(keys, rows), follow_beams(values, rows)
    y, scores = _attend(widen(q), widen(read_keys), widen(read_values), mask_index, attention_bias, mask_filter_value, scale)
    if past_present_share_buffer:
        keys, values = write_back(past_key, keys), write_back(past_value, values)
    return _outputs(query, y, keys, values, *_chosen(scores, output_qk))


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
    projected = matmul_in_parts(widen(x), widen(weights)) + widen(bias)
    y, keys, values = decoder_masked_multi_head_attention(
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
    return used_keys(given, past, 1)


def _extend(past: Array | None, new: Array, used: int) -> Array:
    if past is None:
        return new
    if past.shape[:2] != new.shape[:2] or past.shape[3] != new.shape[3]:
        raise InvalidArgument(f"the past has shape {past.shape}; expected {new.shape} but for its keys")
    return np.concatenate([past[:, :, :used].astype(new.dtype, copy=False), new], axis=2)


def _attend(
    q: Array, k: Array, v: Array, mask: Array | None, attention_bias: Array | None, filter_value: float, scale: float
) -> tuple[Array, Array]:
    """Return the values (B, 1, N x D) and the scores (B, N, 1, T) that enter the softmax."""
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
    result = attend(q, k, v, Scoring(scale=scale or 1 / math.sqrt(max(D, 1)), bias=added, output=ScoreOutput.BIASED))
    assert result.scores is not None, "the scores were asked for"
    return merge_heads(result.values), result.scores


def _chosen(scores: Array, output_qk: int) -> tuple[Array, ...]:
    return (scores,) if output_qk else ()


def _outputs(query: Array, *arrays: Array) -> tuple[Array, ...]:
    return tuple(array.astype(query.dtype, copy=False) for array in arrays)
