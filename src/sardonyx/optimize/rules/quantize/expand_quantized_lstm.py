"""Write DynamicQuantizeLSTM of com.microsoft as products of integers and a Scan of its cells.

    x8, x_scale, x_zero = DynamicQuantizeLinear(x)                                    once for all steps and directions
    for each direction:
        p = MatMulIntegerToFloat(x8, w, x_scale, w_scale, x_zero, w_zero)             (T, N, 4H)
        h, c, y = Scan(h0, c0, p): r = DynamicQuantizeMatMul(h, r, r_scale, r_zero)   the state is quantized in each step
                                   i, o, f, g = Split(p + r + bias)
                                   c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)

The integers are those that onnxruntime multiplies; floats are rounded in another order.

Left alone:
    weights, scales or zero points that are no constants, or scales of other sizes than one for a direction or for each column
    sequences of lengths of their own, peepholes, clipping, coupled gates, activations other than the default ones
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
_WEIGHTS = {"w": (1, 8, 9), "r": (2, 10, 11)}
"""The inputs that are weights, scales and zero points."""
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
    if any(node.input(place) is not None for place in (4, 7)):
        return "there are lengths of sequences, or peepholes"
    names = tuple(name.lower() for name in node.texts("activations", ()))
    directions = _BACKWARD.get(node.text("direction", "forward"), ())
    if names not in ((), _DEFAULT * len(directions)) or node.number("clip") is not None or node.flag("input_forget"):
        return "activations, clip or input_forget are not the default"
    return _shapes_reason(node, len(directions))


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
    bias = node.input(3)
    if bias is not None and bias.shape != (directions, 2 * columns):
        return f"the bias has shape {bias.shape}, expected {(directions, 2 * columns)}"
    return None


def _array(node: Node, place: int) -> Array:
    tensor = tensor_of(node.input(place))
    if tensor is None:
        raise ValueError(f"input {place} of {node!r} is no constant")
    return tensor.numpy()


def _replace(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    node = match.node("lstm")
    x8, x_scale, x_zero = op.outputs("DynamicQuantizeLinear", 3, node.inputs[0])
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
    H, x = _array(node, 2).shape[1], node.inputs[0]
    batch: Dim | None = None if x is None or x.shape is None else x.shape[1]
    states = [_state(op, node, place, direction, H, batch) for place in (5, 6)]
    body = _body(op, node, direction, H, 1 if batch is None else batch)
    return op.outputs(
        "Scan",
        3,
        *states,
        projected,
        body=body,
        num_scan_inputs=1,
        scan_input_directions=(backward,),
        scan_output_directions=(backward,),
        _version=_VERSION,
    )


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
    """Return the graph of one step: from h, c and the projected input to h, c and h."""
    kinds = [TensorType(DataType.FLOAT, (batch, size)) for size in (H, H, _GATES * H)]
    h, c, p = (Value(name, kind) for name, kind in zip(("h", "c", "p"), kinds, strict=True))
    weights = [_part(op, node, place, direction) for place in _WEIGHTS["r"]]
    body = Graph("lstm_step", [h, c, p])

    def add(op_type: str, *inputs: Value, domain: str = "", count: int = 1) -> tuple[Value, ...]:
        made = Node(op_type, inputs, count, {}, domain=domain, version=1 if domain else _VERSION, name=f"{node.name}/{op_type}")
        return body.append(made).outputs

    (product,) = add("DynamicQuantizeMatMul", h, *weights, domain=_MICROSOFT)
    (gates,) = add("Add", product, p)
    bias = node.input(3)
    if bias is not None:
        (gates,) = add("Add", gates, _bias(op, node, direction))
    i, o, f, g = _split(op, body, gates, H)
    kept, fresh = add("Mul", *add("Sigmoid", f), c), add("Mul", *add("Sigmoid", i), *add("Tanh", g))
    (cell,) = add("Add", *kept, *fresh)
    (hidden,) = add("Mul", *add("Sigmoid", o), *add("Tanh", cell))
    (output,) = add("Identity", hidden)
    for value in (hidden, cell, output):
        body.add_output(value)
    return body


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
