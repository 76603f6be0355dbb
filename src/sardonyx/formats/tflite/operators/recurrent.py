"""Recurrent cells and sequences of them: LSTM, RNN, SVDF. Their states are variables, which are kept from run to run.

Plain sequences become LSTM and RNN of ONNX, whose gates are in the order i o f c; those with a projection, layer normalization or a
clipped cell become a Scan of the cell's operators, and so do those whose weights are integers while their inputs are real numbers:
what is multiplied by weights is rounded to 8 bits in each step. Gates that share their weights (i = 1 - f) are two with opposite
weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.operator import ACTIVATION, Operator, Options, imports
from sardonyx.formats.tflite.operators.conv import bias
from sardonyx.formats.tflite.operators.products import Products
from sardonyx.formats.tflite.quantize import dequantized, quantized
from sardonyx.formats.tflite.tensors import TensorInfo
from sardonyx.ir import TensorType, Value

__all__ = ["lstm", "rnn", "svdf"]

_NAMES = {"NONE": "Affine", "RELU": "Relu", "TANH": "Tanh"}
_EPSILON = 1e-8


@dataclasses.dataclass(slots=True)
class _Cell:
    """The parts of an LSTM cell, each as real numbers; gates in the order i f c o."""

    inputs: list[Value]
    recurrent: list[Value]
    biases: list[Value | None]
    peepholes: list[Value | None]
    norms: list[Value | None]
    projection: Value | None
    projection_bias: Value | None
    activation: str
    clip: float
    projection_clip: float
    size: int
    products: Products
    states: tuple[TensorInfo, TensorInfo] | None = None
    """Where states are integers that stand for numbers, what they are: each step rounds to them."""

    @property
    def is_plain(self) -> bool:
        """Whether ONNX has an operator for a sequence of it."""
        parts = (self.projection, self.projection_bias, *self.norms)
        return (
            all(part is None for part in parts)
            and not self.clip
            and self.activation in _NAMES
            and self.activation != "NONE"
            and not self.products.are_rounded
            and self.states is None
        )


@imports("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(op: Operator) -> None:
    """Run an LSTM over sequences (batch, time, …), or (time, batch, …) where the options say so."""
    options = op.options("UnidirectionalSequenceLSTMOptions")
    if options.flag("diagonal_recurrent_tensors"):
        op.unsupported("diagonal recurrent weights are not supported")
    activation = options.choice("fused_activation_function", ACTIVATION)
    clips = options.real("cell_clip"), options.real("proj_clip")
    cell = _cell(op, 1, activation, *clips, products=Products(op, options))
    norms = [op.real(20 + gate) if op.has(20 + gate) else None for gate in range(4)]
    cell.norms = [_opposite(op.build, norms[1]) if not op.has(1) and norms[1] is not None else norms[0], *norms[1:]]
    value = op.real(0) if options.flag("time_major") else op.build.transpose(op.real(0), (1, 0, 2))
    cell.states = _states(op, 18)
    made, hidden, state = _run(op, cell, value, op.real(18), op.real(19), reverse=False)
    _keep(op, 18, hidden)
    _keep(op, 19, state)
    op.put(0, made if options.flag("time_major") else op.build.transpose(made, (1, 0, 2)))


@imports("LSTM")
def lstm_step(op: Operator) -> None:
    """Run one step of an LSTM on inputs (batch, …)."""
    options = op.options("LSTMOptions")
    activation = options.choice("fused_activation_function", ACTIVATION)
    if options.choice("kernel_type", "FULL BASIC") == "BASIC":
        _basic(op)
        return
    clips = options.real("cell_clip"), options.real("proj_clip")
    cell = _cell(op, 1, activation, *clips, products=Products(op, options))
    norms = [op.real(20 + gate) if op.has(20 + gate) else None for gate in range(4)]
    cell.norms = [_opposite(op.build, norms[1]) if not op.has(1) and norms[1] is not None else norms[0], *norms[1:]]
    cell.states = _states(op, 18)
    hidden, state = _step(op.build, cell, op.real(0), op.real(18), op.real(19))
    _keep(op, 18, hidden)
    _keep(op, 19, state)
    op.put(len(op.outputs) - 1, hidden)


@imports("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_lstm(op: Operator) -> None:
    """Run two LSTMs over sequences, one of them from the end."""
    options, build = op.options("BidirectionalSequenceLSTMOptions"), op.build
    activation, clips = (
        options.choice("fused_activation_function", ACTIVATION),
        (options.real("cell_clip"), options.real("proj_clip")),
    )
    is_major = options.flag("time_major")
    inputs, is_crossed = _inputs_of_two(op, 39, [*range(40, 48)], is_major=is_major)
    made = []
    for start, first, auxiliary, value in ((1, 35, 40, inputs[0]), (18, 37, 44, inputs[1])):
        cell, reverse = _cell(op, start, activation, *clips, products=Products(op, options)), start > 1
        if is_crossed:
            cell.inputs = _widened(op, cell, start, auxiliary)
        outputs, hidden, state = _run(op, cell, value, op.real(first), op.real(first + 1), reverse=reverse)
        _keep(op, first, hidden)
        _keep(op, first + 1, state)
        made.append(outputs if is_major else build.transpose(outputs, (1, 0, 2)))
    _put_two(op, made, merges=options.flag("merge_outputs"))


@imports("RNN")
def rnn(op: Operator) -> None:
    """Run one step of a recurrent cell."""
    options, build = op.options("RNNOptions"), op.build
    products, shift = Products(op, options), bias(op, 3, 1)
    pairs = ((0, 1), (4, 2))
    sums = build.node("Add", *(products.of(build, op.real(rows), products.weights(weights)) for rows, weights in pairs))
    sums = sums if shift is None else build.node("Add", sums, shift)
    hidden = op.activate(sums, options.choice("fused_activation_function", ACTIVATION))
    _keep(op, 4, hidden)
    op.put(0, hidden)


@imports("UNIDIRECTIONAL_SEQUENCE_RNN")
def rnn_sequence(op: Operator) -> None:
    """Run a recurrent cell over sequences."""
    options = op.options("SequenceRNNOptions")
    is_major = options.flag("time_major")
    value = op.real(0) if is_major else op.build.transpose(op.real(0), (1, 0, 2))
    made = _rnn(op, options, value, (1, 2, 3, 4), reverse=False)
    op.put(0, made if is_major else op.build.transpose(made, (1, 0, 2)))


@imports("BIDIRECTIONAL_SEQUENCE_RNN")
def bidirectional_rnn(op: Operator) -> None:
    """Run two recurrent cells over sequences, one of them from the end."""
    options = op.options("BidirectionalSequenceRNNOptions")
    is_major = options.flag("time_major")
    inputs, is_crossed = _inputs_of_two(op, 9, [10, 11], is_major=is_major)
    extra = (10, 11) if is_crossed else (None, None)
    # LiteRT's kernel gives an auxiliary input to the backward cell only where time is the first axis
    second = inputs[1] if is_major or is_crossed else inputs[0]
    made = [
        _rnn(op, options, inputs[0], (1, 2, 3, 4), reverse=False, auxiliary=extra[0]),
        _rnn(op, options, second, (5, 6, 7, 8), reverse=True, auxiliary=extra[1]),
    ]
    if not is_major:
        made = [op.build.transpose(outputs, (1, 0, 2)) for outputs in made]
    _put_two(op, made, merges=options.flag("merge_outputs"))


@imports("SVDF")
def svdf(op: Operator) -> None:
    """Filter features in time: the newest goes behind those that are kept, and each unit sums its filters over all."""
    options, build = op.options("SVDFOptions"), op.build
    rank, filters, memory = options.integer("rank"), op.info(1).shape[0], op.info(2).shape[-1]
    if rank < 1 or filters % rank:
        op.refuse(f"{filters} filters are no multiple of its rank {rank}")
    kept = build.reshape(op.real(4), (-1, filters, memory))
    products = Products(op, options)
    newest = products.of(build, op.real(0), products.weights(1))
    older = build.node("Slice", kept, build.ints(1), build.ints(memory), build.ints(2))
    state = build.node("Concat", older, build.node("Unsqueeze", newest, build.ints(2)), axis=2)
    _keep(op, 4, build.reshape(state, (-1, filters * memory)))
    sums = build.node("ReduceSum", build.node("Mul", state, op.real(2)), build.ints(2), keepdims=0)
    value = build.node("ReduceSum", build.reshape(sums, (-1, filters // rank, rank)), build.ints(2), keepdims=0)
    shift = op.real(3) if op.has(3) else None
    value = value if shift is None else build.node("Add", value, shift)
    op.put(0, op.activate(value, options.choice("fused_activation_function", ACTIVATION)))


def _basic(op: Operator) -> None:
    """Run one step of a cell whose weights (4H, inputs + H) and biases are in one piece each, gates in the order i c f o."""
    build = op.build
    joined = build.node("Concat", op.real(0), op.real(1), axis=1)
    sums = build.node("Gemm", joined, op.real(2), bias(op, 3, 2), transB=1)
    i, c, f, o = build.nodes("Split", sums, outputs=4, axis=1, num_outputs=4)
    kept = build.node("Mul", build.node("Sigmoid", f), op.real(4))
    state = build.node("Add", kept, build.node("Mul", build.node("Sigmoid", i), build.node("Tanh", c)))
    op.put(0, build.node("Mul", build.node("Sigmoid", o), build.node("Tanh", state)))
    op.put(1, state)
    for index, value in ((2, joined), (3, sums)):
        if index < len(op.outputs):
            op.put(index, value)


def _cell(op: Operator, start: int, activation: str, clip: float, projection_clip: float, *, products: Products) -> _Cell:
    """Return the cell whose first weights are the input `start`."""

    def given(offset: int) -> Value | None:
        return op.real(start + offset) if op.has(start + offset) else None

    coupled, groups = not op.has(start), []
    for offset in (0, 4):
        found = [products.weights(start + offset + gate) if op.has(start + offset + gate) else None for gate in range(4)]
        if coupled:
            found[0] = None if found[1] is None else products.opposite(found[1])
        groups.append([value for value in found if value is not None])
        if len(groups[-1]) != 4:
            op.refuse("a gate has no weights")
    inputs, recurrent = groups
    biases = [bias(op, start + 11 + gate, start + (gate or int(coupled))) for gate in range(4)]
    peepholes = [given(8), given(9), given(10)]
    if coupled:
        biases[0] = None if biases[1] is None else _opposite(op.build, biases[1])
        peepholes[0] = None if peepholes[1] is None else _opposite(op.build, peepholes[1])
    size = op.info(start + 1).shape[0]
    op.check_count(size)
    projection = products.weights(start + 15) if op.has(start + 15) else None
    clips = clip, projection_clip
    return _Cell(inputs, recurrent, biases, peepholes, [None] * 4, projection, given(16), activation, *clips, size, products)


def _states(op: Operator, first: int) -> tuple[TensorInfo, TensorInfo] | None:
    """Return what the states of a cell are, from the input `first` on, where they are integers that stand for numbers."""
    hidden, state = op.info(first), op.info(first + 1)
    return (hidden, state) if hidden.is_quantized and state.is_quantized else None


def _opposite(build: GraphBuilder, value: Value) -> Value:
    return build.node("Neg", value)


def _run(op: Operator, cell: _Cell, value: Value, hidden: Value, state: Value, *, reverse: bool) -> tuple[Value, Value, Value]:
    """Return the outputs (time, batch, …) of a sequence, and the last states."""
    build = op.build
    if not cell.is_plain:
        return _scan(build, cell, value, hidden, state, reverse=reverse)
    zeros = build.constant(np.zeros(cell.size, np.float32))
    shifts = [shift if shift is not None else zeros for shift in cell.biases]
    peepholes = None
    if cell.peepholes[1] is not None:
        i, f, o = (part if part is not None else zeros for part in cell.peepholes)
        peepholes = _lifted(build, [i, o, f])
    outputs, last, final = build.nodes(
        "LSTM",
        value,
        _lifted(build, _ordered(cell.inputs)),
        _lifted(build, _ordered(cell.recurrent)),
        _lifted(build, [*_ordered(shifts), zeros, zeros, zeros, zeros]),
        None,
        build.node("Unsqueeze", hidden, build.ints(0)),
        build.node("Unsqueeze", state, build.ints(0)),
        peepholes,
        outputs=3,
        hidden_size=cell.size,
        direction="reverse" if reverse else "forward",
        activations=("Sigmoid", _NAMES[cell.activation], _NAMES[cell.activation]),
    )
    one = build.ints(0)
    return build.node("Squeeze", outputs, build.ints(1)), build.node("Squeeze", last, one), build.node("Squeeze", final, one)


def _ordered(gates: Sequence[Value]) -> list[Value]:
    """Return gates i f c o in the order i o f c."""
    i, f, c, o = gates
    return [i, o, f, c]


def _lifted(build: GraphBuilder, parts: Sequence[Value]) -> Value:
    """Return parts one behind the other, with a first axis of one direction."""
    return build.node("Unsqueeze", build.node("Concat", *parts, axis=0), build.ints(0))


def _scan(
    build: GraphBuilder, cell: _Cell, value: Value, hidden: Value, state: Value, *, reverse: bool
) -> tuple[Value, Value, Value]:
    body = GraphBuilder("step", build)
    before = [body.input(name, TensorType(DataType.FLOAT)) for name in ("hidden", "cell", "input")]
    made, after = _step(body, cell, before[2], before[0], before[1])
    for output in (body.node("Identity", made), after, body.node("Identity", made)):
        body.graph.add_output(output)
    last, final, outputs = build.nodes(
        "Scan",
        hidden,
        state,
        value,
        outputs=3,
        body=body.graph,
        num_scan_inputs=1,
        scan_input_directions=(1,) if reverse else None,
        scan_output_directions=(1,) if reverse else None,
    )
    return outputs, last, final


def _step(build: GraphBuilder, cell: _Cell, value: Value, hidden: Value, state: Value) -> tuple[Value, Value]:
    """Return the output and the state of one step."""
    sums = []
    for gate in range(4):
        total = build.node(
            "Add",
            cell.products.of(build, value, cell.inputs[gate]),
            cell.products.of(build, hidden, cell.recurrent[gate]),
        )
        sums.append(total)
    i, f = (_gate(build, cell, gate, sums[gate], state, gate) for gate in (0, 1))
    g = _activated(build, _normed(build, cell, 2, sums[2]), cell.activation)
    after = build.node("Add", build.node("Mul", build.node("Sigmoid", f), state), build.node("Mul", build.node("Sigmoid", i), g))
    if cell.clip > 0:
        after = build.clip(after, -cell.clip, cell.clip)
    after = after if cell.states is None else _rounded(build, after, cell.states[1])
    o = build.node("Sigmoid", _gate(build, cell, 3, sums[3], after, 2))
    made = build.node("Mul", o, _activated(build, after, cell.activation))
    if cell.projection is not None:
        made = cell.products.of(build, made, cell.projection)
        made = made if cell.projection_bias is None else build.node("Add", made, cell.projection_bias)
        if cell.projection_clip > 0:
            made = build.clip(made, -cell.projection_clip, cell.projection_clip)
    return (made if cell.states is None else _rounded(build, made, cell.states[0])), after


def _rounded(build: GraphBuilder, value: Value, info: TensorInfo) -> Value:
    return dequantized(build, quantized(build, value, info), info)


def _gate(build: GraphBuilder, cell: _Cell, gate: int, total: Value, state: Value, peephole: int) -> Value:
    weight = cell.peepholes[peephole]
    if weight is not None:
        total = build.node("Add", total, build.node("Mul", state, weight))
    return _normed(build, cell, gate, total)


def _normed(build: GraphBuilder, cell: _Cell, gate: int, total: Value) -> Value:
    norm, shift = cell.norms[gate], cell.biases[gate]
    if norm is not None:
        zero = build.constant(np.zeros((cell.size,), np.float32))
        ones = build.constant(np.ones((cell.size,), np.float32))
        total = build.node("LayerNormalization", total, ones, zero, axis=-1, epsilon=_EPSILON)
        total = build.node("Mul", total, norm)
    return total if shift is None else build.node("Add", total, shift)


def _activated(build: GraphBuilder, value: Value, name: str) -> Value:
    if name == "RELU6":
        return build.clip(value, 0, 6)
    return value if name == "NONE" else build.node({"RELU": "Relu", "TANH": "Tanh"}.get(name, "Tanh"), value)


def _rnn(
    op: Operator, options: Options, value: Value, places: tuple[int, int, int, int], *, reverse: bool, auxiliary: int | None = None
) -> Value:
    """Return the outputs (time, batch, H) of a sequence of cells whose weights, biases and state are inputs `places`.

    Where `value` has auxiliary features behind the others, their weights are the input `auxiliary`.
    """
    build, activation = op.build, options.choice("fused_activation_function", ACTIVATION)
    if activation not in ("TANH", "RELU"):
        op.unsupported(f"the activation {activation} of a sequence is not supported; TANH and RELU are")
    weights, recurrent, shift, state = places
    size = op.info(weights).shape[0]
    op.check_count(size)
    zeros = build.constant(np.zeros(size, np.float32))
    shifts, products = bias(op, shift, weights), Products(op, options)
    columns, square = products.weights(weights), products.weights(recurrent)
    if auxiliary is not None:
        columns = products.joined(columns, products.weights(auxiliary), op.info(weights).shape[1])
    if products.are_rounded:
        return _rounded_rnn(op, products, (columns, square), value, shifts, state, activation, reverse=reverse)
    outputs, last = build.nodes(
        "RNN",
        value,
        _lifted(build, [columns]),
        build.node("Unsqueeze", square, build.ints(0)),
        _lifted(build, [shifts if shifts is not None else zeros, zeros]),
        None,
        build.node("Unsqueeze", op.real(state), build.ints(0)),
        outputs=2,
        hidden_size=size,
        direction="reverse" if reverse else "forward",
        activations=(_NAMES[activation],),
    )
    _keep(op, state, build.node("Squeeze", last, build.ints(0)))
    return build.node("Squeeze", outputs, build.ints(1))


def _rounded_rnn(
    op: Operator,
    products: Products,
    weights: tuple[Value, Value],
    value: Value,
    shift: Value | None,
    state: int,
    activation: str,
    *,
    reverse: bool,
) -> Value:
    """Return what `_rnn` does, where what is multiplied by weights is rounded in each step."""
    body = GraphBuilder("step", op.build)
    hidden, newest = (body.input(name, TensorType(DataType.FLOAT)) for name in ("hidden", "input"))
    sums = body.node("Add", products.of(body, newest, weights[0]), products.of(body, hidden, weights[1]))
    made = _activated(body, sums if shift is None else body.node("Add", sums, shift), activation)
    for output in (body.node("Identity", made), body.node("Identity", made)):
        body.graph.add_output(output)
    ways = (1,) if reverse else None
    last, outputs = op.build.nodes(
        "Scan",
        op.real(state),
        value,
        outputs=2,
        body=body.graph,
        num_scan_inputs=1,
        scan_input_directions=ways,
        scan_output_directions=ways,
    )
    _keep(op, state, last)
    return outputs


def _keep(op: Operator, index: int, value: Value) -> None:
    """Assign a state, whose integers may stand for numbers."""
    op.assign(index, quantized(op.build, value, op.info(index)))


def _inputs_of_two(op: Operator, auxiliary: int, weights: Sequence[int], *, is_major: bool) -> tuple[list[Value], bool]:
    """Return what the forward and the backward cell run over, (time, batch, …), and whether auxiliary features are joined to both.

    An auxiliary input without weights of its own is what the backward cell runs over; one with weights goes to both cells.

    Args:
        op: the operator.
        auxiliary: the place of its auxiliary input.
        weights: the places of the weights of that.
        is_major: whether time is the first axis.
    """
    places = [0, auxiliary] if op.has(auxiliary) else [0]
    inputs = [op.real(index) if is_major else op.build.transpose(op.real(index), (1, 0, 2)) for index in places]
    given = [index for index in weights if op.has(index)]
    if not given:
        return [inputs[0], inputs[-1]], False
    if len(inputs) == 1:
        op.refuse(f"input {given[0]} has weights of an auxiliary input, and that is left out")
    return [op.build.node("Concat", *inputs, axis=2)] * 2, True


def _widened(op: Operator, cell: _Cell, start: int, auxiliary: int) -> list[Value]:
    """Return the weights of a cell's gates, inputs from `start` on, with those of auxiliary features as further columns."""
    more = [cell.products.weights(auxiliary + gate) if gate or op.has(start) else None for gate in range(4)]
    assert more[1] is not None
    first = cell.products.opposite(more[1]) if more[0] is None else more[0]
    width = op.info(start + 1).shape[1]
    return [
        cell.products.joined(weights, further, width)
        for weights, further in zip(cell.inputs, [first, *more[1:]], strict=True)
        if further is not None
    ]


def _put_two(op: Operator, made: Sequence[Value], *, merges: bool) -> None:
    if merges:
        op.put(0, op.build.node("Concat", *made, axis=-1))
        return
    for index, value in enumerate(made):
        op.put(index, value)
