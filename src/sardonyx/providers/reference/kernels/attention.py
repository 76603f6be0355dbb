"""Attention, FlexAttention, RotaryEmbedding and LinearAttention of ai.onnx.

Dimension letters: B batch, N query heads, M key and value heads, S queries, T keys, D head size. Half types compute in float32
and are rounded once.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.attention import Attention
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
from sardonyx.providers.reference.algorithms.rotary import look_up, rotate
from sardonyx.providers.reference.algorithms.scaled_dot_product import (
    ScoreOutput,
    Scoring,
    attend,
    block_outside_window,
    check_heads,
    expect_broadcast,
    softmax_in_place,
)
from sardonyx.providers.reference.registry import Body, Call, kernel

__all__ = ["attention", "flex_attention", "rotary_embedding"]


@kernel("Attention", since=23, view=Attention)
def attention(
    call: Call,
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    nonpad_kv_seqlen: Array | None = None,
    *,
    view: Attention,
    left_window_size: int = -1,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
) -> tuple[Array, ...]:
    """Attend; return Y, present_key, present_value (B, M, T, D) and the scores (B, N, S, T) at the stage asked for.

    Q (B, N, S, D), K and V (B, M, T, D), or rank 3 with heads packed in the last axis, as Y then is. `attn_mask` broadcasts to
    (B, N, S, T), may end early in T (24) and is boolean (True: visible) or added. Source: ONNX Attention-25, of which 23 lacks
    `nonpad_kv_seqlen` and 23 and 24 lack the windows.
    """
    _check_past(past_key, past_value, nonpad_kv_seqlen)
    if qk_matmul_output_mode not in (0, 1, 2, 3):
        raise InvalidArgument(f"qk_matmul_output_mode is {qk_matmul_output_mode}; expected 0, 1, 2 or 3")
    q, k, v = (
        _four_dimensional(name, x, heads)
        for name, x, heads in (("Q", query, view.query_heads), ("K", key, view.key_heads), ("V", value, view.key_heads))
    )
    present_key = k if past_key is None else _append("K", past_key, k)
    present_value = v if past_value is None else _append("V", past_value, v)
    _check_shapes(q, present_key, present_value)
    S, T = q.shape[2], present_key.shape[2]
    dtype = np.dtype(np.float64 if np.float64 in (query.dtype, value.dtype) else np.float32)
    bias, masked = _read_mask(attn_mask, T, dtype, may_be_short=view.takes_short_masks)
    if masked is not None:
        expect_broadcast("attn_mask", masked, (*q.shape[:3], T))
    window = _narrow_to_causal(left_window_size, right_window_size, is_causal=view.is_causal)
    stage = query.dtype if query.dtype == DataType.BFLOAT16.numpy else None
    scaled = _apply_scale(q.astype(dtype, copy=False), present_key.astype(dtype, copy=False), view.scale, stage)
    result = attend(
        scaled.query,
        scaled.key,
        present_value.astype(dtype, copy=False),
        Scoring(
            scale=scaled.remaining,
            softcap=view.softcap,
            bias=bias,
            blocked=_block(masked, window, past_key, nonpad_kv_seqlen, (len(q), S, T)),
            precision=_read_precision(view.softmax_precision),
            stage=stage,
            output=ScoreOutput(qk_matmul_output_mode) if len(call.present) > 3 and call.present[3] else ScoreOutput.NONE,
        ),
    )
    y = result.values.astype(query.dtype, copy=False)
    y = y.reshape(len(y), S, y.shape[2] * y.shape[3]) if query.ndim == 3 else y.swapaxes(1, 2)
    if result.scores is None:
        return y, present_key, present_value
    return y, present_key, present_value, result.scores.astype(query.dtype, copy=False)


@kernel("FlexAttention", domain="ai.onnx.preview")
def flex_attention(
    call: Call,
    query: Array,
    key: Array,
    value: Array,
    *,
    prob_mod: Body | None = None,
    scale: float | None = None,
    score_mod: Body | None = None,
    softmax_precision: int | None = None,
) -> Array:
    """Attend with graphs that rewrite the scores and the probabilities, both (B, N, S, T) in the softmax precision.

    Q (B, N, S, D), K and V (B, M, T, D) give Y (B, N, S, D). Source: ONNX preview FlexAttention-1.
    """
    for name, x in (("Q", query), ("K", key), ("V", value)):
        if x.ndim != 4:
            raise InvalidArgument(f"{name} has shape {x.shape}; expected rank 4 (batch, heads, sequence, head size)")
    _check_shapes(query, key, value)
    B, N, S, D = query.shape
    M, T = key.shape[1:3]
    dtype = np.dtype(np.float64 if query.dtype == np.float64 else np.float32)
    precision = _read_precision(softmax_precision) or dtype
    factor = dtype.type(_default_scale(D) if scale is None else scale)
    grouped = (query.astype(dtype, copy=False) * factor).reshape(B, M, N // M * S, D)
    scores = matmul_in_parts(grouped, key.astype(dtype, copy=False).swapaxes(2, 3)).reshape(B, N, S, T)
    scores = _modify("score_mod", score_mod, scores.astype(precision, copy=False))
    probabilities = scores.astype(np.float64 if precision == np.float64 else np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        softmax_in_place(probabilities)
    probabilities = _modify("prob_mod", prob_mod, probabilities.astype(precision, copy=False)).astype(dtype, copy=False)
    y = matmul_in_parts(probabilities.reshape(B, M, N // M * S, T), value.astype(dtype, copy=False))
    return y.reshape(B, N, S, value.shape[3]).astype(query.dtype, copy=False)


@kernel("RotaryEmbedding", since=23)
def rotary_embedding(
    call: Call,
    x: Array,
    cos_cache: Array,
    sin_cache: Array,
    position_ids: Array | None = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
) -> Array:
    """Rotate `x`, (B, N, S, D) or (B, S, N x D), by position; the result has its shape and type.

    The caches are (positions, half) with `position_ids` (B, S), else (B, S, half). Source: ONNX RotaryEmbedding-23.
    """
    heads = _four_dimensional("X", x, num_heads)
    B, _, S, D = heads.shape
    rotated = rotary_embedding_dim or D
    if rotated % 2 or not 0 < rotated <= D:
        raise InvalidArgument(f"{rotated} elements of each head of size {D} are to be rotated; expected an even number up to {D}")
    dtype = np.dtype(np.float32)
    cos, sin = (_read_cache(cache, position_ids, (B, S, rotated // 2), dtype) for cache in (cos_cache, sin_cache))
    tokens = heads.astype(dtype, copy=False).swapaxes(1, 2)
    result: Array = rotate(tokens, cos[:, :, None], sin[:, :, None], interleaved=bool(interleaved))
    result = result.astype(x.dtype, copy=False)
    return result.reshape(x.shape) if x.ndim == 3 else result.swapaxes(1, 2)


def _default_scale(D: int) -> float:
    return 1 / math.sqrt(D) if D else 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Scaled:
    query: Array
    """Q, times sqrt(scale) where `remaining` is 1."""
    key: Array
    """K, likewise."""
    remaining: float
    """What Q K^T is still to be multiplied by."""


def _apply_scale(query: Array, key: Array, scale: float | None, stage: np.dtype[np.generic] | None) -> _Scaled:
    """Leave the scale to the scores, or share it between Q and K, rounded, as ONNX's function body for Attention does."""
    factor = _default_scale(query.shape[3]) if scale is None else scale
    if stage is None:
        return _Scaled(query, key, factor)
    root = math.sqrt(abs(factor))
    return _Scaled(_scale_as(query, math.copysign(root, factor), stage), _scale_as(key, root, stage), 1.0)


