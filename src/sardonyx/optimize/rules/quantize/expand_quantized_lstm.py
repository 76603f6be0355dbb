"""Write DynamicQuantizeLSTM of com.microsoft as products of integers and a Scan of its cells.

    x8, x_scale, x_zero = DynamicQuantizeLinear(x)                                    once for all steps and directions
    for each direction:
        p = MatMulIntegerToFloat(x8, w, x_scale, w_scale, x_zero, w_zero)             (T, N, 4H)
        h, c, y = Scan(h0, c0, p): r = DynamicQuantizeMatMul(h, r, r_scale, r_zero)   the state is quantized in each step
                                   i, o, f, g = Split(p + r + bias)
                                   c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)

Gates are clipped, coupled, and joined by peepholes where the node says so. Sequences of lengths of their own are read backwards
within these (ReverseSequence around the Scan), keep their last states, and enter the next steps as zeros, so that the state of a
batch is quantized over those that go on; x is quantized up to the end of the longest one.

The integers are those that onnxruntime multiplies; floats are rounded in another order.

Left alone:
    weights, scales or zero points that are no constants, or scales of other sizes than one for a direction or for each column
    activations that have parameters, or are none of _ACTIVATIONS
    x of unknown rank, or with another number of directions than the weights
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Dim, Graph, Node, TensorType, Value
from sardonyx.optimize.edit import tensor_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_QUANTIZED_LSTM", "EXPAND_QUANTIZED_LSTM_OUTPUT", "EXPAND_QUANTIZED_LSTM_STATE"]

_MICROSOFT = "com.microsoft"
_VERSION = 13
"""The opset of ai.onnx under which the new nodes are read."""
_SPLITS_EVENLY = 11
"""The last opset in which Split without sizes needs no number of outputs."""
_BACKWARD = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}
_DEFAULT = ("sigmoid", "tanh", "tanh")
_ACTIVATIONS = {name.lower(): name for name in ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")}
"""Name -> the operator that it is."""
_WEIGHTS = {"w": (1, 8, 9), "r": (2, 10, 11)}
"""The inputs that are weights, scales and zero points."""
_LENGTHS, _PEEPHOLES = 4, 7
_GATES = 4


def _pattern(count: int) -> Callable[[PatternBuilder], tuple[Term, ...]]:
    return lambda op: op.outputs(op.node("DynamicQuantizeLSTM", op.rest("inputs"), _domain=_MICROSOFT, _as="lstm"), count)


def _check(match: Match) -> str | None:
    node = match.node("lstm")
    x, w = node.input(0), tensor_of(node.input(1))
    if x is None or x.shape is None or len(x.shape) != 3 or x.dtype is not DataType.FLOAT:
        return "x is no float tensor of three dimensions"
    if any(tensor_of(node.input(place)) is None for places in _WEIGHTS.values() for place in places) or w is None:
        return "weights, scales or zero points are no constants"
    directions = _BACKWARD.get(node.text("direction", "forward"), ())
    names = _activations(node)
    if len(names) != 3 * len(directions) or any(name not in _ACTIVATIONS for name in names):
        return f"the activations are {', '.join(names)}"
    if any(name in node.attributes for name in ("activation_alpha", "activation_beta")):
        return "activations have parameters"
    return _shapes_reason(node, len(directions))


def _activations(node: Node) -> tuple[str, ...]:
    """Return the names of the activations in lower case, three for each direction."""
    given = tuple(name.lower() for name in node.texts("activations", ()))
    return given or _DEFAULT * len(_BACKWARD.get(node.text("direction", "forward"), ()))


def _shapes_reason(node: Node, directions: int) -> str | None:
    r = _array(node, 2)
    if r.ndim != 3 or r.shape[0] != directions or r.shape[2] != _GATES * r.shape[1]:
        return f"R has shape {r.shape}, expected ({directions}, H, 4 H)"
    columns = r.shape[2]
    for weights, *rest in _WEIGHTS.values():
        shape = _array(node, weights).shape
        if len(shape) != 3 or (shape[0], shape[2]) != (directions, columns):
            return f"weights of shape {shape}, expected ({directions}, …, {columns})"
        if any(_array(node, place).shape not in ((directions,), (directions, columns)) for place in rest):
            return "scales or zero points are not one for a direction, or one for each column"
    for place, what, width in ((3, "bias", 2 * columns), (7, "peepholes", 3 * r.shape[1])):
        given = node.input(place)
        if given is not None and given.shape != (directions, width):
            return f"{what}: the shape is {given.shape}, expected {(directions, width)}"
    return None


def _array(node: Node, place: int) -> Array:
    tensor = tensor_of(node.input(place))
    if tensor is None:
        raise ValueError(f"input {place} of {node!r} is no constant")
    return tensor.numpy()


def _replace(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    node, x = match.node("lstm"), match.node("lstm").inputs[0]
    lengths = node.input(_LENGTHS)
    read = x if lengths is None else _up_to_the_longest(op, x, lengths)
    x8, x_scale, x_zero = op.outputs("DynamicQuantizeLinear", 3, read)
    made = []
    for direction, backward in enumerate(_BACKWARD[node.text("direction", "forward")]):
        w, w_scale, w_zero = (_part(op, node, place, direction) for place in _WEIGHTS["w"])
        projected = op.MatMulIntegerToFloat(x8, w, x_scale, w_scale, x_zero, w_zero, _domain=_MICROSOFT)
        made.append(_scan(op, node, projected, direction, backward))
    hidden, cell, y = zip(*made, strict=True)
    results = ((y, 1), (hidden, 0), (cell, 0))
    return tuple(_joined(op, parts, axis) for parts, axis in results[: len(node.outputs)])


def _part(op: Builder, node: Node, place: int, direction: int) -> Value:
    """Return the weights, scales or zero points of one direction."""
    return op.constant(np.ascontiguousarray(_array(node, place)[direction]), f"{node.name}/{direction}")


def _joined(op: Builder, parts: Sequence[Value], axis: int) -> Value:
    """Return the results of directions along a new axis."""
    wide = [op.Unsqueeze(part, np.array([axis], np.int64), _version=_VERSION) for part in parts]
    return wide[0] if len(wide) == 1 else op.Concat(*wide, axis=axis, _version=_VERSION)


def _scan(op: Builder, node: Node, projected: Value, direction: int, backward: int) -> tuple[Value, ...]:
    """Return the last hidden state and cell (N, H), and the hidden state of each step (T, N, H)."""
    H, x, lengths = _array(node, 2).shape[1], node.inputs[0], node.input(_LENGTHS)
    batch: Dim | None = None if x is None or x.shape is None else x.shape[1]
    hidden, cell = (_state(op, node, place, direction, H, batch) for place in (5, 6))
    body = _body(op, node, direction, H, 1 if batch is None else batch)
    if lengths is None:
        way = {"scan_input_directions": (backward,), "scan_output_directions": (backward,)}
        return op.outputs("Scan", 3, hidden, cell, projected, body=body, num_scan_inputs=1, **way, _version=_VERSION)
    turned = _turned(op, projected, lengths) if backward else projected
    inputs = (hidden, hidden, cell, turned, _is_live(op, node, lengths))
    _, last, cell, y = op.outputs("Scan", 4, *inputs, body=body, num_scan_inputs=2, _version=_VERSION)
    return last, cell, _turned(op, y, lengths) if backward else y


def _turned(op: Builder, steps: Value, lengths: Value) -> Value:
    """Return steps (T, N, …) with each sequence backwards within its length."""
    wide = op.Cast(lengths, to=int(DataType.INT64), _version=_VERSION)
    return op.ReverseSequence(steps, wide, time_axis=0, batch_axis=1, _version=_VERSION)


def _up_to_the_longest(op: Builder, x: Value | None, lengths: Value) -> Value:
    """Return x (T, N, I) with zeros in the steps that no sequence has."""
    longest = op.ReduceMax(op.Cast(lengths, to=int(DataType.INT64), _version=_VERSION), keepdims=0, _version=_VERSION)
    return op.Where(op.Less(_steps(op, x), longest, _version=_VERSION), x, np.zeros((), np.float32), _version=_VERSION)


def _is_live(op: Builder, node: Node, lengths: Value) -> Value:
    """Return for each step and sequence whether that goes on (T, N, 1)."""
    wide = op.Unsqueeze(op.Cast(lengths, to=int(DataType.INT64), _version=_VERSION), np.array([1], np.int64), _version=_VERSION)
    return op.Less(_steps(op, node.inputs[0]), wide, _version=_VERSION)


def _steps(op: Builder, x: Value | None) -> Value:
    """Return the numbers of the steps of x (T, 1, 1)."""
    size = op.Gather(op.Shape(x, _version=_VERSION), np.array(0, np.int64), axis=0, _version=_VERSION)
    steps = op.Range(np.array(0, np.int64), size, np.array(1, np.int64), _version=_VERSION)
    return op.Unsqueeze(steps, np.array([1, 2], np.int64), _version=_VERSION)


def _state(op: Builder, node: Node, place: int, direction: int, H: int, batch: Dim | None) -> Value:
    """Return the initial state of a direction (N, H): what is given, or zeros."""
    given = node.input(place)
    if given is not None:
        return op.Gather(given, np.array(direction, np.int64), axis=0, _version=_VERSION)
    if isinstance(batch, int):
        return op.constant(np.zeros((batch, H), np.float32))
    sizes = op.Shape(node.inputs[0], _version=_VERSION)
    rows = op.Gather(sizes, np.array([1], np.int64), axis=0, _version=_VERSION)
    shape = op.Concat(rows, np.array([H], np.int64), axis=0, _version=_VERSION)
    return op.Expand(np.zeros((1, 1), np.float32), shape, _version=_VERSION)


def _body(op: Builder, node: Node, direction: int, H: int, batch: Dim) -> Graph:
    """Return the graph of one step: from the states and the projected input to the states and the output.

    States are h and c; with lengths h as the product reads it, the last h of each sequence, and c, and whether sequences go on is
    read too.
    """
    floats = [Value(name, TensorType(DataType.FLOAT, (batch, H))) for name in ("h", "last", "c")]
    p = Value("p", TensorType(DataType.FLOAT, (batch, _GATES * H)))
    live = Value("live", TensorType(DataType.BOOL, (batch, 1)))
    h, last, c = floats
    ragged = node.input(_LENGTHS) is not None
    body = Graph("lstm_step", [h, last, c, p, live] if ragged else [h, c, p])

    def add(op_type: str, *inputs: Value, domain: str = "", count: int = 1) -> tuple[Value, ...]:
        made = Node(op_type, inputs, count, {}, domain=domain, version=1 if domain else _VERSION, name=f"{node.name}/{op_type}")
        return body.append(made).outputs

    weights = [_part(op, node, place, direction) for place in _WEIGHTS["r"]]
    (product,) = add("DynamicQuantizeMatMul", h, *weights, domain=_MICROSOFT)
    (gates,) = add("Add", product, p)
    if node.input(3) is not None:
        (gates,) = add("Add", gates, _bias(op, node, direction))
    cell, hidden = _cell(op, node, direction, _split(op, body, gates, H), c, add)
    if not ragged:
        outputs = (hidden, cell, *add("Identity", hidden))
    else:
        (shown,) = add("Where", live, hidden, op.constant(np.zeros((), np.float32)))
        outputs = (shown, *add("Where", live, hidden, last), *add("Where", live, cell, c), *add("Identity", shown))
    for value in outputs:
        body.add_output(value)
    return body


def _cell(
    op: Builder, node: Node, direction: int, gates: tuple[Value, ...], c: Value, add: Callable[..., tuple[Value, ...]]
) -> tuple[Value, Value]:
    """Add what makes of the four gates and of c the next c, and h; return both."""
    i, o, f, g = gates
    first, second, third = (_ACTIVATIONS[name] for name in _activations(node)[3 * direction : 3 * direction + 3])
    peepholes = _peepholes(op, node, direction)
    limit = node.number("clip")

    def activated(kind: str, gate: Value) -> Value:
        if limit is not None:
            ends = [op.constant(np.array(end, np.float32)) for end in (-limit, limit)]
            (gate,) = add("Clip", gate, *ends)
        return add(kind, gate)[0]

    def looked(gate: Value, place: int, cell: Value) -> Value:
        return gate if peepholes is None else add("Add", gate, *add("Mul", cell, peepholes[place]))[0]

    opened = activated(first, looked(i, 0, c))
    if node.flag("input_forget"):
        (kept,) = add("Sub", op.constant(np.ones((), np.float32)), opened)
    else:
        kept = activated(first, looked(f, 2, c))
    (cell,) = add("Add", *add("Mul", kept, c), *add("Mul", opened, activated(second, g)))
    (hidden,) = add("Mul", activated(first, looked(o, 1, cell)), *add(third, cell))
    return cell, hidden


def _peepholes(op: Builder, node: Node, direction: int) -> tuple[Value, ...] | None:
    """Return those of a direction for the gates i, o and f (H,); None where there are none."""
    given = node.input(_PEEPHOLES)
    if given is None:
        return None
    part = op.Gather(given, np.array(direction, np.int64), axis=0, _version=_VERSION)
    return op.outputs("Split", 3, part, axis=0, _version=_SPLITS_EVENLY)


def _bias(op: Builder, node: Node, direction: int) -> Value:
    """Return Wb + Rb of a direction (4H,)."""
    given = tensor_of(node.input(3))
    if given is not None:
        return op.constant(given.numpy()[direction].reshape(2, -1).sum(axis=0, dtype=np.float32))
    part = op.Gather(node.input(3), np.array(direction, np.int64), axis=0, _version=_VERSION)
    return op.Add(*op.outputs("Split", 2, part, axis=0, _version=_SPLITS_EVENLY))


def _split(op: Builder, body: Graph, gates: Value, H: int) -> tuple[Value, ...]:
    sizes = op.constant(np.array([H] * _GATES, np.int64))
    return body.append(Node("Split", [gates, sizes], _GATES, {"axis": 1}, version=_VERSION)).outputs


def _rule(name: str, count: int, what: str) -> Rule:
    return Rule(
        name,
        _pattern(count),
        _replace,
        _check,
        tolerance=0.02,
        takes_apart=microsoft("DynamicQuantizeLSTM"),
        summary=f"Write DynamicQuantizeLSTM of com.microsoft {what} as products of integers and a Scan of its cells.",
    )


EXPAND_QUANTIZED_LSTM_OUTPUT = _rule("expand_quantized_lstm_output", 1, "with its output alone")
EXPAND_QUANTIZED_LSTM_STATE = _rule("expand_quantized_lstm_state", 2, "with its output and hidden state")
EXPAND_QUANTIZED_LSTM = _rule("expand_quantized_lstm", 3, "with its output and both states")
