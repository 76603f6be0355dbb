"""Put QuantizeLinear and DequantizeLinear into a graph where a plan says so.

    x ─ Conv(w, b) ─ Relu ─ y         x ─ Q ─ DQ ─ Conv(DQ(w), DQ(b)) ─ Relu ─ Q ─ DQ ─ y

A value is quantized once, and all of its users read the same DequantizeLinear. Values and constants have the names that
onnxruntime's tool gives them, such as `w_quantized`, `x_scale`, and `x_QuantizeLinear_Output`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.optimize.edit import Names, tensor_of
from sardonyx.quantization.grids import Grid
from sardonyx.quantization.kinds import limits_of
from sardonyx.quantization.plan import Plan, Weight

__all__ = ["QdqChoice", "drop_unused", "insert_qdq"]


@dataclasses.dataclass(frozen=True, slots=True)
class QdqChoice:
    """The grids that tensors get."""

    activation: Callable[[Value], Grid]
    """Of a value, by its name's range."""
    operand: Callable[[Value, Array], Grid]
    """Of a constant that stands where an activation may."""
    weight: Callable[[Value, Array, int], Grid]
    """Of weights, which the axis of output channels is given with."""
    keeps_float_weights: bool = False
    """Whether weights stay floats in the file, before a QuantizeLinear of their own."""


def insert_qdq(model: Model, plan: Plan, choice: QdqChoice) -> None:
    """Quantize what the plan says, in place.

    Raises:
        InvalidArgument: a weight holds NaN or infinities.
    """
    _Inserter(model, choice).run(plan)
    drop_unused(model)


def drop_unused(model: Model) -> None:
    """Drop the constants, and Constant nodes, that nobody reads any more."""
    for node in reversed(list(model.graph)):
        if node.op_type == "Constant" and not node.domain and not node.output.use_count:
            model.graph.remove(node)
    inputs = frozenset(model.graph.inputs)
    for name, value in list(model.graph.initializers.items()):
        if not value.use_count and value not in inputs:
            del model.graph.initializers[name]


