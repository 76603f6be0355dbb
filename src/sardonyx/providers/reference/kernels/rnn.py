"""RNN, GRU and LSTM: one matrix product projects the input of all time steps, then a loop over time runs a cell.

Dimension letters: T time steps, N batch, I input features, H hidden units, D directions. Half types compute in float32 and are
rounded once, in the outputs.

    X (T, N, I) ─ W^T, + Wb + Rb ─► (T, N, gates x H) ─ cell, step by step ─► Y (T, D, N, H), Y_h (D, N, H), Y_c
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
from sardonyx.providers.reference.algorithms.rnn_activation import choose_activations
from sardonyx.providers.reference.algorithms.rnn_cell import Cell, GruCell, LstmCell, RnnCell
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["LstmOptions", "gru", "lstm", "rnn", "run_lstm"]

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}


@dataclasses.dataclass(frozen=True, slots=True)
class _Problem:
    """The inputs of a recurrent node, checked, in the computing type and with time first."""

    x: Array
    """(T, N, I)."""
    weights: Array
    """(D, gates x H, I)."""
    recurrence: Array
    """(D, gates x H, H), aligned: a product in each step would else copy it each time."""
    bias: Array | None
    """(D, gates x H): what is added to the projected input."""
    lengths: Array | None
    """(N,), or None where every sequence has T steps."""
    hidden: Array
    """Initial hidden state (D, N, H)."""
    direction: str
    """forward, reverse or bidirectional."""
    layout: int
    """0: time first in the node's arrays; 1: batch first."""

    @property
    def backward(self) -> tuple[bool, ...]:
        """For each direction, whether it runs from the last step to the first."""
        return (False, True) if self.direction == "bidirectional" else (self.direction == "reverse",)


@kernel("RNN")
def rnn(
    call: Call,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    activations: Sequence[str] = ("Tanh", "Tanh"),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Array, ...]:
    """Run a simple recurrent network: Y (T, D, N, H) and Y_h (D, N, H), batch first where `layout` is 1.

    X (T, N, I), W (D, H, I), R (D, H, H), B (D, 2H). Source: ONNX RNN-22; RNN-1 differs in wording alone.
    """
    problem = _prepare(call, x, weights, recurrence, bias, sequence_lens, initial_h, direction, hidden_size, layout)
    chosen = choose_activations("RNN", direction, activations, 1, activation_alpha, activation_beta)
    cells = [RnnCell(problem.recurrence[d], functions, clip) for d, functions in enumerate(chosen)]
    return _run(problem, cells, x.dtype)


@kernel("GRU")
def gru(
    call: Call,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Array, ...]:
    """Run a gated recurrent unit: Y (T, D, N, H) and Y_h (D, N, H), batch first where `layout` is 1.

    X (T, N, I), W (D, 3H, I), R (D, 3H, H), B (D, 6H), gates in the order z, r, h. Source: ONNX GRU-22; GRU-1 is the case
    `linear_before_reset` = 0 and misspells its default direction "foward".
    """
    direction = "forward" if direction == "foward" else direction
    problem = _prepare(call, x, weights, recurrence, bias, sequence_lens, initial_h, direction, hidden_size, layout)
    names = activations or ("Sigmoid", "Tanh") * _DIRECTIONS[direction]
    chosen = choose_activations("GRU", direction, names, 2, activation_alpha, activation_beta)
    hidden_bias = None
    if linear_before_reset and bias is not None:
        input_bias, hidden_bias = _split_bias(bias.astype(problem.x.dtype, copy=False), problem.hidden.shape[2])
        problem = dataclasses.replace(problem, bias=input_bias)
    linear, batch = bool(linear_before_reset), problem.x.shape[1]
    cells = [
        GruCell(problem.recurrence[d], functions, clip, batch, linear, None if hidden_bias is None else hidden_bias[d])
        for d, functions in enumerate(chosen)
    ]
    return _run(problem, cells, x.dtype)


