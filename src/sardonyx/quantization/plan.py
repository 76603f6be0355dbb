"""Which tensors of a graph are quantized: by the operators that are to run on integers.

    products (Conv, Gemm, MatMul …)       inputs, weights, bias and output
    moves (Reshape, MaxPool, Transpose …) nothing of their own: an output has the grid of the input, where that has one;
                                          Gather picks from a table of constants, which has one
    others (Add, Concat, Sigmoid …)       inputs and output

A Relu or Clip behind a quantized operator takes part in it: the value between them stays in floats.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from sardonyx.dtypes import DataType
from sardonyx.ir import Model, Node, Value
from sardonyx.optimize.edit import overridable_values, tensor_of

__all__ = ["MOVES", "OTHERS", "PRODUCTS", "READERS", "Plan", "Weight", "make_plan"]

PRODUCTS: Mapping[str, int] = {"Conv": 0, "ConvTranspose": 1, "Gemm": 1, "MatMul": -1}
"""Operator -> the axis of its weights, its second input, that output channels lie along (of Gemm with transB it is 0)."""
MOVES = frozenset(
    [
        *("DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "MaxPool", "Pad", "ReduceMax", "ReduceMin", "Reshape"),
        *("Resize", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK", "Transpose", "Unsqueeze"),
    ]
)
"""Operators whose results are elements of their first input."""
OTHERS = frozenset(
    [
        *("Add", "AveragePool", "BatchNormalization", "Clip", "Concat", "CumSum", "GlobalAveragePool", "InstanceNormalization"),
        *("LayerNormalization", "LeakyRelu", "Mul", "Relu", "Sigmoid", "Softmax", "Where"),
    ]
)
"""Operators whose inputs and outputs have grids of their own."""
READERS = ("ArgMax",)
"""Operators that may be named, and read what others quantized: their results are no floats."""
_CLIPS = ("Clip", "Relu")
_PICKS = ("Gather", "GatherElements")
"""Operators whose first input may be a table of constants."""
_FLOATS = (DataType.FLOAT, DataType.FLOAT16)
_DATA_INPUTS: Mapping[str, Collection[int]] = {
    "BatchNormalization": (0,),
    "Clip": (0,),
    "CumSum": (0,),
    "InstanceNormalization": (0,),
    "LayerNormalization": (0,),
    "Where": (1, 2),
}
"""Operator -> which inputs are quantized, where not all are."""


@dataclasses.dataclass(frozen=True, slots=True)
class Weight:
    """A constant that is quantized with the node that reads it."""

    node: Node
    """The node."""
    index: int
    """Which of its inputs."""
    channel_axis: int | None
    """The axis of output channels; None for an operand with one scale."""
    is_bias: bool = False
    """Whether it is added to the sums of products, hence int32 in their steps."""


@dataclasses.dataclass(slots=True)
class Plan:
    """What is quantized."""

    activations: dict[Value, None] = dataclasses.field(default_factory=dict)
    """Values that have a grid of their own, in the order of the graph."""
    same: dict[Value, Value] = dataclasses.field(default_factory=dict)
    """Value -> the activation, or the table of constants, whose grid it has."""
    weights: list[Weight] = dataclasses.field(default_factory=list)
    """Constants, by use."""

    def has(self, value: Value) -> bool:
        """Return whether a value that is no constant has a grid."""
        return value in self.activations or value in self.same


def make_plan(
    model: Model,
    operators: Collection[str],
    included: Collection[str],
    excluded: Collection[str],
    *,
    constant_weights_only: bool = False,
    quantizes_bias: bool = True,
    without_outputs: Collection[str] = (),
) -> Plan:
    """Return which tensors of the main graph are quantized; its types are inferred.

    Args:
        model: the model.
        operators: operators that are quantized.
        included: names of the nodes that are, where not empty; others are not.
        excluded: names of nodes that are not.
        constant_weights_only: whether MatMul of two computed values stays in floats.
        quantizes_bias: whether the bias of a product becomes int32.
        without_outputs: operators whose outputs stay in floats.
    """
    planner = _Planner(model, constant_weights_only, quantizes_bias, frozenset(without_outputs))
    for node in model.graph:
        is_named = (not included or node.name in included) and node.name not in excluded
        if is_named and not node.domain and node.op_type in operators:
            planner.add(node)
    return planner.plan


class _Planner:
    def __init__(self, model: Model, constant_weights_only: bool, quantizes_bias: bool, without_outputs: Collection[str]) -> None:
        self.plan = Plan()
        self._overridable = overridable_values(model)
        self._constant_only, self._bias, self._without_outputs = constant_weights_only, quantizes_bias, without_outputs
        self._between: set[Value] = set()

    def add(self, node: Node) -> None:
        """Note what is quantized of a node."""
        if node.op_type in PRODUCTS:
            self._add_product(node)
        elif node.op_type in MOVES:
            self._add_move(node)
        elif node.op_type in OTHERS:
            self._add_other(node)

    def _add_product(self, node: Node) -> None:
        x, w = node.inputs[0], node.inputs[1]
        if x is None or w is None or not (_is_float(x) and _is_float(w)):
            return
        is_constant = self._is_constant(w)
        if node.op_type == "MatMul" and self._constant_only and not is_constant:
            return
        self._want(node, 0)
        if is_constant:
            axis = 0 if node.op_type == "Gemm" and node.integer("transB", 0) else PRODUCTS[node.op_type]
            self.plan.weights.append(Weight(node, 1, axis if _rank(w) > 1 else None))
        else:
            self._want(node, 1)
        bias = node.input(2)
        if bias is not None and self._bias and is_constant and self._is_constant(bias) and _is_float(bias) and _adds_plainly(node):
            self.plan.weights.append(Weight(node, 2, None, is_bias=True))
        self._want_output(node)

    def _add_move(self, node: Node) -> None:
        x = node.inputs[0]
        is_table = x is not None and node.op_type in _PICKS and _is_float(x) and self._is_constant(x)
        if x is None or not (is_table or self.plan.has(x)):
            return
        if is_table:
            self.plan.weights.append(Weight(node, 0, None))
        for value in node.outputs if node.op_type == "Split" else node.outputs[:1]:
            if _is_float(value):
                self.plan.same[value] = self.plan.same.get(x, x)

    def _add_other(self, node: Node) -> None:
        chosen = _DATA_INPUTS.get(node.op_type, range(len(node.inputs)))
        inputs = [(index, node.inputs[index]) for index in chosen if index < len(node.inputs)]
        if not all(value is not None and _is_float(value) for _, value in inputs):
            return
        if all(value is not None and self._is_constant(value) for _, value in inputs):
            return
        x = node.inputs[0]
        if node.op_type not in _CLIPS or x not in self._between:
            for index, value in inputs:
                if value is not None and self._is_constant(value):
                    self.plan.weights.append(Weight(node, index, None))
                else:
                    self._want(node, index)
        self._want_output(node)

    def _want(self, node: Node, index: int) -> None:
        value = node.inputs[index]
        if value is not None and not self.plan.has(value):
            if self._is_constant(value):
                self.plan.weights.append(Weight(node, index, None))
            else:
                self.plan.activations[value] = None

    def _want_output(self, node: Node) -> None:
        y = node.outputs[0]
        users = [user for user, _ in y.uses]
        if len(users) == 1 and isinstance(users[0], Node) and users[0].op_type in _CLIPS and not users[0].domain:
            self._between.add(y)
        elif node.op_type not in self._without_outputs:
            self.plan.activations[y] = None

    def _is_constant(self, value: Value) -> bool:
        return tensor_of(value, self._overridable) is not None


def _is_float(value: Value) -> bool:
    return value.dtype in _FLOATS


def _rank(value: Value | None) -> int:
    return 0 if value is None or value.shape is None else len(value.shape)


def _adds_plainly(node: Node) -> bool:
    """Return whether a product adds its bias as it is."""
    if node.op_type != "Gemm":
        return True
    return node.number("alpha", 1.0) == 1.0 and node.number("beta", 1.0) == 1.0 and _rank(node.input(2)) == 1
