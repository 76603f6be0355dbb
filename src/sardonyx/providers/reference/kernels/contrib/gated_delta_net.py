"""GatedDeltaNet of com.microsoft: a recurrence over the tokens of packed sequences whose state is one matrix per head.

Dimension letters: B sequences, T tokens of all, N query and key heads, M value heads, K key size, V value size. All is float32.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.packed_sequences import captured_counts, packed_ranges
from sardonyx.providers.reference.algorithms.precision import quiet, require_floats, widen
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["gated_delta_net"]

_DECAYS, _CORRECTS = ("gated", "gated_delta"), ("delta", "gated_delta")
_RULES = ("linear", *_DECAYS, "delta")
_GATES = {"none": "", "softplus": "softplus", "qwen": "softplus", "sigmoid": "sigmoid", "kda": "sigmoid"}
_NORM_EPSILON = np.float32(1e-12)
"""Of the sum of squares of a query or key."""


@kernel("GatedDeltaNet", domain="com.microsoft")
@quiet
def gated_delta_net(
    call: Call,
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    cu_seqlens: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    initial_state: Array | None = None,
    a_log: Array | None = None,
    dt_bias: Array | None = None,
    capture_count: Array | None = None,
    state_update_active: Array | None = None,
    *,
    beta_activation: str = "none",
    chunk_size: int = 64,
    gate_activation: str = "none",
    gate_lower_bound: float = -5.0,
    qk_l2_norm: int = 0,
    scale: float = 0.0,
    state_update_capacity: int = 0,
    update_rule: str = "gated_delta",
) -> tuple[Array, Array, Array]:
    """Run S = exp(g) S + k (beta (v - exp(g) S^T k))^T and o = scale S^T q token by token, for each value head.

    Query and key (T, N, K), value (T, M, V), decay (T, M) or (T, M, K), beta (T, M), initial_state (B, M, V, K); the axis T may be
    two, (B, T / B). Query may hold all three in one axis. Returns o (T, M, V), the last states, and of the first `capture_count`
    tokens of each sequence the decays, keys and corrected values that replay them. Source: com.microsoft GatedDeltaNet.
    """
    require_floats(query, key, value, decay, beta, initial_state, a_log, dt_bias)
    _check_words(update_rule, gate_activation, beta_activation, gate_lower_bound)
    _check_presence(update_rule, decay, beta)
    tokens = _Tokens.of(query, key, value, initial_state)
    ranges = _ranges(tokens, cu_seqlens, initial_state)
    N, K, M, V = tokens.sizes
    shape = (len(ranges), M, V, K)
    check_output_size(shape, 4)
    if initial_state is not None and initial_state.shape != shape:
        raise InvalidArgument(f"initial_state has shape {initial_state.shape}; expected {shape}")
    gates = _gates(tokens, decay, a_log, dt_bias, _GATES[gate_activation], gate_lower_bound)
    rates = _rates(tokens, beta, beta_activation)
    counts = captured_counts(capture_count, state_update_capacity, ranges)
    if state_update_active is not None and state_update_active.shape != (1,):
        raise InvalidArgument(f"state_update_active has shape {state_update_active.shape}; expected (1,)")
    if state_update_active is not None and not state_update_active[0]:
        counts = [0] * len(ranges)
    q, k = (_unit(tokens.q), _unit(tokens.k)) if qk_l2_norm else (tokens.q, tokens.k)
    run = _Recurrence(q, k, tokens.v, gates, rates, np.float32(scale or 1 / math.sqrt(K)))
    output, states = np.empty((len(q), M, V), np.float32), np.zeros(shape, np.float32)
    if initial_state is not None:
        states[...] = initial_state
    width = M if gates is None else M * gates.shape[2]
    update = _Update.of(len(ranges), state_update_capacity, width, N * K, M * V)
    for index, part in enumerate(ranges):
        for step, token in enumerate(range(part.start, part.stop)):
            correction = run.step(states[index], token, output)
            if step < counts[index]:
                update.capture(index, step, run.decay(token), k[token], correction)
    return output.reshape(*tokens.leading, M, V).astype(query.dtype, copy=False), states, update.joined()


def _check_words(rule: str, gate: str, beta: str, bound: float) -> None:
    if rule not in _RULES or gate not in _GATES or beta not in ("none", "sigmoid"):
        raise InvalidArgument(
            f"update_rule is {rule!r}, gate_activation {gate!r} and beta_activation {beta!r}; expected {', '.join(_RULES)}; "
            f"{', '.join(_GATES)}; none or sigmoid"
        )
    if not math.isfinite(bound) or bound >= 0:
        raise InvalidArgument(f"gate_lower_bound is {bound}; expected a negative number")


def _check_presence(rule: str, decay: Array | None, beta: Array | None) -> None:
    for name, array, rules in (("decay", decay, _DECAYS), ("beta", beta, _CORRECTS)):
        if (array is None) == (rule in rules):
            is_given = "left out" if array is None else "given"
            raise InvalidArgument(f"{name} is {is_given} with update_rule {rule!r}; it belongs to {' and '.join(rules)}")


@dataclasses.dataclass(frozen=True, slots=True)
class _Tokens:
    """Query, key and value of all tokens, in float32."""

    q: Array
    """(T, N, K)."""
    k: Array
    """(T, N, K)."""
    v: Array
    """(T, M, V)."""
    leading: tuple[int, ...]
    """The axes of the tokens: (T,) or (B, T / B)."""

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """N, K, M and V."""
        return self.q.shape[1], self.q.shape[2], self.v.shape[1], self.v.shape[2]

    @staticmethod
    def of(query: Array, key: Array | None, value: Array | None, state: Array | None) -> _Tokens:
        """Merge the axes of the tokens, and part a query that holds key and value too."""
        if (key is None) != (value is None):
            raise InvalidArgument("one of key and value is left out; give both, or neither for a query that holds all three")
        if key is None or value is None:
            query, key, value = _parts(query, state)
        leading = query.shape[:-2]
        if (
            len(leading) not in (1, 2)
            or key.shape != query.shape
            or value.ndim != query.ndim
            or value.shape[:-2] != leading
            or 0 in (*query.shape[-2:], *value.shape[-2:])
            or value.shape[-2] % query.shape[-2]
        ):
            raise InvalidArgument(
                f"query, key and value have shapes {query.shape}, {key.shape} and {value.shape}; expected (T, N, K) twice and "
                "(T, M, V), or the same with (B, T / B) in place of T, where M is a multiple of N and no head is empty"
            )
        T = math.prod(leading)
        merged = [widen(array).reshape(T, *array.shape[-2:]) for array in (query, key, value)]
        return _Tokens(merged[0], merged[1], merged[2], leading)


def _parts(query: Array, state: Array | None) -> tuple[Array, Array, Array]:
    """Return query, key and value of a query (…, N x K + N x K + M x V), whose sizes the state (B, M, V, K) says."""
    if state is None or state.ndim != 4 or 0 in state.shape[1:] or query.ndim not in (2, 3):
        found = "no initial_state" if state is None else f"an initial_state of shape {state.shape}"
        raise InvalidArgument(
            f"query has shape {query.shape}, without key and value and with {found}; expected "
            "(…, 2 x N x K + M x V) and (B, M, V, K)"
        )
    _, M, V, K = state.shape
    both = query.shape[-1] - M * V
    if both <= 0 or both % (2 * K):
        raise InvalidArgument(f"query has {query.shape[-1]} features; expected 2 x N x {K} + {M * V}, after initial_state")
    leading, half = query.shape[:-1], both // 2
    q, k, v = query[..., :half], query[..., half:both], query[..., both:]
    return q.reshape(*leading, half // K, K), k.reshape(*leading, half // K, K), v.reshape(*leading, M, V)


def _ranges(tokens: _Tokens, cu_seqlens: Array | None, state: Array | None) -> list[slice]:
    """Return where each sequence lies: by cu_seqlens, or all are of one length."""
    T = len(tokens.q)
    if cu_seqlens is not None:
        if len(tokens.leading) != 1:
            raise InvalidArgument("cu_seqlens is given with tokens in two axes; give them in one, or leave it out")
        return packed_ranges(cu_seqlens, T, "cu_seqlens", may_be_empty=True)
    if len(tokens.leading) == 2:
        batch = tokens.leading[0]
    elif state is None or state.ndim == 0:
        raise InvalidArgument("cu_seqlens and initial_state are both left out, so the sequences are not known; give one of them")
    else:
        batch = len(state)
    if batch == 0 or T % batch:
        raise InvalidArgument(
            f"there are {T} tokens for {batch} sequences of one length; give cu_seqlens, or as many as divide them"
        )
    check_output_size((batch,), 8)
    length = T // batch
    return [slice(index * length, (index + 1) * length) for index in range(batch)]


def _gates(
    tokens: _Tokens, decay: Array | None, a_log: Array | None, dt_bias: Array | None, activation: str, bound: float
) -> Array | None:
    """Return the logarithm of each decay, (T, M, 1) or (T, M, K)."""
    has_parameters = a_log is not None and dt_bias is not None
    if (bool(activation) and (decay is None or not has_parameters)) or (
        not activation and (a_log is not None or dt_bias is not None)
    ):
        raise InvalidArgument(
            "a_log, dt_bias and decay belong to gate_activation softplus or sigmoid; give all, or leave it at none"
        )
    if decay is None:
        return None
    _, K, M, _ = tokens.sizes
    possible = [(*tokens.leading, M), (*tokens.leading, M, K)]
    if decay.shape not in possible:
        raise InvalidArgument(f"decay has shape {decay.shape}; expected {possible[0]} or {possible[1]}")
    gates = widen(decay).reshape(len(tokens.q), M, 1 if decay.shape == possible[0] else K)
    if a_log is None or dt_bias is None:
        return gates
    sizes = [(M,)] if decay.shape == possible[0] else [(M,), (M, K), (M * K,)]
    if a_log.shape != (M,) or dt_bias.shape not in sizes:
        raise InvalidArgument(
            f"a_log and dt_bias have shapes {a_log.shape} and {dt_bias.shape}; expected ({M},) and {' or '.join(map(str, sizes))}"
        )
    raw, factor = gates + widen(dt_bias).reshape(M, -1), np.exp(widen(a_log))[:, None]
    softplus: Array = -factor * np.logaddexp(np.float32(0), raw)
    bounded: Array = np.float32(bound) / (1 + np.exp(-factor * raw))
    return softplus if activation == "softplus" else bounded


def _rates(tokens: _Tokens, beta: Array | None, activation: str) -> Array | None:
    """Return the rate of each update, (T, M)."""
    if beta is None:
        return None
    expected = (*tokens.leading, tokens.v.shape[1])
    if beta.shape != expected:
        raise InvalidArgument(f"beta has shape {beta.shape}; expected {expected}")
    rates = widen(beta).reshape(tokens.v.shape[:2])
    return rates if activation == "none" else 1 / (1 + np.exp(-rates))


def _unit(x: Array) -> Array:
    """Return each head's vector over its length."""
    unit: Array = x / np.sqrt(np.square(x).sum(axis=-1, keepdims=True) + _NORM_EPSILON)
    return unit


