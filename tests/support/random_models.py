"""Random models of many nodes: chains and branches of what exporters write, with needless nodes and arithmetic on shapes.

model = random_model(seed)        float inputs of shape (n, 4, 6) and (n, 6); always sound
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import SardonyxError
from sardonyx.ir import Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.ir.shape import symbol
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import fact_of, infer_node

__all__ = ["random_model"]

NODES = 24
OPSETS = (13, 17, 18, 21, 23)


def random_model(seed: int) -> Model:
    """A model of about `NODES` steps, each on values made before; the last values are its outputs."""
    making = _Making(np.random.default_rng(seed))
    while making.steps < NODES:
        making.step()
    return making.model()


class _Making:
    """A model in the making."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.random = generator
        self._opset = OPSETS[int(generator.integers(len(OPSETS)))]
        self._graph = Graph("random")
        self._facts: dict[Value, Fact] = {}
        self.values = [self._input("x", (symbol("n"), 4, 6)), self._input("z", (symbol("n"), 6))]
        self.steps = 0

    def _input(self, name: str, shape: Any) -> Value:
        value = Value(name, TensorType(DataType.FLOAT, shape))
        self._graph.inputs.append(value)
        return value

    def step(self) -> None:
        """Add a step to a value, mostly a late one; a step that does not fit is given up."""
        index = len(self.values) - 1 - min(int(self.random.geometric(0.5)) - 1, len(self.values) - 1)
        made = _STEPS[int(self.random.integers(len(_STEPS)))](self, self.values[index])
        self.steps += 1
        if made is not None and made.shape is not None and len(made.shape) > 0:
            self.values.append(made)

    def model(self) -> Model:
        """What was made."""
        ends = [value for value in self.values if not value.use_count] or self.values[-1:]
        for value in ends:
            end = self._graph.append(Node("Neg", [value], 1, version=self._opset)).output
            end.name = f"y{len(self._graph.outputs)}"
            self._graph.add_output(end)
        return Model(self._graph, {"": self._opset})

    def add(self, op_type: str, *inputs: Any, **attributes: Any) -> Value | None:
        """The output of a new node; inputs that are no values become constants. None where it does not fit."""
        values = [item if isinstance(item, Value) or item is None else self.constant(item) for item in inputs]
        node = Node(op_type, values, 1, attributes, version=self._opset)
        try:
            (fact,) = infer_node(node, self._facts)[:1]
        except (SardonyxError, ValueError):
            node.set_inputs(())
            return None
        self._graph.append(node)
        node.output.type, self._facts[node.output] = fact.type, fact
        return node.output

    def constant(self, array: Any) -> Value:
        """A constant."""
        value = self._graph.add_initializer(Tensor.from_array(np.asarray(array)), f"c{len(self._graph.initializers)}")
        self._facts[value] = fact_of(value)
        return value

    def pick(self, *options: Any) -> Any:
        """One of `options`."""
        return options[int(self.random.integers(len(options)))]

    def weights(self, *shape: int) -> Any:
        """Random float32."""
        return self.random.standard_normal(shape).astype(np.float32)


def _last(value: Value) -> int:
    size = (value.shape or (1,))[-1]
    return size if isinstance(size, int) else 1


def _unary(making: _Making, value: Value) -> Value | None:
    return making.add(making.pick("Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Identity", "Identity", "Dropout"), value)


def _scalar(making: _Making, value: Value) -> Value | None:
    number = np.float32(making.pick(0.0, 1.0, 1.0, -1.0, 0.5, 2.0))
    operator = making.pick("Add", "Sub", "Mul", "Div")
    return making.add(operator, value, number if operator != "Div" else np.float32(number or 1))


def _binary(making: _Making, value: Value) -> Value | None:
    fitting = [other for other in making.values if other.shape == value.shape]
    return making.add(making.pick("Add", "Sub", "Mul", "Max"), value, making.pick(*fitting[-3:]))


def _broadcast(making: _Making, value: Value) -> Value | None:
    return making.add(making.pick("Add", "Mul"), value, making.weights(_last(value)))


