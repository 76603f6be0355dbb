"""GroupQueryAttention and SparseAttention of com.microsoft: the attention of decoder models, with its cache inside.

Dimension letters: B batch, N query heads, M key and value heads, S new steps, P length of the past arrays, C length of the
present ones, D head size. `seqlens_k` + 1 is, per batch element, how many keys there are after this step; the new ones lie at
the end of them.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.quantized_cache import CacheFormat, choose_format
from sardonyx.providers.reference.algorithms.rotary import look_up, rotate
from sardonyx.providers.reference.algorithms.scaled_dot_product import (
    ScoreOutput,
    Scoring,
    attend,
    block_outside_window,
    check_heads,
)
from sardonyx.providers.reference.algorithms.window_cache import WindowStep
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["group_query_attention", "sparse_attention"]

_QK_OUTPUTS = {0: ScoreOutput.NONE, 1: ScoreOutput.BIASED, 2: ScoreOutput.PROBABILITIES}


@dataclasses.dataclass(frozen=True, slots=True)
class _Progress:
    """Where in its sequence each batch element is."""

    total: Array
    """(B,): keys after this step."""
    past: Array
    """(B,): keys before it."""
    longest: int
    """The largest total, as the node states it."""

    @property
    def is_even(self) -> bool:
        """Whether every element has the same past and the full total."""
        return bool((self.total == self.longest).all() and (self.past == self.past[:1]).all())


@kernel("GroupQueryAttention", domain="com.microsoft")
def group_query_attention(
    call: Call,
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    seqlens_k: Array,
    total_sequence_length: Array,
    cos_cache: Array | None = None,
    sin_cache: Array | None = None,
    position_ids: Array | None = None,
    attention_bias: Array | None = None,
    head_sink: Array | None = None,
    k_scale: Array | None = None,
    v_scale: Array | None = None,
    q_norm_weight: Array | None = None,
    k_norm_weight: Array | None = None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sliding_window_cache: int = 0,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
) -> tuple[Array, ...]:
    """Append the new keys and values to the cache and attend; return Y (B, S, N x D), present_key and present_value (B, M, C, D).

    Query (B, S, N x D), key and value (B, S, M x D), or all packed in the query. Past arrays (B, M, P, D) may be longer than
    what is used of them; C = max(P, total_sequence_length). A quantized cache is stored as quantized_cache.py says, and attended
    to as it is stored. The fourth output has 0 for the keys that a query does not see.
    Source: com.microsoft GroupQueryAttention of ONNX Runtime 1.31.
    """
    if qk_output not in _QK_OUTPUTS or (qk_output and sliding_window_cache):
        raise InvalidArgument(f"qk_output is {qk_output}; expected 0, 1 or 2, and 0 with sliding_window_cache")
    check_heads(num_heads, kv_num_heads)
    dtype = np.dtype(np.float32)
    q, k, v = (x.astype(dtype, copy=False) for x in _split(query, key, value, num_heads, kv_num_heads))
    B, S, _, D = q.shape
    progress = _read_progress(seqlens_k, total_sequence_length, B, S)
    if q_norm_weight is not None and k_norm_weight is not None:
        q, k = (_normalize(x, weight, qk_norm_epsilon) for x, weight in ((q, q_norm_weight), (k, k_norm_weight)))
    if do_rotary:
        q, k = _rotate(q, k, cos_cache, sin_cache, position_ids, progress, bool(rotary_interleaved))
    key_format = choose_format("the key cache", k_quant_type, kv_cache_bit_width, k_scale, past_key, query.dtype)
    value_format = choose_format("the value cache", v_quant_type, kv_cache_bit_width, v_scale, past_value, query.dtype)
    scoring = Scoring(
        scale=scale or 1 / math.sqrt(max(D, 1)),
        softcap=softcap,
        bias=attention_bias,
        sink=np.zeros(num_heads) if head_sink is None and smooth_softmax == 1 else head_sink,
        output=_QK_OUTPUTS[qk_output] if len(call.present) > 3 and call.present[3] else ScoreOutput.NONE,
    )
    if sliding_window_cache:
        if past_key is None or past_value is None:
            raise InvalidArgument("sliding_window_cache is 1, but past_key or past_value is not given: they are the cache")
        step = WindowStep(local_window_size, progress.past, progress.total, key_format, value_format)
        values, present_key, present_value = step.run(q, k, v, past_key, past_value, scoring)
        return values.reshape(B, S, num_heads * D).astype(query.dtype, copy=False), present_key, present_value
    present_key = _append("past_key", past_key, k, progress, key_format)
    present_value = _append("past_value", past_value, v, progress, value_format)
    blocked = _block(progress, S, bool(causal), local_window_size)
    result = attend(
        q.swapaxes(1, 2),
        key_format.decode(present_key[:, :, : progress.longest]),
        value_format.decode(present_value[:, :, : progress.longest]),
        dataclasses.replace(scoring, blocked=blocked),
    )
    y = result.values.reshape(B, S, num_heads * D).astype(query.dtype, copy=False)
    if result.scores is None:
        return y, present_key, present_value
    scores = result.scores if blocked is None else np.where(blocked, np.zeros((), result.scores.dtype), result.scores)
    return y, present_key, present_value, scores.astype(query.dtype, copy=False)


@kernel("SparseAttention", domain="com.microsoft")
def sparse_attention(
    call: Call,
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array,
    past_value: Array,
    block_row_indices: Array,
    block_col_indices: Array,
    total_sequence_length: Array,
    key_total_sequence_lengths: Array,
    cos_cache: Array | None = None,
    sin_cache: Array | None = None,
    *,
    do_rotary: int = 0,
    kv_num_heads: int,
    num_heads: int,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sparse_block_size: int,
) -> tuple[Array, Array, Array]:
    """Compute GroupQueryAttention that sees blocks of keys only: Y (B, S, N x D), present_key and present_value (B, M, C, D).

    `block_row_indices` (L, blocks + 1) and `block_col_indices` (L, entries) list, in compressed rows, the blocks of keys that
    each block of queries sees; heads take the L layouts in turn. Source: com.microsoft SparseAttention.
    """
    check_heads(num_heads, kv_num_heads)
    q, k, v = (x.astype(np.float32, copy=False) for x in _split(query, key, value, num_heads, kv_num_heads))
    B, S, _, D = q.shape
    progress = _read_progress(key_total_sequence_lengths - 1, total_sequence_length, B, S)
    if do_rotary:
        q, k = _rotate(q, k, cos_cache, sin_cache, None, progress, bool(rotary_interleaved))
    cache = CacheFormat(query.dtype, 32, None)
    present_key = _append("past_key", past_key, k, progress, cache)
    present_value = _append("past_value", past_value, v, progress, cache)
    visible = _read_layouts(block_row_indices, block_col_indices)
    result = attend(
        q.swapaxes(1, 2),
        cache.decode(present_key[:, :, : progress.longest]),
        cache.decode(present_value[:, :, : progress.longest]),
        Scoring(
            scale=scale or 1 / math.sqrt(max(D, 1)),
            blocked=_block_by_layout(visible, progress, S, num_heads, sparse_block_size),
        ),
    )
    y = result.values.reshape(B, S, num_heads * D)
    return y.astype(query.dtype, copy=False), present_key, present_value


def _read_layouts(rows: Array, columns: Array) -> Array:
    """Return the layouts (L, blocks, blocks) as booleans."""
    if rows.ndim != 2 or columns.ndim != 2 or len(rows) != len(columns) or rows.shape[1] < 1:
        raise InvalidArgument(
            f"block_row_indices has shape {rows.shape} and block_col_indices {columns.shape}; expected (layouts, blocks + 1) and "
            "(layouts, entries)"
        )
    L, blocks = len(rows), rows.shape[1] - 1
    counts = np.diff(rows, axis=1)
    if (counts < 0).any() or (rows[:, 0] != 0).any() or (rows[:, -1] > columns.shape[1]).any():
        raise InvalidArgument(f"block_row_indices is {rows.tolist()}; expected rows that grow from 0 to {columns.shape[1]} at most")
    visible = np.zeros((L, blocks, blocks), np.bool_)
    for layout in range(L):
        listed = columns[layout, : rows[layout, -1]]
        if listed.size and (listed.min() < 0 or listed.max() >= blocks):
            raise InvalidArgument(f"block_col_indices run from {listed.min()} to {listed.max()}; there are {blocks} blocks")
        visible[layout, np.repeat(np.arange(blocks), counts[layout]), listed] = True
    return visible


def _block_by_layout(visible: Array, progress: _Progress, S: int, heads: int, block: int) -> Array:
    """Return True (B, N, S, T) for keys behind a query, or in a block that the query's block does not see."""
    L, blocks = visible.shape[:2]
    if block < 1 or heads % L or progress.longest > block * blocks:
        raise InvalidArgument(
            f"{L} layouts of {blocks} blocks of {block} do not serve {heads} heads and {progress.longest} keys: layouts must "
            "divide the heads, and blocks cover the keys"
        )
    positions = np.minimum(progress.past[:, None] + np.arange(S), progress.longest - 1)
    keys = np.arange(progress.longest)
    sees = visible[:, (positions // block)[:, :, None], keys // block]
    by_head = np.tile(sees.swapaxes(0, 1), (1, heads // L, 1, 1))
    outside: Array = ~by_head | (keys > positions[:, None, :, None]) | (keys >= progress.total[:, None, None, None])
    return outside


def _split(query: Array, key: Array | None, value: Array | None, N: int, M: int) -> tuple[Array, Array, Array]:
    """Return Q (B, S, N, D), K and V (B, S, M, D) as views."""
    if query.ndim != 3:
        raise InvalidArgument(f"query has shape {query.shape}; expected (batch, steps, hidden)")
    B, S, hidden = query.shape
    if key is None or value is None:
        heads = N + 2 * M
        if hidden % heads:
            raise InvalidArgument(f"a packed query of shape {query.shape} does not split into {N} + 2 x {M} heads")
        packed = query.reshape(B, S, heads, hidden // heads)
        return packed[:, :, :N], packed[:, :, N : N + M], packed[:, :, N + M :]
    D = hidden // N
    if hidden % N or key.shape != (B, S, M * D) or value.shape != key.shape:
        raise InvalidArgument(
            f"query {query.shape}, key {key.shape} and value {value.shape} do not fit {N} query heads and {M} key heads: expected "
            f"({B}, {S}, {M * D}) for key and value"
        )
    return query.reshape(B, S, N, D), key.reshape(B, S, M, D), value.reshape(B, S, M, D)


def _read_progress(seqlens_k: Array, total_sequence_length: Array, B: int, S: int) -> _Progress:
    total = seqlens_k.reshape(-1).astype(np.int64) + 1
    if total.shape != (B,) or total_sequence_length.size != 1:
        raise InvalidArgument(
            f"seqlens_k has shape {seqlens_k.shape} and total_sequence_length {total_sequence_length.shape}; expected "
            f"({B},) and one element"
        )
    longest = int(total_sequence_length.reshape(-1)[0])
    is_prompt = longest == S
    past = np.zeros(B, np.int64) if is_prompt else total - S
    if longest < S or (B and (total.max() > longest or total.min() < 1 or past.min() < 0)):
        raise InvalidArgument(
            f"seqlens_k + 1 is {total.tolist()} and total_sequence_length {longest} with {S} new steps; each length must lie "
            "between the new steps and total_sequence_length"
        )
    return _Progress(total, past, longest)


def _normalize(x: Array, weight: Array, epsilon: float) -> Array:
    mean_square = np.mean(np.square(x), axis=-1, keepdims=True)
    normalized: Array = x / np.sqrt(mean_square + np.float32(epsilon))
    normalized *= weight.astype(x.dtype, copy=False)
    return normalized


def _rotate(
    q: Array, k: Array, cos: Array | None, sin: Array | None, position_ids: Array | None, progress: _Progress, interleaved: bool
) -> tuple[Array, Array]:
    if cos is None or sin is None:
        raise InvalidArgument("do_rotary is 1, but cos_cache or sin_cache is not given")
    B, S, _, D = q.shape
    if cos.ndim != 2 or cos.shape != sin.shape or 2 * cos.shape[1] > D:
        raise InvalidArgument(f"cos_cache has shape {cos.shape} and sin_cache {sin.shape}; expected (positions, up to {D // 2})")
    steps = np.arange(S)
    if position_ids is None:
        positions = progress.past[:, None] + steps
    else:
        positions = position_ids if position_ids.shape == (B, S) else position_ids.reshape(-1)[:1, None] + steps
    angles = [look_up(cache, positions, q.dtype)[:, :, None] for cache in (cos, sin)]
    return rotate(q, *angles, interleaved=interleaved), rotate(k, *angles, interleaved=interleaved)


def _append(name: str, past: Array | None, new: Array, progress: _Progress, cache: CacheFormat) -> Array:
    """Return the present (B, M, C, D) as it is stored: the used past, then the new (B, S, M, D) behind it."""
    rows = cache.encode(new.swapaxes(1, 2))
    B, M, S, D = rows.shape
    held = 0 if past is None else past.shape[2] if past.ndim == 4 else -1
    if past is not None and past.shape != (B, M, held, D):
        raise InvalidArgument(f"{name} has shape {past.shape}; expected ({B}, {M}, P, {D})")
    if B and progress.past.max() > held:
        raise InvalidArgument(f"{name} holds {held} keys, but seqlens_k asks for {progress.past.tolist()} of them")
    present = np.zeros((B, M, max(held, progress.longest), D), rows.dtype)
    if past is not None:
        present[:, :, :held] = past
    if progress.is_even:
        start = int(progress.past[0]) if B else 0
        present[:, :, start : start + S] = rows
        return present
    for b, start in enumerate(progress.past):
        present[b, :, start : start + S] = rows[b]
    return present


def _block(progress: _Progress, S: int, is_causal: bool, window: int) -> Array | None:
    """Return True for keys behind a query, before its window, or behind the end of its sequence; None where nothing is hidden."""
    T = progress.longest
    behind_end = None if progress.is_even else np.arange(T) >= progress.total[:, None, None, None]
    if not is_causal:
        return behind_end
    if S == 1 and window < 0:
        return behind_end
    offset = int(progress.past[0]) if progress.is_even and len(progress.past) else progress.past
    outside = block_outside_window(offset, S, T, window - 1 if window > 0 else -1, 0)
    return outside if behind_end is None else outside | behind_end