@kernel("LSTM")
def lstm(
    call: Call,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    peepholes: Array | None = None,
    *,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Array, ...]:
    """Run a long short-term memory: Y (T, D, N, H), Y_h and Y_c (D, N, H), batch first where `layout` is 1.

    X (T, N, I), W (D, 4H, I), R (D, 4H, H), B (D, 8H), P (D, 3H); gates in the order i, o, f, c. Source: ONNX LSTM-22.
    """
    return run_lstm(
        call,
        (x, weights, recurrence, bias, sequence_lens, initial_h, initial_c, peepholes),
        LstmOptions(activations, activation_alpha, activation_beta, clip, direction, hidden_size, bool(input_forget), layout),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class LstmOptions:
    """The attributes of an LSTM."""

    activations: Sequence[str]
    activation_alpha: Sequence[float]
    activation_beta: Sequence[float]
    clip: float | None
    direction: str
    hidden_size: int | None
    input_forget: bool
    layout: int = 0


def run_lstm(
    call: Call, inputs: Sequence[Array | None], options: LstmOptions, cell_type: type[LstmCell] = LstmCell
) -> tuple[Array, ...]:
    """Run an LSTM on its eight inputs with cells of a type; see `lstm`."""
    x, weights, recurrence, bias, sequence_lens, initial_h, initial_c, peepholes = inputs
    if x is None or weights is None or recurrence is None:
        raise InvalidArgument("X, W or R is left out")
    direction, layout = options.direction, options.layout
    problem = _prepare(call, x, weights, recurrence, bias, sequence_lens, initial_h, direction, options.hidden_size, layout)
    names = options.activations or ("Sigmoid", "Tanh", "Tanh") * _DIRECTIONS[direction]
    chosen = choose_activations("LSTM", direction, names, 3, options.activation_alpha, options.activation_beta)
    D, N, H = problem.hidden.shape
    start = _initial_state("initial_c", initial_c, (D, N, H), layout, problem.x.dtype)
    if peepholes is not None:
        _expect("P", peepholes, (D, 3 * H))
        peepholes = peepholes.astype(problem.x.dtype, copy=False).reshape(D, 3, H)
    cells = [
        cell_type(
            problem.recurrence[d],
            functions,
            options.clip,
            start[d],
            None if peepholes is None else peepholes[d],
            options.input_forget,
        )
        for d, functions in enumerate(chosen)
    ]
    y, y_h = _run(problem, cells, x.dtype)
    y_c = np.stack([cell.cell for cell in cells]).astype(x.dtype, copy=False)
    return y, y_h, y_c.swapaxes(0, 1) if layout else y_c


def _prepare(
    call: Call,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    direction: str,
    hidden_size: int | None,
    layout: int,
) -> _Problem:
    if direction not in _DIRECTIONS:
        raise InvalidArgument(f"direction is {direction!r}; expected one of {', '.join(_DIRECTIONS)}")
    if layout not in (0, 1):
        raise InvalidArgument(f"layout is {layout}; expected 0 (time first) or 1 (batch first)")
    if x.ndim != 3 or recurrence.ndim != 3:
        raise InvalidArgument(f"X and R must have rank 3, got shapes {x.shape} and {recurrence.shape}")
    if layout:
        x = x.swapaxes(0, 1)
    T, N, features = x.shape
    D, H, gates = _DIRECTIONS[direction], recurrence.shape[2], _GATES[call.op_type]
    if hidden_size is not None and hidden_size != H:
        raise InvalidArgument(f"hidden_size is {hidden_size}, but R has shape {recurrence.shape}: its last dimension must equal it")
    _expect("W", weights, (D, gates * H, features))
    _expect("R", recurrence, (D, gates * H, H))
    if bias is not None:
        _expect("B", bias, (D, 2 * gates * H))
    dtype = np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
    return _Problem(
        x=x.astype(dtype, copy=False),
        weights=np.require(weights, dtype, "A"),
        recurrence=np.require(recurrence, dtype, "A"),
        bias=None if bias is None else bias.astype(dtype, copy=False).reshape(D, 2, gates * H).sum(axis=1),
        lengths=_check_lengths(sequence_lens, T, N),
        hidden=_initial_state("initial_h", initial_h, (D, N, H), layout, dtype),
        direction=direction,
        layout=layout,
    )


def _expect(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InvalidArgument(f"{name} has shape {array.shape}; the shapes of X and R, direction and layout make it {shape}")


def _check_lengths(lengths: Array | None, T: int, N: int) -> Array | None:
    if lengths is None:
        return None
    _expect("sequence_lens", lengths, (N,))
    if N and (lengths.min() < 0 or lengths.max() > T):
        raise InvalidArgument(f"sequence_lens holds {lengths.tolist()}; each must lie between 0 and the {T} steps of X")
    return None if (lengths == T).all() else lengths


def _initial_state(name: str, state: Array | None, shape: tuple[int, ...], layout: int, dtype: np.dtype[np.generic]) -> Array:
    if state is None:
        return np.zeros(shape, dtype)
    if layout and state.ndim == 3:
        state = state.swapaxes(0, 1)
    _expect(name, state, shape)
    return np.ascontiguousarray(state, dtype)


def _split_bias(bias: Array, H: int) -> tuple[Array, Array]:
    """Return B of a GRU as (D, 3H) for the projected input and Rbh (D, H), which linear_before_reset puts behind the reset gate."""
    halves = bias.reshape(len(bias), 2, 3 * H)
    input_bias = halves.sum(axis=1)
    input_bias[:, 2 * H :] = halves[:, 0, 2 * H :]
    return input_bias, halves[:, 1, 2 * H :]


def _run(problem: _Problem, cells: Sequence[Cell], dtype: np.dtype[np.generic]) -> tuple[Array, Array]:
    """Run every direction; return Y and Y_h in `dtype` and in the node's layout."""
    T, N, _ = problem.x.shape
    D, _, H = problem.hidden.shape
    y = np.empty((T, D, N, H), problem.x.dtype)
    y_h = np.empty((D, N, H), problem.x.dtype)
    run: Callable[[_Problem, int, Cell, Array], Array] = _run_whole if problem.lengths is None else _run_ragged
    with np.errstate(over="ignore"):
        for d, cell in enumerate(cells):
            y_h[d] = run(problem, d, cell, y[:, d])
    y, y_h = y.astype(dtype, copy=False), y_h.astype(dtype, copy=False)
    return (y.transpose(2, 0, 1, 3), y_h.swapaxes(0, 1)) if problem.layout else (y, y_h)


def _run_whole(problem: _Problem, d: int, cell: Cell, y: Array) -> Array:
    """Fill `y` (T, N, H) where every sequence has T steps; return the last hidden state."""
    projected = _project(problem, d, problem.x)
    if problem.backward[d]:
        projected, y = projected[::-1], y[::-1]
    hidden: Array = problem.hidden[d]
    for step, out in zip(projected, y, strict=True):
        check_cancelled()
        cell.step(step, hidden, out)
        hidden = out
    return hidden


def _run_ragged(problem: _Problem, d: int, cell: Cell, y: Array) -> Array:
    """Fill `y` (T, N, H) where sequences end early, with zeros behind their ends; return the last hidden states.

    A reversed direction reads, and writes, each sequence backwards within its own length.
    """
    assert problem.lengths is not None
    T, lengths, x = len(y), problem.lengths, problem.x
    steps = np.arange(T)[:, None]
    order = np.where(steps < lengths, lengths - 1 - steps, steps)[:, :, None] if problem.backward[d] else None
    if order is not None:
        x = np.take_along_axis(x, order, axis=0)
    shortest, longest = int(lengths.min(initial=T)), int(lengths.max(initial=0))
    projected = _project(problem, d, x[:longest])
    hidden: Array = problem.hidden[d]
    for t in range(longest):
        check_cancelled()
        cell.step(projected[t], hidden, y[t])
        if t >= shortest:
            ended = lengths <= t
            cell.freeze(ended)
            y[t][ended] = hidden[ended]
        hidden = y[t]
    last: Array = hidden.copy()
    y[steps >= lengths] = 0
    if order is not None:
        y[...] = np.take_along_axis(y, order, axis=0)
    return last


def _project(problem: _Problem, d: int, x: Array) -> Array:
    """Return X W^T plus the biases that need no hidden state: (T, N, gates x H)."""
    T, N, features = x.shape
    projected = matmul_in_parts(x.reshape(T * N, features), problem.weights[d].T)
    if problem.bias is not None:
        projected += problem.bias[d]
    return projected.reshape(T, N, projected.shape[1])
