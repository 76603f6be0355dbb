"""Attention. Letters: B batch, N query heads, M key and value heads, S queries, T keys, D head size."""

from __future__ import annotations

from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank, unknown_shape

__all__: list[str] = []


@shape_function("Attention")
def attention(
    call: ShapeCall,
    q: Fact,
    k: Fact,
    v: Fact,
    mask: Fact | None = None,
    past_key: Fact | None = None,
    past_value: Fact | None = None,
    nonpad_kv_seqlen: Fact | None = None,
    *,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
) -> tuple[Fact, ...]:
    """Give the output the shape of Q with V's head size; past and present keys are (B, M, T, D); scores are (B, N, S, T)."""
    shapes = [require_rank(fact, name, 3, 4) for fact, name in ((q, "Q"), (k, "K"), (v, "V"))]
    queries, keys, values = (
        _heads(shape, heads) for shape, heads in zip(shapes, (q_num_heads, kv_num_heads, kv_num_heads), strict=True)
    )
    if queries is None or keys is None or values is None:
        rank = next((len(shape) for shape in shapes if shape is not None), None)
        output_shape = None if rank is None else unknown_shape(rank)
        return tensor(q.dtype, output_shape), tensor(k.dtype), tensor(v.dtype), tensor(q.dtype)
    B, N, S, _ = queries
    T = keys[2] + _past_length(past_key)
    output: Shape = (B, N, S, values[3]) if shapes[0] is not None and len(shapes[0]) == 4 else (B, S, N * values[3])
    present_key, present_value = (B, keys[1], T, keys[3]), (B, values[1], T, values[3])
    return tensor(q.dtype, output), tensor(k.dtype, present_key), tensor(v.dtype, present_value), tensor(q.dtype, (B, N, S, T))


def _heads(shape: Shape | None, heads: int | None) -> Shape | None:
    """Return (B, heads, S, D), also from (B, S, heads * D)."""
    if shape is None or len(shape) == 4:
        return shape
    if heads is None or heads < 1:
        return None
    return shape[0], heads, shape[1], shape[2] // heads


def _past_length(past: Fact | None) -> Dim:
    if past is None:
        return 0
    shape = require_rank(past, "past_key", 4, 4)
    return anonymous() if shape is None else shape[2]


@shape_function("FlexAttention", domain="ai.onnx.preview")
def flex_attention(call: ShapeCall, q: Fact, k: Fact, v: Fact) -> Fact:
    """Return (B, N, S, D) with V's head size."""
    queries, values = require_rank(q, "Q", 4, 4), require_rank(v, "V", 4, 4)
    if queries is None:
        return tensor(q.dtype, unknown_shape(4))
    return tensor(q.dtype, (*queries[:3], anonymous() if values is None else values[3]))


@shape_function("RotaryEmbedding")
@shape_function("RotaryEmbedding", domain="com.microsoft")
def rotary_embedding(call: ShapeCall, x: Fact, *others: Fact | None) -> Fact:
    """Give the output the shape and type of the input."""
    return tensor(x.dtype, x.shape)


@shape_function("LinearAttention")
@shape_function("LinearAttention", domain="com.microsoft")
def linear_attention(
    call: ShapeCall,
    q: Fact,
    k: Fact,
    v: Fact,
    past: Fact | None = None,
    *others: Fact | None,
    q_num_heads: int = 1,
    kv_num_heads: int = 1,
    state_window: int = 0,
) -> tuple[Fact, ...]:
    """Infer packed (B, S, heads * size) -> the same with as many heads of V's size, and the state (B, M, D, V's size).

    There are as many heads as queries or as states have, whichever are more; those of com.microsoft may be the states'. A window
    of W states (W, B, M, D, V's size) comes before.
    """
    queries, values = require_rank(q, "query", 3, 3), require_rank(v, "value", 3, 3)
    dtype = q.dtype if past is None else past.dtype
    if queries is None or values is None or q_num_heads < 1 or kv_num_heads < 1:
        return tensor(q.dtype, unknown_shape(3)), tensor(dtype, unknown_shape(5 if state_window else 4))
    heads = max(q_num_heads, kv_num_heads)
    size, value_size = queries[2] // q_num_heads, values[2] // kv_num_heads
    state = (queries[0], kv_num_heads, size, value_size)
    return tensor(q.dtype, (*queries[:2], value_size * heads)), tensor(dtype, (state_window, *state) if state_window else state)
