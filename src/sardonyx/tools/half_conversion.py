"""Conversion of a model's float32 values to float16, where operators take them.

    x ─ MatMul ─ Softmax ─ NonMaxSuppression        x ─ Cast ─ MatMul ─ Softmax ─ Cast ─ NonMaxSuppression
                              stays float32            with keep_io; one Cast for each value and type, however many read it

Each value has one type: float16, unless a node that stays in float32 makes it, an input or output keeps its own, or only such nodes
read the constant. Whoever wants the other type reads a Cast of it; of a constant, a copy in float32, which loses nothing.

An operand stays in float32 where the node does, or where the operator's schema does not take float16 there (`Resize` takes its
scales in float32). Nodes with bodies cannot stay: their bodies are converted too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import (
    Attribute,
    AttributeKind,
    Graph,
    Model,
    Node,
    OptionalType,
    SequenceType,
    Tensor,
    TensorType,
    Value,
    ValueType,
)
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.schema import OpSchema, ParameterSchema
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.contract import Context
from sardonyx.optimize.edit import Names
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS

__all__ = ["HalfPolicy", "to_half"]

_TYPE_ATTRIBUTES = ("dtype", "to", "output_datatype", "output_dtype")
_FLOAT_UNLESS_SAID: Mapping[str, str] = {
    "BlackmanWindow": "output_datatype",
    "HammingWindow": "output_datatype",
    "HannWindow": "output_datatype",
    "MelWeightMatrix": "output_datatype",
    "RandomNormal": "dtype",
    "RandomUniform": "dtype",
    "SequenceEmpty": "dtype",
}
"""Operator -> the attribute that says the type of its output, which is float32 where the node lacks it."""


@dataclasses.dataclass(frozen=True, slots=True)
class HalfPolicy:
    """What becomes float16, and how."""

    narrow: Callable[[Array], Array]
    """Makes the float16 array of a float32 one."""
    blocked_operators: Collection[str] = ()
    """Operators that stay in float32."""
    blocked_nodes: Collection[str] = ()
    """Names of nodes that stay in float32."""
    kept_ends: Collection[str] | None = ()
    """Inputs and outputs that stay in float32; None for all."""
    forced_inputs: Mapping[str, Collection[int]] = dataclasses.field(default_factory=dict)
    """Operator -> numbers of inputs that become float16 in any case."""
    narrows_all_constants: bool = False
    """Whether constants that only nodes in float32 read become float16 too."""

    def keeps_end(self, value: Value) -> bool:
        """Return whether an input or output of the model stays in float32."""
        return self.kept_ends is None or value.name in self.kept_ends

    def keeps_node(self, node: Node) -> bool:
        """Return whether a node stays in float32."""
        return not node.subgraphs and (node.op_type in self.blocked_operators or node.name in self.blocked_nodes)


def to_half(model: Model, policy: HalfPolicy) -> None:
    """Convert a model, in place; its types are inferred, and calls of model-local functions inlined.

    Raises:
        InvalidArgument: a node that stays in float32 reads or makes a sequence of tensors, which no Cast converts.
        InvalidGraph: the model's types contradict one another.
    """
    INLINE_FUNCTIONS.run(model, Context())
    infer_graph(model)
    _Conversion(model, policy).run()


class _Conversion:
    """One conversion of one model."""

    def __init__(self, model: Model, policy: HalfPolicy) -> None:
        self._model, self._policy = model, policy
        self._names = Names.of(model)
        self._graphs = list(nested_graphs(model.graph))
        self._version = model.opset_imports.get("", 1)
        self._kept_uses: set[tuple[Node | Graph, int]] = set()
        self._ends: dict[Value, Value] = {}
        self._wide: set[Value] = set()
        self._casts: dict[tuple[Value, DataType], Value] = {}

    def run(self) -> None:
        """Decide the type of each value, then change types, constants and attributes, and put casts in."""
        nodes = [(graph, node) for graph in self._graphs for node in graph]
        for _, node in nodes:
            self._decide(node)
        for value in self._model.graph.inputs:
            if _is_float(value) and self._policy.keeps_end(value):
                self._wide.add(value)
        constants = [value for graph in self._graphs for value in graph.initializers.values() if _is_float(value)]
        made = [node.output for _, node in nodes if node.op_type == "Constant" and not node.domain and _is_float(node.output)]
        self._wide.update(value for value in (*constants, *made) if self._is_read_wide_only(value))
        homes = {value: graph for graph in self._graphs for value in (*graph.inputs, *graph.initializers.values())}
        uses = [(node, index, value) for _, node in nodes for index, value in enumerate(node.inputs) if value is not None]
        floats = {*homes, *(value for _, node in nodes for value in node.outputs)}
        homes.update((value, graph) for graph, node in nodes for value in node.outputs)
        is_float = {value for value in floats if _is_float(value)}
        originals = {value: value.constant for value in constants}
        for _, node in nodes:
            if any(value in is_float and value not in self._wide for value in node.outputs):
                self._narrow_attributes(node)
        for value in is_float - self._wide:
            self._narrow(value)
        for node, index, value in uses:
            wanted = DataType.FLOAT if (node, index) in self._kept_uses else DataType.FLOAT16
            if value in is_float and (wanted is DataType.FLOAT) != (value in self._wide):
                node.replace_input(index, self._converted(value, homes[value], wanted, originals.get(value)))
        for graph in self._graphs:
            for index, value in enumerate(graph.outputs):
                if value in is_float:
                    self._end(graph, index, value, homes)
        self._drop_constants()

    def _decide(self, node: Node) -> None:
        """Note which operands of a node stay in float32, and which of its outputs."""
        schema = find_schema(node.domain, node.op_type, node.version)
        forced = self._policy.forced_inputs.get(node.op_type, ())
        for index, value in enumerate(node.inputs):
            if (
                value is not None
                and _is_float(value)
                and index not in forced
                and self._keeps(node, schema, index, value, is_input=True)
            ):
                self._kept_uses.add((node, index))
        for index, value in enumerate(node.outputs):
            if _is_float(value) and self._keeps(node, schema, index, value, is_input=False):
                self._wide.add(value)

    def _keeps(self, node: Node, schema: OpSchema | None, index: int, value: Value, *, is_input: bool) -> bool:
        if schema is not None and not self._policy.keeps_node(node):
            formal = schema.input(index) if is_input else schema.output(index)
            if _takes_half(schema, formal, value.type):
                return False
        if not isinstance(value.type, TensorType):
            raise InvalidArgument(
                f'{node.place} stays in float32, but "{value.name}" is {value.type}, which no Cast converts: take the '
                "node out of the block list, or add those that make and read the value"
            )
        return True

    def _is_read_wide_only(self, value: Value) -> bool:
        if self._policy.narrows_all_constants or value.is_graph_output:
            return False
        return bool(value.uses) and all(use in self._kept_uses for use in value.uses)

    def _narrow(self, value: Value) -> None:
        value.type = _narrowed(value.type)
        if value.constant is not None:
            value.constant = self._narrowed_tensor(value.constant)

    def _narrowed_tensor(self, tensor: Tensor) -> Tensor:
        return Tensor.from_array(self._policy.narrow(tensor.numpy()), tensor.name)

    def _narrow_attributes(self, node: Node) -> None:
        """Have a node whose output has become float16 say so, where its attributes decide that."""
        attributes = node.attributes
        default = _FLOAT_UNLESS_SAID.get(node.op_type)
        if default is not None and default not in attributes:
            attributes[default] = Attribute.of(int(DataType.FLOAT16))
        for name in _TYPE_ATTRIBUTES:
            if name in attributes and attributes[name].value == int(DataType.FLOAT):
                attributes[name] = Attribute.of(int(DataType.FLOAT16))
        if node.domain or node.op_type not in ("Constant", "ConstantOfShape"):
            return
        for name in ("value_float", "value_floats"):
            if name in attributes:
                attributes["value"] = Attribute.of(Tensor.from_array(self._policy.narrow(_float_array(attributes.pop(name).value))))
        value = attributes.get("value")
        if value is not None and value.kind is AttributeKind.TENSOR:
            attributes["value"] = Attribute.of(self._narrowed_tensor(value.value))
        elif value is None and node.op_type == "ConstantOfShape":
            attributes["value"] = Attribute.of(Tensor.from_array(self._policy.narrow(_float_array((0.0,)))))

    def _converted(self, value: Value, graph: Graph, wanted: DataType, original: Tensor | None) -> Value:
        """Return the value in another type, for all graphs in which it is seen."""
        key = value, wanted
        if key not in self._casts:
            name = self._names.fresh(f"{value.name}_{'float' if wanted is DataType.FLOAT else 'half'}")
            if original is not None and wanted is DataType.FLOAT and not self._policy.narrows_all_constants:
                self._casts[key] = graph.add_initializer(Tensor(original.dtype, original.shape, original.numpy, name), name)
            else:
                self._casts[key] = self._cast(value, graph, wanted, name)
        return self._casts[key]

    def _cast(self, value: Value, graph: Graph, wanted: DataType, name: str) -> Value:
        made = Value(name, _retyped(value.type, wanted))
        node = Node("Cast", [value], [made], {"to": int(wanted)}, version=self._version, name=self._names.fresh(f"Cast_{name}"))
        first = next(iter(graph), None)
        if value.producer is not None:
            graph.insert_after(value.producer, node)
        elif first is not None:
            graph.insert_before(first, node)
        else:
            graph.append(node)
        return made

    def _end(self, graph: Graph, index: int, value: Value, homes: Mapping[Value, Graph]) -> None:
        """Give an output of a graph its type, under its name."""
        is_main = graph is self._model.graph
        is_kept = is_main and self._policy.keeps_end(value)
        wanted = DataType.FLOAT if is_kept else DataType.FLOAT16
        if (wanted is DataType.FLOAT) == (value in self._wide):
            return
        if not is_main:
            graph.set_output(index, self._converted(value, homes[value], wanted, None))
            return
        if value not in self._ends:
            self._ends[value] = self._cast(value, graph, wanted, value.name)
            value.name = self._names.fresh(f"{value.name}_{'half' if is_kept else 'float'}")
        graph.set_output(index, self._ends[value])

    def _drop_constants(self) -> None:
        for graph in self._graphs:
            ends = {*graph.inputs, *graph.outputs}
            kept = {name: value for name, value in graph.initializers.items() if value.uses or value in ends}
            graph.initializers = {value.name: value for value in kept.values()}


def _float_array(value: object) -> Array:
    return np.asarray(value, np.float32)


def _is_float(value: Value) -> bool:
    return _tensor_in(value.type) is not None


def _tensor_in(kind: ValueType | None) -> TensorType | None:
    """Return the float32 tensor that a value is or holds; None for others."""
    while isinstance(kind, (SequenceType, OptionalType)):
        kind = kind.element
    return kind if isinstance(kind, TensorType) and kind.dtype is DataType.FLOAT else None


def _narrowed(kind: ValueType | None) -> ValueType | None:
    return _retyped(kind, DataType.FLOAT16)


def _retyped(kind: ValueType | None, dtype: DataType) -> ValueType | None:
    if isinstance(kind, (SequenceType, OptionalType)):
        return type(kind)(_retyped(kind.element, dtype))
    return TensorType(dtype, kind.shape) if isinstance(kind, TensorType) else kind


def _takes_half(schema: OpSchema, formal: ParameterSchema | None, kind: ValueType | None) -> bool:
    """Return whether a formal parameter takes float16 where a node has float32 of this kind; a schema may leave types open."""
    if formal is None:
        return False
    constraint = schema.type_constraints.get(formal.type)
    types = frozenset((formal.type,)) if constraint is None else constraint.types
    return not types or str(_narrowed(_without_shape(kind))) in types


def _without_shape(kind: ValueType | None) -> ValueType | None:
    if isinstance(kind, (SequenceType, OptionalType)):
        return type(kind)(_without_shape(kind.element))
    return TensorType(kind.dtype) if isinstance(kind, TensorType) else kind