def _scale_as(x: Array, factor: float, stage: np.dtype[np.generic]) -> Array:
    """Return `x` times `factor`, factor and product rounded to `stage`, in the type of `x`."""
    product: Array = x * np.asarray(factor, stage).astype(x.dtype)
    return product.astype(stage).astype(x.dtype)


def _four_dimensional(name: str, x: Array, heads: int | None) -> Array:
    """Return `x` as (B, heads, S, D): itself, or a view of a rank-3 array whose last axis packs the heads."""
    if x.ndim == 4:
        return x
    if x.ndim != 3:
        raise InvalidArgument(f"{name} has shape {x.shape}; expected rank 4 (batch, heads, sequence, head size) or rank 3")
    if heads is None or heads < 1 or x.shape[2] % heads:
        raise InvalidArgument(
            f"{name} has shape {x.shape} and {heads} heads; the head count must be given and divide the last dimension"
        )
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


def _check_past(past_key: Array | None, past_value: Array | None, nonpad: Array | None) -> None:
    if (past_key is None) != (past_value is None):
        raise InvalidArgument("only one of past_key and past_value is given; give both or none")
    if past_key is not None and nonpad is not None:
        raise InvalidArgument("past_key and nonpad_kv_seqlen are both given; the cache is either inside the operator or outside")


def _append(name: str, past: Array, new: Array) -> Array:
    if past.ndim != 4 or past.shape[:2] != new.shape[:2] or past.shape[3] != new.shape[3]:
        raise InvalidArgument(f"the past of {name} has shape {past.shape}; expected {new.shape} but for dimension 2")
    return np.concatenate([past, new], axis=2)


