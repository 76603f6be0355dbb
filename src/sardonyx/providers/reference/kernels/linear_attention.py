"""LinearAttention: a recurrence over time whose state is one matrix per head.

Dimension letters: B batch, T steps, N query heads, M key and value heads, K key size, V value size.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.kernels.scaled_dot_product import check_heads
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["linear_attention"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Rule:
    decays: bool
    """The state shrinks by exp(decay) before each step."""
    corrects: bool
    """What the state already returns for the key is taken off the value, which beta then scales."""


_RULES = {
    "linear": _Rule(decays=False, corrects=False),
    "gated": _Rule(decays=True, corrects=False),
    "delta": _Rule(decays=False, corrects=True),
    "gated_delta": _Rule(decays=True, corrects=True),
}


@kernel("LinearAttention", since=27)
def linear_attention(
    call: Call,
    query: Array,
    key: Array,
    value: Array,
    past_state: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[Array, Array]:
    """Run S = exp(g) S + b k (v - S^T k)^T and o = scale x S^T q step by step; return o (B, T, N x V) and S (B, M, K, V).

    Query (B, T, N x K), key (B, T, M x K), value (B, T, M x V), decay (B, T, M) or (B, T, M x K), beta (B, T, M) or (B, T, 1).
    State and sums are float32. Source: ONNX LinearAttention-27.
    """
    rule = _RULES.get(update_rule)
    if rule is None:
        raise InvalidArgument(f"update_rule is {update_rule!r}; expected one of {', '.join(_RULES)}")
    _check_gate(update_rule, "decay", decay, rule.decays)
    _check_gate(update_rule, "beta", beta, rule.corrects)
    check_heads(q_num_heads, kv_num_heads)
    q = _unpack("query", query, q_num_heads)
    k = _unpack("key", key, kv_num_heads)
    v = _unpack("value", value, kv_num_heads)
    B, T, N, size = q.shape
    M = kv_num_heads
    if k.shape != (B, T, M, size) or v.shape[:2] != (B, T):
        raise InvalidArgument(f"query {query.shape}, key {key.shape} and value {value.shape} differ in batch, steps or key size")
    decays = None if decay is None else np.exp(_per_step("decay", decay, (B, T), {M: (M, 1), M * size: (M, size)}))
    betas = None if beta is None else _per_step("beta", beta, (B, T), {M: (M, 1), 1: (1, 1)})
    state = _start(past_state, (B, M, size, v.shape[3]))
    grouped = (q * np.float32(scale or 1 / math.sqrt(max(size, 1)))).reshape(B, T, M, N // M, size)
    output = np.empty((B, T, M, N // M, v.shape[3]), np.float32)
    for t in range(T):
        written = v[:, t]
        if decays is not None:
            state *= decays[:, t, :, :, None]
        if betas is not None:
            written = betas[:, t] * (written - np.matmul(k[:, t, :, None], state)[:, :, 0])
        state += k[:, t, :, :, None] * written[:, :, None]
        np.matmul(grouped[:, t], state, out=output[:, t])
    present = state.astype(query.dtype if past_state is None else past_state.dtype, copy=False)
    return output.reshape(B, T, N * v.shape[3]).astype(query.dtype, copy=False), present


def _check_gate(rule: str, name: str, gate: Array | None, needed: bool) -> None:
    if (gate is not None) != needed:
        raise InvalidArgument(f"update_rule {rule!r} {'needs' if needed else 'takes no'} input {name}")


def _unpack(name: str, x: Array, heads: int) -> Array:
    if x.ndim != 3 or x.shape[2] % heads:
        raise InvalidArgument(f"{name} has shape {x.shape}; expected (batch, steps, {heads} heads x size)")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).astype(np.float32, copy=False)


def _per_step(name: str, x: Array, leading: tuple[int, int], shapes: dict[int, tuple[int, int]]) -> Array:
    if x.ndim != 3 or x.shape[:2] != leading or x.shape[2] not in shapes:
        raise InvalidArgument(f"{name} has shape {x.shape}; expected {leading} and then one of {sorted(shapes)}")
    return x.reshape(*leading, *shapes[x.shape[2]]).astype(np.float32, copy=False)


def _start(past: Array | None, shape: tuple[int, ...]) -> Array:
    if past is None:
        return np.zeros(shape, np.float32)
    if past.shape != shape:
        raise InvalidArgument(f"past_state has shape {past.shape}; expected {shape}")
    return past.astype(np.float32)
