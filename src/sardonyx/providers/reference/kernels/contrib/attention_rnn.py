"""AttnLSTM of com.microsoft: an LSTM whose input in each step is joined by what it attends to.

Dimension letters: T time steps, N batch, F input features, H hidden units, D directions, S memory steps, M memory features, A
features of the attention, Z features of its state.

    KEYS = memory x MW                                          (N, S, A)
    h, c = LSTM(concat(X[t], state), h, c)
    align = softmax(sum(V * tanh(KEYS + h x QW)))               (N, S), over the memory's length
    context = align x memory                                    (N, M)
    state = concat(h, context) x AW, or context without AW      (N, Z)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.rnn_activation import choose_activations
from sardonyx.providers.reference.algorithms.rnn_cell import LstmCell
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["attn_lstm"]

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclasses.dataclass(frozen=True, slots=True)
class _Attention:
    """The attention of one direction."""

    memory: Array
    """(N, S, M), 0 after each memory's length."""
    keys: Array
    """(N, S, A)."""
    open: Array
    """(N, S): which memory steps there are."""
    query: Array
    """QW (H, A)."""
    vector: Array
    """V (A,)."""
    layer: Array | None
    """AW (H + M, Z)."""

    def state(self, hidden: Array) -> Array:
        """Return the next state of hidden states (N, H)."""
        scores = np.tanh(self.keys + (hidden @ self.query)[:, None]) @ self.vector
        scores = np.where(self.open, scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        context = np.einsum("ns,nsm->nm", weights / weights.sum(axis=1, keepdims=True), self.memory)
        return context if self.layer is None else np.concatenate([hidden, context], axis=1) @ self.layer


@kernel("AttnLSTM", domain="com.microsoft")
def attn_lstm(
    call: Call,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    peepholes: Array | None = None,
    query: Array | None = None,
    memory_weights: Array | None = None,
    vector: Array | None = None,
    memory: Array | None = None,
    memory_lens: Array | None = None,
    layer: Array | None = None,
    *,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> tuple[Array, Array, Array]:
    """Run an LSTM with attention: Y (T, D, N, H), Y_h and Y_c (D, N, H).

    X (T, N, F), W (D, 4H, F + Z), R (D, 4H, H), B (D, 8H), P (D, 3H), QW (D, H, A), MW (D, M, A), V (D, A), memory (N, S, M), AW
    (D, H + M, Z); gates in the order i, o, f, c. Source: com.microsoft AttnLSTM.
    """
    if direction not in _DIRECTIONS:
        raise InvalidArgument(f"direction is {direction!r}; expected one of {', '.join(_DIRECTIONS)}")
    if x.ndim != 3 or recurrence.ndim != 3 or query is None or memory_weights is None or vector is None or memory is None:
        raise InvalidArgument(f"X and R have shapes {x.shape} and {recurrence.shape}; expected rank 3, and QW, MW, V and M")
    (T, N, F), H, D = x.shape, recurrence.shape[2], len(_DIRECTIONS[direction])
    if memory.ndim != 3 or memory.shape[0] != N or memory.shape[1] == 0:
        raise InvalidArgument(f"M has shape {memory.shape}; expected ({N}, steps, features) with at least one step")
    S, M = memory.shape[1:]
    A = query.shape[-1] if query.ndim else 0
    Z = M if layer is None else layer.shape[-1] if layer.ndim else 0
    shapes = {
        "W": (weights, (D, 4 * H, F + Z)),
        "R": (recurrence, (D, 4 * H, H)),
        "B": (bias, (D, 8 * H)),
        "initial_h": (initial_h, (D, N, H)),
        "initial_c": (initial_c, (D, N, H)),
        "P": (peepholes, (D, 3 * H)),
        "QW": (query, (D, H, A)),
        "MW": (memory_weights, (D, M, A)),
        "V": (vector, (D, A)),
        "AW": (layer, (D, H + M, Z)),
        "sequence_lens": (sequence_lens, (N,)),
        "memory_seq_lens": (memory_lens, (N,)),
    }
    for name, (array, shape) in shapes.items():
        if array is not None and array.shape != shape:
            raise InvalidArgument(f"{name} has shape {array.shape}; the other inputs make it {shape}")
    if hidden_size not in (None, H):
        raise InvalidArgument(f"hidden_size is {hidden_size}, but R has shape {recurrence.shape}")
    lengths, open_steps = _lengths("sequence_lens", sequence_lens, N, T), _lengths("memory_seq_lens", memory_lens, N, S)
    is_open = np.arange(S) < np.maximum(open_steps, 1)[:, None]
    kept = np.where((np.arange(S) < open_steps[:, None])[:, :, None], memory, memory.dtype.type(0))
    names = activations or ("Sigmoid", "Tanh", "Tanh") * D
    chosen = choose_activations("LSTM", direction, names, 3, activation_alpha, activation_beta)
    y = np.zeros((T, D, N, H), x.dtype)
    y_h, y_c = np.zeros((2, D, N, H), x.dtype)
    zeros = np.zeros((N, H), x.dtype)
    for d, (functions, is_backward) in enumerate(zip(chosen, _DIRECTIONS[direction], strict=True)):
        own_layer = None if layer is None else layer[d]
        attention = _Attention(kept, kept @ memory_weights[d], is_open, query[d], vector[d], own_layer)
        start = zeros if initial_c is None else initial_c[d]
        holes = None if peepholes is None else peepholes[d].reshape(3, H)
        cell = LstmCell(np.require(recurrence[d], None, "A"), functions, clip, start, holes, bool(input_forget))
        offset = 0 if bias is None else bias[d].reshape(2, 4 * H).sum(axis=0)
        first = zeros if initial_h is None else initial_h[d]
        y_h[d], y_c[d] = _run(x, weights[d], offset, cell, attention, lengths, first, y[:, d], Z, is_backward)
    return y, y_h, y_c


def _run(
    x: Array,
    weights: Array,
    bias: Array | int,
    cell: LstmCell,
    attention: _Attention,
    lengths: Array,
    hidden: Array,
    y: Array,
    state_size: int,
    is_backward: bool,
) -> tuple[Array, Array]:
    """Fill y (T, N, H) and return the last hidden and cell states of each sequence, which runs from its own end or start."""
    T, N = x.shape[:2]
    batch = np.arange(N)
    hidden, state = hidden.copy(), np.zeros((N, state_size), x.dtype)
    last_cell = cell.cell.copy()
    for step in range(T):
        running = step < lengths
        if not running.any():
            break
        places = np.where(running, lengths - 1 - step if is_backward else step, 0)
        out = np.empty_like(hidden)
        cell.step(np.concatenate([x[places, batch], state], axis=1) @ weights.T + bias, hidden, out)
        y[places[running], batch[running]] = out[running]
        hidden[running] = out[running]
        last_cell[running] = cell.cell[running]
        state = attention.state(hidden)
    return hidden, last_cell


def _lengths(name: str, given: Array | None, count: int, most: int) -> Array:
    if given is None:
        return np.full(count, most)
    if count and (given.min() < 0 or given.max() > most):
        raise InvalidArgument(f"{name} holds {given.tolist()}; each must lie between 0 and {most}")
    return given.astype(np.int64)