@dataclasses.dataclass(frozen=True, slots=True)
class _Recurrence:
    """What all steps read."""

    q: Array
    """(T, N, K)."""
    k: Array
    """(T, N, K)."""
    v: Array
    """(T, M, V)."""
    gates: Array | None
    """(T, M, 1) or (T, M, K)."""
    rates: Array | None
    """(T, M)."""
    scale: np.float32
    """Of the output."""

    def decay(self, token: int) -> Array:
        """Return what the state is multiplied by, (M, 1) or (M, K)."""
        if self.gates is None:
            return np.ones((self.v.shape[1], 1), np.float32)
        decay: Array = np.exp(self.gates[token])
        return decay

    def step(self, state: Array, token: int, output: Array) -> Array:
        """Bring the state (M, V, K) behind a token, store its output, and return what was added along the key, (M, V)."""
        shared = self.v.shape[1] // self.q.shape[1]
        q, k = (np.repeat(array[token], shared, axis=0)[:, :, None] for array in (self.q, self.k))
        if self.gates is not None:
            state *= self.decay(token)[:, None]
        added: Array = self.v[token]
        if self.rates is not None:
            added = self.rates[token][:, None] * (added - (state @ k)[..., 0])
        state += added[:, :, None] * k[:, None, :, 0]
        output[token] = self.scale * (state @ q)[..., 0]
        return added


@dataclasses.dataclass(frozen=True, slots=True)
class _Update:
    """Captured steps: decays, keys and what was added along them; zeros in slots that hold none."""

    parts: tuple[Array, ...]
    """Each (B, slots, width)."""

    @staticmethod
    def of(batch: int, slots: int, *widths: int) -> _Update:
        """Make the parts, of these widths."""
        check_output_size((batch, slots * sum(widths)), 4)
        return _Update(tuple(np.zeros((batch, slots, width), np.float32) for width in widths))

    def capture(self, sequence: int, slot: int, *values: Array) -> None:
        """Store one step."""
        for part, value in zip(self.parts, values, strict=True):
            part[sequence, slot] = value.ravel()

    def joined(self) -> Array:
        """Return a row for each sequence: all decays, then all keys, then the rest, (B, slots x widths)."""
        return np.concatenate([part.reshape(len(part), part.shape[1] * part.shape[2]) for part in self.parts], axis=1)
