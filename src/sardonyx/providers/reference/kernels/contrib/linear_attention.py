"""LinearAttention: a recurrence over time whose state is one matrix per head.

Dimension letters: B batch, T steps, N query heads, M key and value heads, K key size, V value size.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.scaled_dot_product import check_heads
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["linear_attention", "microsoft_linear_attention"]


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
    check_heads(q_num_heads, kv_num_heads)
    past = None if past_state is None else past_state[None]
    output, states = _recur(query, key, value, past, decay, beta, q_num_heads, kv_num_heads, scale, update_rule, 1)
    return output, states[0]


@kernel("LinearAttention", domain="com.microsoft")
def microsoft_linear_attention(
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
    state_window: int = 0,
    update_rule: str = "gated_delta",
) -> tuple[Array, Array]:
    """Compute LinearAttention, which may also have more key heads than query heads and keep the states after the last steps.

    With `state_window` W the states are (W, B, M, K, V): slot j holds the state after step T - W + j, zeros where there is no
    such step, and the last slot is the one that is read.
    A decay or beta that the rule does not use counts for nothing. Source: com.microsoft LinearAttention.
    """
    if q_num_heads > kv_num_heads:
        check_heads(q_num_heads, kv_num_heads)
    else:
        check_heads(kv_num_heads, q_num_heads)
    past = past_state[None] if past_state is not None and state_window == 0 else past_state
    slots = max(state_window, 1)
    rule = _RULES.get(update_rule)
    if rule is not None:
        decay, beta = decay if rule.decays else None, beta if rule.corrects else None
    output, states = _recur(query, key, value, past, decay, beta, q_num_heads, kv_num_heads, scale, update_rule, slots)
    return output, states if state_window else states[0]


def _recur(
    query: Array,
    key: Array,
    value: Array,
    past: Array | None,
    decay: Array | None,
    beta: Array | None,
    N: int,
    M: int,
    scale: float,
    update_rule: str,
    slots: int,
) -> tuple[Array, Array]:
    """Return the outputs (B, T, max(N, M) x V) and the states after the last `slots` steps (slots, B, M, K, V)."""
    rule = _RULES.get(update_rule)
    if rule is None:
        raise InvalidArgument(f"update_rule is {update_rule!r}; expected one of {', '.join(_RULES)}")
    _check_gate(update_rule, "decay", decay, rule.decays)
    _check_gate(update_rule, "beta", beta, rule.corrects)
    q, k, v = _unpack("query", query, N), _unpack("key", key, M), _unpack("value", value, M)
    if N < M:
        q = np.repeat(q, M // N, axis=2)
    B, T, heads, size = q.shape
    if k.shape != (B, T, M, size) or v.shape[:2] != (B, T):
        raise InvalidArgument(f"query {query.shape}, key {key.shape} and value {value.shape} differ in batch, steps or key size")
    decays = None if decay is None else np.exp(_per_step("decay", decay, (B, T), {M: (M, 1), M * size: (M, size)}))
    betas = None if beta is None else _per_step("beta", beta, (B, T), {M: (M, 1), 1: (1, 1)})
    state = _start(past, (slots, B, M, size, v.shape[3]))
    states = np.zeros((slots, *state.shape), np.float32)
    grouped = (q * np.float32(scale or 1 / math.sqrt(max(size, 1)))).reshape(B, T, M, heads // M, size)
    output = np.empty((B, T, M, heads // M, v.shape[3]), np.float32)
    for t in range(T):
        written = v[:, t]
        if decays is not None:
            state *= decays[:, t, :, :, None]
        if betas is not None:
            written = betas[:, t] * (written - np.matmul(k[:, t, :, None], state)[:, :, 0])
        state += k[:, t, :, :, None] * written[:, :, None]
        np.matmul(grouped[:, t], state, out=output[:, t])
        if t >= T - slots:
            states[t - T] = state
    if T == 0:
        states[-1] = state
    merged = output.reshape(B, T, heads * v.shape[3]).astype(query.dtype, copy=False)
    return merged, states.astype(query.dtype if past is None else past.dtype, copy=False)


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
    """Return the state to begin with, from the last slot of `past`; `shape` is (slots, B, M, K, V)."""
    if past is None:
        return np.zeros(shape[1:], np.float32)
    if past.shape != shape:
        raise InvalidArgument(f"past_state has shape {past.shape}; expected {shape} with its slots, or {shape[1:]} without")
    state: Array = past[-1].astype(np.float32)
    return state