class _Inserter:
    def __init__(self, model: Model, choice: QdqChoice) -> None:
        self._graph, self._choice = model.graph, choice
        self._names = Names.of(model)
        self._version = model.opset_imports.get("", 1)
        self._grids: dict[Value, Grid] = {}
        self._ready: dict[tuple[Value, int | None, bool], Value] = {}
        self._first = next(iter(model.graph), None)

    def run(self, plan: Plan) -> None:
        """Quantize activations, then what is read with them."""
        grids = {value: self._choice.activation(value) for value in plan.activations}
        for value, source in plan.same.items():
            tensor = tensor_of(source) if source not in grids else None
            grids[value] = grids[source] if tensor is None else self._choice.operand(source, tensor.numpy())
        for value, grid in grids.items():
            self._insert_pair(value, grid)
        for weight in plan.weights:
            if not weight.is_bias:
                self._quantize_weight(weight)
        for weight in plan.weights:
            if weight.is_bias:
                self._quantize_bias(weight)

    def _insert_pair(self, value: Value, grid: Grid) -> None:
        """Have all users of a value read what its codes stand for."""
        uses, name = value.uses, value.name
        scale, zero = self._parameters(name, grid)
        codes = Value(self._names.fresh(f"{name}_QuantizeLinear_Output"), TensorType(grid.dtype, value.shape))
        back = Value(self._names.fresh(f"{name}_DequantizeLinear_Output"), value.type)
        quantize = self._node("QuantizeLinear", [value, scale, zero], codes, grid, f"{name}_QuantizeLinear")
        dequantize = self._node("DequantizeLinear", [codes, scale, zero], back, grid, f"{name}_DequantizeLinear")
        if value.producer is not None:
            self._graph.insert_after(value.producer, quantize)
        elif self._first is not None:
            self._graph.insert_before(self._first, quantize)
        self._graph.insert_after(quantize, dequantize)
        is_input = value in self._graph.inputs
        for user, index in uses:
            if not isinstance(user, Graph):
                user.replace_input(index, back)
            elif not is_input:
                user.set_output(index, back)
        if back in self._graph.outputs:
            value.name, back.name = self._names.fresh(f"{name}_QuantizeLinear_Input"), name
        self._grids[back] = grid

    def _quantize_weight(self, weight: Weight) -> None:
        value = weight.node.inputs[weight.index]
        tensor = tensor_of(value)
        if value is None or tensor is None:
            return
        key = (value, weight.channel_axis, weight.channel_axis is not None or weight.index == 1)
        if key not in self._ready:
            array = tensor.numpy()
            try:
                if weight.channel_axis is None and weight.index != 1:
                    grid = self._choice.operand(value, array)
                else:
                    grid = self._choice.weight(value, array, -1 if weight.channel_axis is None else weight.channel_axis)
            except ValueError as error:
                raise InvalidArgument(f"{weight.node.place}: weight {value.name!r}: {error}") from error
            grid = self._wide_enough(weight, grid)
            self._ready[key] = self._stored(value.name, array, grid, weight.node)
            self._grids[self._ready[key]] = grid
        weight.node.replace_input(weight.index, self._ready[key])

    def _wide_enough(self, weight: Weight, grid: Grid) -> Grid:
        """Return a grid whose steps are wide enough that the bias fits int32."""
        bias = tensor_of(weight.node.input(2)) if len(weight.node.inputs) > 2 and weight.index == 1 else None
        x = self._grids.get(weight.node.inputs[0]) if weight.node.inputs[0] is not None else None
        if bias is None or x is None or weight.node.op_type not in ("Conv", "ConvTranspose", "Gemm"):
            return grid
        most = np.abs(bias.numpy().astype(np.float64))
        needed = (most if grid.axis is not None else most.max(initial=0.0)) / (
            x.scale.astype(np.float64) * limits_of(DataType.INT32)[1]
        )
        if np.shape(needed) != grid.scale.shape:
            return grid
        return dataclasses.replace(grid, scale=np.maximum(grid.scale, needed * 1.001).astype(grid.scale.dtype))

    def _quantize_bias(self, weight: Weight) -> None:
        node = weight.node
        value, tensor = node.inputs[2], tensor_of(node.inputs[2])
        x, w = (self._grids.get(source) if source is not None else None for source in node.inputs[:2])
        if value is None or tensor is None or x is None or w is None:
            return
        array = tensor.numpy()
        scale = (x.scale.astype(np.float64) * w.scale.astype(np.float64)).astype(x.scale.dtype)
        if not np.all(scale > 0):
            return
        grid = Grid(DataType.INT32, scale, np.zeros(scale.shape, np.int32), 0 if scale.ndim else None)
        node.replace_input(2, self._stored(value.name, array, grid, node))

    def _stored(self, name: str, array: Array, grid: Grid, node: Node) -> Value:
        """Put the codes of a constant into the graph, and return what stands for its numbers before `node`."""
        scale, zero = self._parameters(name, grid)
        back = Value(
            self._names.fresh(f"{name}_DequantizeLinear_Output"), TensorType(DataType.from_numpy(array.dtype), array.shape)
        )
        if self._choice.keeps_float_weights and grid.dtype is not DataType.INT32:
            source = self._constant(f"{name}_float", array)
            codes = Value(self._names.fresh(f"{name}_QuantizeLinear_Output"), TensorType(grid.dtype, array.shape))
            made = self._node("QuantizeLinear", [source, scale, zero], codes, grid, f"{name}_QuantizeLinear")
            self._graph.insert_before(node, made)
        else:
            codes = self._constant(f"{name}_quantized", grid.quantize(array))
        dequantize = self._node("DequantizeLinear", [codes, scale, zero], back, grid, f"{name}_DequantizeLinear")
        self._graph.insert_before(node, dequantize)
        return back

    def _parameters(self, name: str, grid: Grid) -> tuple[Value, Value]:
        return self._constant(f"{name}_scale", grid.scale), self._constant(f"{name}_zero_point", grid.zero_point)

    def _constant(self, name: str, array: Array) -> Value:
        return self._graph.add_initializer(Tensor.from_array(array), self._names.fresh(name))

    def _node(self, kind: str, inputs: list[Value | None], output: Value, grid: Grid, name: str) -> Node:
        attributes: Mapping[str, int] = {} if grid.axis is None else {"axis": grid.axis}
        return Node(kind, inputs, [output], dict(attributes), version=self._version, name=name)