def _check_shapes(q: Array, k: Array, v: Array) -> None:
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise InvalidArgument(
            f"Q {q.shape}, K {k.shape} and V {v.shape} do not fit, read as (batch, heads, sequence, head size): batches must be "
            "equal, K and V equal in heads and sequence, Q and K in head size"
        )
    check_heads(q.shape[1], k.shape[1])


def _narrow_to_causal(left: int, right: int, is_causal: int) -> tuple[int, int]:
    """Return the window (left, right), -1 for open; causal attention sees nothing to the right."""
    if left < -1 or right < -1:
        raise InvalidArgument(f"the window sizes are {left} and {right}; expected -1 (open) or more")
    return (left, 0) if is_causal else (left, right)


def _block(
    masked: Array | None,
    window: tuple[int, int],
    past_key: Array | None,
    nonpad: Array | None,
    sizes: tuple[int, int, int],
) -> Array | None:
    """Return everything that is not to be seen, for `sizes` (B, S, T): by mask, by window and behind the end of the keys."""
    B, S, T = sizes
    blocked = masked
    if nonpad is not None:
        blocked = _either(blocked, _block_padding(nonpad, B, T))
    if max(window) >= 0:
        blocked = _either(blocked, block_outside_window(_find_offset(past_key, nonpad, S), S, T, *window))
    return blocked


def _read_mask(mask: Array | None, T: int, dtype: np.dtype[np.generic], *, may_be_short: bool) -> tuple[Array | None, Array | None]:
    """Return the mask as (bias, blocked), one of them None."""
    if mask is None:
        return None, None
    if mask.ndim == 0:
        raise InvalidArgument("attn_mask is a scalar; expected rank 1 to 4")
    missing = T - mask.shape[-1]
    boolean = mask.dtype == np.bool_
    mask = ~mask if boolean else mask.astype(dtype, copy=False)
    if missing > 0 and mask.shape[-1] != 1 and may_be_short:
        fill = np.full((*mask.shape[:-1], missing), True if boolean else -np.inf, mask.dtype)
        mask = np.concatenate([mask, fill], axis=-1)
    return (None, mask) if boolean else (mask, None)


def _find_offset(past_key: Array | None, nonpad: Array | None, S: int) -> int | Array:
    """Return how many keys precede the first query, as a number or per batch element."""
    if nonpad is not None:
        offsets: Array = nonpad.astype(np.int64, copy=False) - S
        return offsets
    return 0 if past_key is None else int(past_key.shape[2])


def _block_padding(nonpad: Array, B: int, T: int) -> Array:
    if nonpad.shape != (B,) or (B and (nonpad.min() < 0 or nonpad.max() > T)):
        raise InvalidArgument(f"nonpad_kv_seqlen is {nonpad.tolist()}; expected {B} lengths between 0 and {T}")
    blocked: Array = np.arange(T) >= nonpad.reshape(B, 1, 1, 1)
    return blocked


def _either(one: Array | None, other: Array) -> Array:
    return other if one is None else one | other


def _read_precision(softmax_precision: int | None) -> np.dtype[np.generic] | None:
    if softmax_precision is None:
        return None
    try:
        chosen = DataType(softmax_precision)
    except ValueError:
        chosen = DataType.UNDEFINED
    if not is_float(chosen):
        raise InvalidArgument(f"softmax_precision is {softmax_precision}; expected a float type: 1, 10, 11 or 16")
    return chosen.numpy


def _modify(name: str, body: Body | None, array: Array) -> Array:
    if body is None:
        return array
    (result,) = body(array)
    if result.shape != array.shape:
        raise InvalidArgument(f"{name} turned shape {array.shape} into {result.shape}; it must keep the shape")
    modified: Array = result
    return modified


def _read_cache(cache: Array, position_ids: Array | None, shape: tuple[int, int, int], dtype: np.dtype[np.generic]) -> Array:
    """Return angles (B, S, half) from a cache by position, or from a cache that is laid out by batch and step already."""
    if position_ids is None:
        if cache.shape != shape:
            raise InvalidArgument(f"a cos or sin cache has shape {cache.shape}; without position_ids it must be {shape}")
        return cache.astype(dtype, copy=False)
    if cache.ndim != 2 or cache.shape[1] != shape[2] or position_ids.shape != shape[:2]:
        raise InvalidArgument(
            f"a cos or sin cache has shape {cache.shape} and position_ids {position_ids.shape}; expected (positions, {shape[2]}) "
            f"and {shape[:2]}"
        )
    return look_up(cache, position_ids, dtype)
