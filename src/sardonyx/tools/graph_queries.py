"""Questions about the nodes of an onnx.ModelProto: who reads a value, who makes it, what is constant, which shape is declared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from sardonyx.dtypes import Array
from sardonyx.formats.protos import Message
from sardonyx.formats.tensor_file import array_of
from sardonyx.tools.models import graphs_of

__all__ = ["GraphQueries", "InferredValues", "Makers", "Readers"]

Readers = Mapping[str, Sequence[Message]]
"""Name of a value -> the nodes that read it."""
Makers = Mapping[str, Message]
"""Name of a value -> the node that makes it."""

_FIELDS = {
    1: "f",
    2: "i",
    3: "s",
    4: "t",
    5: "g",
    11: "sparse_tensor",
    13: "tp",
    6: "floats",
    7: "ints",
    8: "strings",
    9: "tensors",
    10: "graphs",
    12: "sparse_tensors",
    14: "type_protos",
}
"""Type of an onnx.AttributeProto -> the field that its value is in."""
_LISTS = frozenset((6, 7, 8, 9, 10, 12, 14))


class InferredValues(Protocol):
    """What inference found, as `SymbolicShapeInferenceHelper` holds it."""

    known_vi_: dict[str, Message]
    """Name of a value -> its onnx.ValueInfoProto."""


class GraphQueries:
    """An onnx.ModelProto, with the questions that onnxruntime's class OnnxModel answers.

    Nodes are onnx.NodeProto, constants NumPy arrays. Where a method takes a table of readers or makers, it makes one when None is
    given, which costs a walk over all nodes.
    """

    def __init__(self, model: Message) -> None:
        """Wrap a model, which is not copied."""
        self.model = model
        """The onnx.ModelProto."""

    def graph(self) -> Message:
        """Return the main graph."""
        return self.model.graph

    def graphs(self) -> list[Message]:
        """Return the main graph and those inside its nodes."""
        return list(graphs_of(self.model.graph))

    def functions(self) -> list[list[Message]]:
        """Return a list with one item, the list of the model-local functions, as onnxruntime does."""
        return [list(self.model.functions)]

    def nodes(self) -> list[Message]:
        """Return the nodes of all graphs."""
        return [node for graph in self.graphs() for node in graph.node]

    def get_nodes_by_op_type(self, op_type: str) -> list[Message]:
        """Return the nodes of an operator, of any domain."""
        return [node for node in self.nodes() if node.op_type == op_type]

    def get_graph_by_node(self, node: Message) -> Message | None:
        """Return the graph that a node is in, None for a node of another model."""
        return next((graph for graph in self.graphs() if any(item is node or item == node for item in graph.node)), None)

    def get_graph_by_name(self, graph_name: str) -> Message | None:
        """Return the first graph of a name, None where there is none."""
        return next((graph for graph in self.graphs() if graph.name == graph_name), None)

    def get_graphs_input_names(self) -> list[str]:
        """Return the names of the inputs of all graphs."""
        return [value.name for graph in self.graphs() for value in graph.input]

    def get_graphs_output_names(self) -> list[str]:
        """Return the names of the outputs of all graphs."""
        return [value.name for graph in self.graphs() for value in graph.output]

    def find_graph_input(self, input_name: str) -> Message | None:
        """Return an input of the main graph, None where there is none of this name."""
        return next((value for value in self.model.graph.input if value.name == input_name), None)

    def find_graph_output(self, output_name: str) -> Message | None:
        """Return an output of the main graph, None where there is none of this name."""
        return next((value for value in self.model.graph.output if value.name == output_name), None)

    def get_graph_inputs_excluding_initializers(self) -> list[Message]:
        """Return the inputs that a feed must have."""
        constants = {tensor.name for tensor in self.model.graph.initializer}
        return [value for value in self.model.graph.input if value.name not in constants]

    def input_name_to_nodes(self, exclude_subgraphs: bool = False) -> dict[str, list[Message]]:
        """Return value -> the nodes that read it, of the main graph only where bodies are excluded."""
        found: dict[str, list[Message]] = {}
        for node in self.model.graph.node if exclude_subgraphs else self.nodes():
            for name in filter(None, node.input):
                found.setdefault(name, []).append(node)
        return found

    def output_name_to_node(self, exclude_subgraphs: bool = False) -> dict[str, Message]:
        """Return value -> the node that makes it, of the main graph only where bodies are excluded."""
        nodes = self.model.graph.node if exclude_subgraphs else self.nodes()
        return {name: node for node in nodes for name in filter(None, node.output)}

    def get_children(
        self, node: Message, input_name_to_nodes: Readers | None = None, output_index: int | None = None
    ) -> list[Message]:
        """Return the nodes that read the outputs of a node, or one of them; none for an index beyond these."""
        readers = self.input_name_to_nodes() if input_name_to_nodes is None else input_name_to_nodes
        outputs = node.output if output_index is None else node.output[output_index : output_index + 1]
        return [reader for name in outputs for reader in readers.get(name, ())]

    def get_parents(self, node: Message, output_name_to_node: Makers | None = None) -> list[Message]:
        """Return the nodes that make the inputs of a node, in their order."""
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return [makers[name] for name in node.input if name in makers]

    def get_parent(self, node: Message, i: int, output_name_to_node: Makers | None = None) -> Message | None:
        """Return the node that makes the input `i` of a node, None where no node does."""
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return makers.get(node.input[i]) if i < len(node.input) else None

    def find_first_child_by_type(
        self, node: Message, child_type: str, input_name_to_nodes: Readers | None = None, recursive: bool = True
    ) -> Message | None:
        """Return the nearest node of an operator among those that read a node's outputs, or read what these make."""
        readers = self.input_name_to_nodes() if input_name_to_nodes is None else input_name_to_nodes
        return _nearest(node, lambda item: self.get_children(item, readers), child_type, recursive=recursive)

    def find_first_parent_by_type(
        self, node: Message, parent_type: str, output_name_to_node: Makers | None = None, recursive: bool = True
    ) -> Message | None:
        """Return the nearest node of an operator among those that make a node's inputs, or what these read."""
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return _nearest(node, lambda item: self.get_parents(item, makers), parent_type, recursive=recursive)

    def get_children_subgraph_nodes(
        self, root_node: Message, stop_nodes: Collection[Message], input_name_to_nodes: Readers | None = None
    ) -> list[Message]:
        """Return all nodes that depend on a node, the nearest first; not `stop_nodes`, nor what depends on these only."""
        readers = self.input_name_to_nodes() if input_name_to_nodes is None else input_name_to_nodes
        return _reached(root_node, lambda item: self.get_children(item, readers), stop_nodes)

    def get_parent_subgraph_nodes(
        self, node: Message, stop_nodes: Collection[Message], output_name_to_node: Makers | None = None
    ) -> list[Message]:
        """Return all nodes that a node depends on, the nearest first; not `stop_nodes`, nor what these only depend on."""
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return _reached(node, lambda item: self.get_parents(item, makers), stop_nodes)

    def get_graph_inputs(self, current_node: Message, recursive: bool = False) -> list[str]:
        """Return the names of the model's inputs that a node reads, or depends on where `recursive`."""
        own = {value.name for value in self.model.graph.input}
        nodes = [current_node, *(self.get_parent_subgraph_nodes(current_node, ()) if recursive else ())]
        return list(dict.fromkeys(name for node in nodes for name in node.input if name in own))

    def get_initializer(self, name: str) -> Message | None:
        """Return the onnx.TensorProto of a constant of any graph, None where there is none of this name."""
        return next((tensor for graph in self.graphs() for tensor in graph.initializer if tensor.name == name), None)

    def get_constant_value(self, output_name: str) -> Array | None:
        """Return the elements of a constant: of a node Constant or of an initializer; None for what is computed.

        Raises:
            InvalidGraph: its data disagrees with its type and shape.
            NoSuchFile: its data is in a file, which is not in the current folder.
        """
        for node in self.get_nodes_by_op_type("Constant"):
            value = self.get_node_attribute(node, "value")
            if node.output[0] == output_name and value is not None:
                return array_of(value)
        found = self.get_initializer(output_name)
        return None if found is None else array_of(found)

    def get_constant_input(self, node: Message) -> tuple[int, Array] | tuple[None, None]:
        """Return the index and the elements of a node's first constant input; (None, None) where it has none."""
        for index, name in enumerate(node.input):
            value = self.get_constant_value(name)
            if value is not None:
                return index, value
        return None, None

    def find_constant_input(self, node: Message, expected_value: float, delta: float = 1e-6) -> int:
        """Return the index of a node's first constant input where that is one number near `expected_value`, else -1."""
        index, value = self.get_constant_input(node)
        if index is None or value is None or value.size != 1 or abs(value.item() - expected_value) >= delta:
            return -1
        return index

    def has_constant_input(self, node: Message, expected_value: float, delta: float = 1e-6) -> bool:
        """Return whether a node's first constant input is one number near `expected_value`."""
        return self.find_constant_input(node, expected_value, delta) >= 0

    def is_constant_with_specified_dimension(self, output_name: str, dimensions: int, description: str) -> bool:
        """Return whether a value is a constant of a rank; `description` has no effect."""
        value = self.get_constant_value(output_name)
        return value is not None and value.ndim == dimensions

    @staticmethod
    def tensor_shape_to_list(tensor_type: Message) -> list[int | str]:
        """Return the shape of an onnx.TypeProto.Tensor: sizes, names of symbolic dimensions, "?" for others."""
        return [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param if dim.HasField("dim_param") else "?"
            for dim in tensor_type.shape.dim
        ]

    def get_dtype(self, name: str, symbolic_shape_helper: InferredValues | None = None) -> int | None:
        """Return the number of the type that a value declares or a constant has; None where nothing states one.

        Args:
            name: the name of the value.
            symbolic_shape_helper: what was inferred, for values that declare nothing.
        """
        constant = self.get_initializer(name)
        declared = self._declared(name, symbolic_shape_helper)
        return constant.data_type if constant is not None else None if declared is None else declared.elem_type

    def get_shape(self, name: str, symbolic_shape_helper: InferredValues | None = None) -> list[int | str] | None:
        """Return the shape that a value declares or a constant has; None where nothing states one.

        Args:
            name: the name of the value.
            symbolic_shape_helper: what was inferred, for values that declare nothing.
        """
        constant = self.get_initializer(name)
        if constant is not None:
            return list(constant.dims)
        declared = self._declared(name, symbolic_shape_helper)
        return self.tensor_shape_to_list(declared) if declared is not None and declared.HasField("shape") else None

    def _declared(self, name: str, inferred: InferredValues | None) -> Message | None:
        for graph in self.graphs():
            for value in (*graph.input, *graph.output, *graph.value_info):
                if value.name == name and value.type.HasField("tensor_type"):
                    return value.type.tensor_type
        known = None if inferred is None else inferred.known_vi_.get(name)
        return None if known is None else known.type.tensor_type

    @staticmethod
    def get_node_attribute(node: Message, attribute_name: str) -> Message | None:
        """Return the value of a node's attribute: a number, bytes, a message, or a list of these; None where it has none."""
        for attribute in node.attribute:
            if attribute.name == attribute_name:
                value = getattr(attribute, _FIELDS[attribute.type])
                return list(value) if attribute.type in _LISTS else value
        return None

    @staticmethod
    def input_index(node_output: str, child_node: Message) -> int:
        """Return which input of a node reads a value, -1 where none does."""
        return next((index for index, name in enumerate(child_node.input) if name == node_output), -1)


def _reached(start: Message, step: Callable[[Message], Iterable[Message]], stops: Collection[Message]) -> list[Message]:
    """Return the nodes that steps lead to from `start`, breadth first, each once; nodes are told apart by identity."""
    halted = {id(node) for node in stops}
    found: dict[int, Message] = {}
    waiting = list(step(start))
    for node in waiting:
        if id(node) not in found and id(node) not in halted:
            found[id(node)] = node
            waiting += step(node)
    return list(found.values())


def _nearest(start: Message, step: Callable[[Message], Iterable[Message]], op_type: str, *, recursive: bool) -> Message | None:
    nodes = _reached(start, step, ()) if recursive else step(start)
    return next((node for node in nodes if node.op_type == op_type), None)
