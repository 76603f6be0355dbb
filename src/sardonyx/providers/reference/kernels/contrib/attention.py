"""Attention, QAttention and MultiHeadAttention of com.microsoft.

Dimension letters: B batch, N heads, S queries, T keys, P past keys, D head size. Half types compute in float32 and are rounded
once. Sources: the operator schemas of ONNX Runtime 1.31.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.beam_cache import choose_rows, follow_beams, used_keys, write_back
from sardonyx.providers.reference.algorithms.padding_mask import read_padding_mask
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
from sardonyx.providers.reference.algorithms.rotary import rotate
from sardonyx.providers.reference.algorithms.scaled_dot_product import (
    ScoreOutput,
    Scoring,
    attend,
    block_outside_window,
    expect_broadcast,
)
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["merge_heads", "microsoft_attention", "multi_head_attention", "q_attention", "split_heads"]

_MICROSOFT = "com.microsoft"


@kernel("Attention", domain=_MICROSOFT)
def microsoft_attention(
    call: Call,
    x: Array,
    weights: Array,
    bias: Array | None = None,
    mask_index: Array | None = None,
    past: Array | None = None,
    attention_bias: Array | None = None,
    past_sequence_length: Array | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] = (),
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Array, ...]:
    """Project X (B, S, I) by weights (I, 3 x hidden), attend, and return Y (B, S, hidden) and present (2, B, N, P + S, D).

    `past` (2, B, N, P, D), or P up to a maximum of which `past_sequence_length` holds the used part. `mask_index` as in
    padding_mask.py. Source: com.microsoft Attention.
    """
    if x.ndim != 3 or weights.ndim != 2 or weights.shape[0] != x.shape[2]:
        raise InvalidArgument(f"input has shape {x.shape} and weights {weights.shape}; expected (B, S, I) and (I, Q + K + V)")
    dtype = _computing_type(x)
    B, S, features = x.shape
    projected = matmul_in_parts(x.reshape(B * S, features).astype(dtype, copy=False), weights.astype(dtype, copy=False))
    if bias is not None:
        expect_broadcast("bias", bias, weights.shape[1:])
        projected += bias.astype(dtype, copy=False)
    settings = _SelfAttention(
        num_heads, tuple(qkv_hidden_sizes), bool(unidirectional), scale, mask_filter_value, do_rotary, rotary_embedding_dim
    )
    used = _used_past(past, past_sequence_length, past_present_share_buffer)
    return _attend_to_self(
        call, projected.reshape(B, S, weights.shape[1]), settings, mask_index, past, used, attention_bias, x.dtype
    )


@kernel("QAttention", domain=_MICROSOFT)
def q_attention(
    call: Call,
    x: Array,
    weights: Array,
    bias: Array,
    x_scale: Array,
    weight_scale: Array,
    mask_index: Array | None = None,
    x_zero_point: Array | None = None,
    weight_zero_point: Array | None = None,
    past: Array | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Array, ...]:
    """Compute Attention whose projection multiplies 8-bit integers.

    X (B, S, I), weights (I, 3 x hidden), scales by tensor or column.

    The result has the type of the bias (3 x hidden,). Source: com.microsoft QAttention.
    """
    if x.ndim != 3 or weights.ndim != 2 or weights.shape[0] != x.shape[2] or bias.shape != weights.shape[1:]:
        raise InvalidArgument(
            f"input has shape {x.shape}, weights {weights.shape} and bias {bias.shape}; expected (B, S, I), (I, 3 x hidden) and "
            "(3 x hidden,)"
        )
    B, S, features = x.shape
    total = run_standard("MatMulInteger", x.reshape(B * S, features), weights, x_zero_point, weight_zero_point)
    projected = total.astype(np.float32)
    for name, scale_of in (("input_scale", x_scale), ("weight_scale", weight_scale)):
        expect_broadcast(name, scale_of, weights.shape[1:])
    projected *= x_scale.astype(np.float32) * weight_scale.astype(np.float32)
    projected += bias.astype(np.float32, copy=False)
    settings = _SelfAttention(num_heads, (), bool(unidirectional), scale, mask_filter_value, do_rotary, 0)
    used = _used_past(past, None, 0)
    return _attend_to_self(call, projected.reshape(B, S, weights.shape[1]), settings, mask_index, past, used, None, bias.dtype)


@kernel("MultiHeadAttention", domain=_MICROSOFT)
def multi_head_attention(
    call: Call,
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    bias: Array | None = None,
    key_padding_mask: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    past_sequence_length: Array | None = None,
    cache_indirection: Array | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Array, ...]:
    """Attend; return Y (B, S, hidden of V), present_key, present_value (B, N, P + T, D) and the scores (B, N, S, P + T).

    Query (B, S, hidden), or (B, S, N, 3, D) with key and value packed in; key (B, T, hidden), (B, T, N, 2, D) with
    the value packed in, or (B, N, T, D). `bias` (Q + K + V) is added before heads are split. The scores are those that enter the
    softmax, as ONNX Runtime gives them; its documentation calls them normalized. With `past_sequence_length` the past is a buffer
    of which so many keys count, and the present is that buffer; then a single query reads past keys of the beams that
    `cache_indirection` (batch, beams, length) names. Source: com.microsoft MultiHeadAttention.
    """
    dtype = _computing_type(query)
    q, k, v = (part.astype(dtype, copy=False) for part in _unpack(query, key, value, bias, num_heads))
    used = 0
    if past_key is not None and past_value is not None:
        used = past_key.shape[min(2, past_key.ndim - 1)]
        if past_sequence_length is not None:
            used = used_keys(past_sequence_length, past_key, k.shape[2])
        k, v = _append(past_key, k, used), _append(past_value, v, used)
    present = [k, v]
    if past_sequence_length is not None:
        present = [write_back(past, part) for past, part in ((past_key, k), (past_value, v))]
        if cache_indirection is not None and past_key is not None and q.shape[2] == 1:
            rows = choose_rows(cache_indirection, len(q), used)
            k, v = follow_beams(k, rows), follow_beams(v, rows)
    scoring = _score(q, k, key_padding_mask, attention_bias, mask_filter_value, scale, used if unidirectional else None)
    if len(call.present) > 3 and call.present[3]:
        scoring = dataclasses.replace(scoring, output=ScoreOutput.BIASED)
    result = attend(q, k, v, scoring)
    outputs = [merge_heads(result.values), *present]
    if result.scores is not None:
        outputs.append(result.scores)
    return tuple(output.astype(query.dtype, copy=False) for output in outputs)


@dataclasses.dataclass(frozen=True, slots=True)
class _SelfAttention:
    """The attributes that Attention and QAttention share."""

    heads: int
    """Attention heads."""
    sizes: tuple[int, ...]
    """Hidden sizes of Q, K and V; empty for equal thirds."""
    is_causal: bool
    """Whether a query sees no later key."""
    scale: float
    """Factor of the scores; 0 for 1 / sqrt(head size)."""
    filter_value: float
    """What the mask adds where it hides."""
    do_rotary: int
    """Whether queries and keys are rotated by their positions."""
    rotated: int
    """How many elements of a head are rotated; 0 for all."""


def _attend_to_self(
    call: Call,
    projected: Array,
    settings: _SelfAttention,
    mask_index: Array | None,
    past: Array | None,
    used: int,
    attention_bias: Array | None,
    dtype: np.dtype[np.generic],
) -> tuple[Array, ...]:
    """Attend with Q, K and V side by side in `projected` (B, S, Q + K + V); return Y and, if used, the present in `dtype`."""
    heads, hidden = settings.heads, projected.shape[2]
    sizes = settings.sizes or (hidden // 3,) * 3
    fits = heads > 0 and len(sizes) == 3 and sum(sizes) == hidden and sizes[0] == sizes[1]
    if not fits or any(size % heads for size in sizes):
        raise InvalidArgument(
            f"hidden sizes {sizes} of Q, K and V do not fit {hidden} projected columns and {heads} heads: they must sum to the "
            "former, be multiples of the latter, and be equal for Q and K"
        )
    q, k, v = (split_heads(part, heads) for part in np.split(projected, np.cumsum(sizes)[:2], axis=2))
    if settings.do_rotary:
        q, k = (_rotate_by_step(part, used, settings.rotated) for part in (q, k))
    keys, values = k, v
    if past is not None:
        _check_past("past", past, (2, len(q), heads, past.shape[3] if past.ndim == 5 else 0, k.shape[3]))
        keys, values = (_append(old, new, used) for old, new in ((past[0], k), (past[1], v)))
    causal_offset = used if settings.is_causal else None
    scoring = _score(q, keys, mask_index, attention_bias, settings.filter_value, settings.scale, causal_offset)
    output = merge_heads(attend(q, keys, values, scoring).values).astype(dtype, copy=False)
    if not (len(call.present) > 1 and call.present[1]):
        return (output,)
    return output, _present(keys, values, past, used).astype(dtype, copy=False)


def _append(past: Array, new: Array, used: int) -> Array:
    """Return the first `used` keys of `past`, then the new ones, in the type of the latter."""
    if past.ndim != 4 or past.shape[:2] != new.shape[:2] or past.shape[3] != new.shape[3] or not 0 <= used <= past.shape[2]:
        raise InvalidArgument(
            f"the past has shape {past.shape}, of which {used} keys are used; expected {new.shape} but for its keys"
        )
    return np.concatenate([past[:, :, :used].astype(new.dtype, copy=False), new], axis=2)


def split_heads(x: Array, heads: int) -> Array:
    """Return a view (B, heads, S, D) of `x` (B, S, heads x D)."""
    if x.ndim != 3 or heads < 1 or x.shape[2] % heads:
        raise InvalidArgument(
            f"an input of shape {x.shape} does not split into {heads} heads; expected (B, S, {heads} x head size)"
        )
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


def merge_heads(values: Array) -> Array:
    """Return (B, S, N, D) as (B, S, N x D)."""
    return values.reshape(*values.shape[:2], values.shape[2] * values.shape[3])


def _computing_type(x: Array) -> np.dtype[np.generic]:
    return np.dtype(np.float64 if x.dtype == np.float64 else np.float32)


def _used_past(past: Array | None, past_sequence_length: Array | None, is_shared: int) -> int:
    if past is None:
        return 0
    if is_shared and past_sequence_length is not None:
        return int(past_sequence_length.reshape(-1)[0])
    return int(past.shape[3]) if past.ndim == 5 else 0


def _check_past(name: str, past: Array, shape: tuple[int, ...]) -> None:
    if past.shape != shape:
        raise InvalidArgument(f"{name} has shape {past.shape}; expected {shape}")


def _rotate_by_step(x: Array, first: int, rotated: int) -> Array:
    """Rotate (B, N, S, D) by the angles that positions from `first` on have for base 10000."""
    D = rotated or x.shape[3]
    frequencies = 10000.0 ** (-np.arange(0, D, 2) / D)
    angles = (first + np.arange(x.shape[2]))[:, None] * frequencies
    return rotate(x, np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype), interleaved=False)


def _score(
    q: Array,
    k: Array,
    mask: Array | None,
    attention_bias: Array | None,
    filter_value: float,
    scale: float,
    causal_offset: int | None,
) -> Scoring:
    B, _, S, D = q.shape
    T = k.shape[2]
    if attention_bias is not None:
        expect_broadcast("attention_bias", attention_bias, (B, q.shape[1], S, T))
    biases = [x for x in (read_padding_mask(mask, (B, S, T), filter_value, q.dtype), attention_bias) if x is not None]
    return Scoring(
        scale=scale or 1 / math.sqrt(max(D, 1)),
        bias=_with_hidden_rows(sum(biases[1:], biases[0])) if biases else None,
        blocked=None if causal_offset is None or S == 1 else block_outside_window(causal_offset, S, T, -1, 0),
    )


def _with_hidden_rows(bias: Array) -> Array:
    """Return a bias whose rows of nothing but -inf are NaN, which a softmax written out makes of them."""
    is_hidden = bias.max(axis=-1, keepdims=True, initial=-np.inf) == -np.inf
    return np.where(is_hidden, np.array(np.nan, bias.dtype), bias) if is_hidden.any() else bias


def _present(keys: Array, values: Array, past: Array | None, used: int) -> Array:
    """Return (2, B, N, P + S, D), or as long as a `past` of which a part is used, with what it held behind the new keys."""
    stacked = np.stack([keys, values])
    if past is None or past.shape[3] == used or past.shape[3] <= stacked.shape[3]:
        return stacked
    present = past.astype(stacked.dtype)
    present[:, :, :, : stacked.shape[3]] = stacked
    return present


def _unpack(query: Array, key: Array | None, value: Array | None, bias: Array | None, heads: int) -> tuple[Array, Array, Array]:
    """Return Q, K and V (B, N, S or T, D) with their parts of the bias added."""
    if query.ndim == 5:
        if query.shape[2:4] != (heads, 3):
            raise InvalidArgument(f"the packed query has shape {query.shape}; expected (B, S, {heads}, 3, head size)")
        q, k, v = (query[:, :, :, part].swapaxes(1, 2) for part in range(3))
    else:
        q = split_heads(query, heads)
        k, v = _unpack_key_value(key, value, heads)
    if bias is None:
        return q, k, v
    if k.shape[3] != q.shape[3]:
        raise InvalidArgument(
            f"query {query.shape} and key {() if key is None else key.shape} have head sizes {q.shape[3]} and {k.shape[3]}"
        )
    if bias.shape != (heads * (2 * q.shape[3] + v.shape[3]),):
        raise InvalidArgument(f"bias has shape {bias.shape}; expected ({heads * (2 * q.shape[3] + v.shape[3])},)")
    hidden = heads * q.shape[3]
    parts = (bias[:hidden], bias[hidden : 2 * hidden], bias[2 * hidden :])
    is_added = (True, key is None or key.ndim != 4, key is None or key.ndim != 4)
    q, k, v = (
        x + part.reshape(heads, 1, -1).astype(x.dtype, copy=False) if added else x
        for x, part, added in zip((q, k, v), parts, is_added, strict=True)
    )
    return q, k, v


def _unpack_key_value(key: Array | None, value: Array | None, heads: int) -> tuple[Array, Array]:
    if key is None:
        raise InvalidArgument("key is not given; only a query of rank 5, with key and value packed in, does without")
    if key.ndim == 5:
        if key.shape[2:4] != (heads, 2):
            raise InvalidArgument(f"the packed key has shape {key.shape}; expected (B, T, {heads}, 2, head size)")
        return key[:, :, :, 0].swapaxes(1, 2), key[:, :, :, 1].swapaxes(1, 2)
    if value is None:
        raise InvalidArgument("value is not given; only a key or query of rank 5, with the value packed in, does without")
    if key.ndim == value.ndim == 4:
        return key, value
    return split_heads(key, heads), split_heads(value, heads)