def _swish(making: _Making, value: Value) -> Value | None:
    gate = making.add("Sigmoid", value)
    return None if gate is None else making.add("Mul", value, gate)


def _gelu(making: _Making, value: Value) -> Value | None:
    inner = making.add("Div", value, np.float32(np.sqrt(2)))
    erf = None if inner is None else making.add("Erf", inner)
    more = None if erf is None else making.add("Add", erf, np.float32(1))
    product = None if more is None else making.add("Mul", value, more)
    return None if product is None else making.add("Mul", product, np.float32(0.5))


def _product(making: _Making, value: Value) -> Value | None:
    if not isinstance((value.shape or ("",))[-1], int):
        return None
    return making.add("MatMul", value, making.weights(_last(value), making.pick(4, 6)))


def _transposed(making: _Making, value: Value) -> Value | None:
    order = [int(axis) for axis in making.random.permutation(len(value.shape or ()))]
    turned = making.add("Transpose", value, perm=order)
    if turned is None or making.random.random() < 0.5:
        return turned
    return making.add("Transpose", turned, perm=[int(axis) for axis in np.argsort(order)])


def _reshaped(making: _Making, value: Value) -> Value | None:
    flat = making.add("Reshape", value, np.array(making.pick([0, -1], [-1, _last(value)], [-1])))
    if flat is None or making.random.random() < 0.5:
        return flat
    shape = making.add("Shape", value)
    return None if shape is None else making.add("Reshape", flat, shape)


def _sized(making: _Making, value: Value) -> Value | None:
    """A target of Reshape that is put together from sizes, as exporters do."""
    shape = making.add("Shape", value)
    first = None if shape is None else making.add("Gather", shape, np.array(0))
    batch = None if first is None else making.add("Unsqueeze", first, np.array([0]))
    target = None if batch is None else making.add("Concat", batch, np.array([-1]), axis=0)
    return None if target is None else making.add("Reshape", value, target)


def _unsqueezed(making: _Making, value: Value) -> Value | None:
    more = making.add("Unsqueeze", value, np.array([making.pick(0, 1)]))
    if more is None or making.random.random() < 0.3:
        return more
    axes = [axis for axis, size in enumerate(more.shape or ()) if size == 1]
    return making.add("Squeeze", more, np.array([making.pick(*axes)]))


def _sliced(making: _Making, value: Value) -> Value | None:
    if _last(value) < 2:
        return None
    ends = making.pick(2, 1 << 62)
    return making.add("Slice", value, np.array([making.pick(0, 1)]), np.array([ends]), np.array([-1]))


def _joined(making: _Making, value: Value) -> Value | None:
    return making.add("Concat", value, value, axis=-1)


def _cast(making: _Making, value: Value) -> Value | None:
    wide = making.add("Cast", value, to=int(making.pick(DataType.DOUBLE, DataType.FLOAT)))
    return None if wide is None else making.add("Cast", wide, to=int(DataType.FLOAT))


def _chosen(making: _Making, value: Value) -> Value | None:
    condition = making.add("Less", value, np.float32(0))
    inverted = None if condition is None else making.add("Not", condition)
    return None if inverted is None else making.add("Where", inverted, value, np.float32(making.pick(0, 1)))


def _clipped(making: _Making, value: Value) -> Value | None:
    positive = making.add("Relu", value)
    return None if positive is None else making.add("Clip", positive, np.float32(-1), np.float32(6))


def _expanded(making: _Making, value: Value) -> Value | None:
    shape = making.add("Shape", value)
    return None if shape is None else making.add("Expand", value, shape)


_STEPS: tuple[Callable[[_Making, Value], Value | None], ...] = (
    _unary,
    _unary,
    _scalar,
    _binary,
    _binary,
    _broadcast,
    _swish,
    _gelu,
    _product,
    _transposed,
    _reshaped,
    _sized,
    _unsqueezed,
    _sliced,
    _joined,
    _cast,
    _chosen,
    _clipped,
    _expanded,
)
"""Each adds some nodes to a value; None where they do not fit."""
