"""Attention of com.microsoft. Letters: B batch, N query heads, M key and value heads, S queries, T keys, D head size."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous, maximum
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.elements import dims_of

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


def _dim(fact: Fact | None, axis: int) -> Dim:
    """Return one dimension of an input, anonymous where unknown."""
    shape = None if fact is None else fact.shape
    return anonymous() if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]


@shape_function("GroupQueryAttention", domain=_MICROSOFT)
def group_query_attention(
    call: ShapeCall,
    query: Fact,
    key: Fact | None = None,
    value: Fact | None = None,
    past_key: Fact | None = None,
    past_value: Fact | None = None,
    seqlens_k: Fact | None = None,
    total_sequence_length: Fact | None = None,
    *others: Fact | None,
    num_heads: int,
    kv_num_heads: int,
) -> tuple[Fact, ...]:
    """Infer (B, S, N * D), packed with keys and values where `key` is left out -> the same, and the caches (B, M, T, D).

    T is the larger of the length of the past and the total length that an input holds.
    """
    B, S, hidden = (_dim(query, axis) for axis in range(3))
    size = hidden // (num_heads + 2 * kv_num_heads) if key is None else hidden // num_heads
    total = (dims_of(total_sequence_length) or [None])[0]
    past = 0 if past_key is None else _dim(past_key, 2)
    T: Dim = anonymous() if total is None else maximum(past, total)
    cached: Dim = size if past_key is None or past_key.shape is None else past_key.shape[-1]
    cache: Shape = (B, kv_num_heads, T, cached)
    key_type = query.dtype if past_key is None else past_key.dtype
    value_type = query.dtype if past_value is None else past_value.dtype
    scores = tensor(query.dtype, (B, num_heads, S, anonymous()))
    return tensor(query.dtype, (B, S, size * num_heads)), tensor(key_type, cache), tensor(value_type, cache), scores


@shape_function("MultiHeadAttention", domain=_MICROSOFT)
def multi_head_attention(
    call: ShapeCall,
    query: Fact,
    key: Fact | None = None,
    value: Fact | None = None,
    bias: Fact | None = None,
    mask: Fact | None = None,
    attention_bias: Fact | None = None,
    past_key: Fact | None = None,
    past_value: Fact | None = None,
    past_sequence_length: Fact | None = None,
    *others: Fact | None,
    num_heads: int,
) -> tuple[Fact, ...]:
    """Infer (B, S, N * D), packed as (B, S, N, 3, D), or with keys and values packed as (B, T, N, 2, D) -> (B, S, N * V's size)."""
    if query.shape is None:
        return (tensor(query.dtype),) * 4
    B, S = query.shape[:2]
    is_packed = len(query.shape) == 5
    D: Dim = query.shape[-1] if is_packed else query.shape[2] // num_heads
    added, value_size = _keys(key, value, S, D, num_heads, is_packed)
    T: Dim = added + (0 if past_key is None else _dim(past_key, 2))
    kept = T
    if past_key is not None and past_sequence_length is not None:
        T, kept = anonymous(), _dim(past_key, 2)
    output = (B, S, value_size * num_heads)
    present, scores = (B, num_heads, kept, D), (B, num_heads, S, T)
    return (
        tensor(query.dtype, output),
        tensor(query.dtype, present),
        tensor(query.dtype, (*present[:3], value_size)),
        tensor(query.dtype, scores),
    )


def _keys(key: Fact | None, value: Fact | None, S: Dim, D: Dim, num_heads: int, is_packed: bool) -> tuple[Dim, Dim]:
    """Return how many keys are added, and the head size of the values."""
    if is_packed:
        return S, D
    if key is not None and key.shape is not None and len(key.shape) == 5:
        return key.shape[1], D
    if key is not None and key.shape is not None and len(key.shape) == 4:
        return key.shape[2], _dim(value, 3)
    return _dim(key, 1), _dim(value, 2) // num_heads


@shape_function("Attention", domain=_MICROSOFT)
def attention(
    call: ShapeCall,
    x: Fact,
    weights: Fact,
    bias: Fact | None = None,
    mask: Fact | None = None,
    past: Fact | None = None,
    *others: Fact | None,
    num_heads: int,
    qkv_hidden_sizes: Sequence[int] = (),
    past_present_share_buffer: int = 0,
) -> tuple[Fact, ...]:
    """Infer (B, S, hidden) times packed weights (hidden, Q + K + V) -> (B, S, V) and the cache (2, B, N, T, D)."""
    return _packed(x, weights, past, num_heads, qkv_hidden_sizes, past_present_share_buffer)


@shape_function("QAttention", domain=_MICROSOFT)
def qattention(
    call: ShapeCall,
    x: Fact,
    weights: Fact,
    bias: Fact,
    x_scale: Fact,
    w_scale: Fact,
    mask: Fact | None = None,
    x_zero: Fact | None = None,
    w_zero: Fact | None = None,
    past: Fact | None = None,
    *,
    num_heads: int,
    past_present_share_buffer: int = 0,
) -> tuple[Fact, ...]:
    """Return the same of quantized tensors, in the type of the bias."""
    return tuple([tensor(bias.dtype, fact.shape) for fact in _packed(x, weights, past, num_heads, (), past_present_share_buffer)])


def _packed(
    x: Fact, weights: Fact, past: Fact | None, num_heads: int, sizes: Sequence[int], shares_buffer: int
) -> tuple[Fact, ...]:
    B, S = _dim(x, 0), _dim(x, 1)
    hidden: Dim = sizes[2] if len(sizes) == 3 else _dim(weights, 1) // 3
    D: Dim = sizes[0] // num_heads if sizes else hidden // num_heads
    T: Dim = S if past is None else _dim(past, 3) + (0 if shares_buffer else S)
    return tensor(x.dtype, (B, S, hidden)), tensor(x.dtype, (2, B, num_heads, T, D))


@shape_function("MRotaryEmbedding", domain=_MICROSOFT)
def rotated(call: ShapeCall, x: Fact, *others: Fact | None) -> Fact:
    """Give the output the shape and type of the first input."""
    return tensor(x.dtype, x.shape)


@shape_function("SparseAttention", domain=_MICROSOFT)
def sparse_attention(
    call: ShapeCall,
    query: Fact,
    key: Fact | None,
    value: Fact | None,
    past_key: Fact,
    past_value: Fact,
    *others: Fact | None,
    num_heads: int,
    kv_num_heads: int,
) -> tuple[Fact, ...]:
    """Infer (B, S, N * D), packed with keys and values where `key` is left out -> the same, and the caches as they were."""
    B, S, hidden = (_dim(query, axis) for axis in range(3))
    size = hidden // (num_heads + 2 * kv_num_heads) if key is None else hidden // num_heads
    caches = (tensor(past_key.dtype, past_key.shape), tensor(past_value.dtype, past_value.shape))
    return tensor(query.dtype, (B, S, size * num_heads)), *caches


@shape_function("DecoderMaskedMultiHeadAttention", domain=_MICROSOFT)
def decoder_masked_multi_head_attention(
    call: ShapeCall,
    query: Fact,
    key: Fact | None = None,
    value: Fact | None = None,
    mask: Fact | None = None,
    attention_bias: Fact | None = None,
    past_key: Fact | None = None,
    past_value: Fact | None = None,
    *others: Fact | None,
    num_heads: int,
    past_present_share_buffer: int = 0,
) -> tuple[Fact, ...]:
    """Infer one query per sequence (B, 1, hidden) -> (B, 1, N * V's size), the caches (B, N, T, D) and the weights (B, N, 1, T)."""
    B, dtype = _dim(query, 0), query.dtype
    if key is not None and key.shape is not None and len(key.shape) == 4:
        sizes = (key.shape[3], _dim(value, 3))
        T: Dim = key.shape[2]
        cached = T
    else:
        hidden = _dim(query, 2)
        sizes = (hidden // 3 // num_heads,) * 2 if key is None else (hidden // num_heads, _dim(value, 2) // num_heads)
        T = 1 if past_key is None else anonymous() if past_present_share_buffer else _dim(past_key, 2) + 1
        cached = _dim(past_key, 2) if past_key is not None and past_present_share_buffer else T
    caches = [tensor(dtype, (B, num_heads, cached, size)) for size in sizes]
    return tensor(dtype, (B, 1, sizes[1] * num_heads)), *caches, tensor(dtype, (B, num_heads, 1, T))


@shape_function("DecoderMaskedSelfAttention", domain=_MICROSOFT)
def decoder_masked_self_attention(
    call: ShapeCall,
    x: Fact,
    weights: Fact,
    bias: Fact,
    mask: Fact | None = None,
    past: Fact | None = None,
    *others: Fact | None,
    num_heads: int,
    past_present_share_buffer: int = 0,
) -> tuple[Fact, ...]:
    """Infer as for Attention, of one token."""
    return _packed(x, weights, past, num_heads, (), past_present_share_buffer)


@shape_function("PagedAttention", domain=_MICROSOFT)
def paged_attention(
    call: ShapeCall,
    query: Fact,
    key: Fact | None = None,
    value: Fact | None = None,
    key_cache: Fact | None = None,
    value_cache: Fact | None = None,
    *others: Fact | None,
    num_heads: int,
    kv_num_heads: int,
    v_head_size: int = 0,
) -> tuple[Fact, ...]:
    """Infer (tokens, N * D), packed with keys and values where `key` is left out -> the same, and the caches as they were."""
    tokens, hidden = _dim(query, 0), _dim(query, 1)
    size = v_head_size or (hidden // (num_heads + 2 * kv_num_heads) if key is None else hidden // num_heads)
    caches = [tensor(fact.dtype, fact.shape) for fact in (key_cache, value_cache) if fact is not None]
    return tensor(query.dtype, (tokens, size * num_heads)), *caches
