"""Types of an onnx.ModelProto's values: those of inputs and outputs changed, needless Casts removed."""

from __future__ import annotations

from onnx import TensorProto, helper

from sardonyx.errors import InvalidArgument
from sardonyx.formats.protos import Message
from sardonyx.tools.graph_edits import GraphEdits
from sardonyx.tools.shape_infer_helper import SymbolicShapeInferenceHelper

__all__ = ["GraphCasts"]


class GraphCasts(GraphEdits):
    """An onnx.ModelProto, with the methods of onnxruntime's class OnnxModel about types."""

    def __init__(self, model: Message) -> None:
        """Wrap a model, which is not copied."""
        super().__init__(model)
        self.shape_infer_helper: SymbolicShapeInferenceHelper | None = None
        """What `infer_runtime_shape` found last."""
        self.enable_shape_infer = True
        """Whether `infer_runtime_shape` infers."""

    def initialize(self, model: Message) -> None:
        """Wrap another model in its place."""
        self.__init__(model)  # type: ignore[misc]  # what the class was made with is made anew, as onnxruntime's does

    def disable_shape_inference(self) -> None:
        """Have `infer_runtime_shape` return None from here on."""
        self.enable_shape_infer = False

    def infer_runtime_shape(
        self, dynamic_axis_mapping: dict[str, int] | None = None, update: bool = False
    ) -> SymbolicShapeInferenceHelper | None:
        """Return the types and shapes of all values, None where inference is disabled or contradicts itself.

        Args:
            dynamic_axis_mapping: symbol -> its size.
            update: whether to infer anew where an earlier call has.
        """
        if not self.enable_shape_infer:
            return None
        known = self.shape_infer_helper
        if known is None or update:
            known = self.shape_infer_helper = SymbolicShapeInferenceHelper(self.model)
        return known if known.infer(dynamic_axis_mapping or {}) else None

    def use_float16(self) -> bool:
        """Return whether a value, a constant or a Cast of any graph has the type float16."""
        half = TensorProto.FLOAT16
        for graph in self.graphs():
            types = [value.type for value in (*graph.input, *graph.output, *graph.value_info)]
            types += [item.sequence_type.elem_type for item in types if item.HasField("sequence_type")]
            attributes = [attribute for node in graph.node for attribute in node.attribute]
            tensors = [*graph.initializer, *(tensor for item in attributes for tensor in (item.t, *item.tensors))]
            casts = (self.get_node_attribute(node, "to") for node in graph.node if node.op_type == "Cast")
            if any(item.tensor_type.elem_type == half for item in types) or half in casts:
                return True
            if any(tensor.data_type == half for tensor in tensors):
                return True
        return False

    def remove_cascaded_cast_nodes(self) -> None:
        """Have a Cast that reads another read what that one reads, which changes values that the first one rounds."""
        makers = self.output_name_to_node()
        changed = False
        for node in self.get_nodes_by_op_type("Cast"):
            parent = self.get_parent(node, 0, makers)
            if parent is not None and parent.op_type == "Cast":
                node.input[0] = parent.input[0]
                changed = True
        if changed:
            self.prune_graph()

    def remove_useless_cast_nodes(self) -> None:
        """Remove each Cast to the type that its input has; one between an input and an output of the model stays."""
        known = self.infer_runtime_shape(update=True)
        inputs, outputs = set(self.get_graphs_input_names()), set(self.get_graphs_output_names())
        for node in self.get_nodes_by_op_type("Cast"):
            given, made = node.input[0], node.output[0]
            element = self.get_dtype(given, known)
            if not element or element != self.get_dtype(made, known):
                continue
            if made not in outputs:
                self.replace_input_of_all_nodes(made, given)
            elif given not in inputs and given not in outputs and len(self.input_name_to_nodes().get(given, ())) == 1:
                self.replace_output_of_all_nodes(given, made)
            else:
                continue
            self.remove_node(node)

    def change_graph_input_type(self, graph_input: Message, new_type: int) -> tuple[Message | None, list[Message]]:
        """Give an input of the model another type, with a Cast to the former one where nodes read it.

        Args:
            graph_input: an onnx.ValueInfoProto of the model.
            new_type: the number of the type, as of onnx.TensorProto.

        Returns:
            The Cast that was added, None where none is needed, and the Casts to the new type that were removed.

        Raises:
            InvalidArgument: the model has no input of this name.
        """
        self._check_known(self.find_graph_input(graph_input.name), graph_input, "input")
        former = graph_input.type.tensor_type.elem_type
        if former == int(new_type):
            return None, []
        name = graph_input.name
        readers = self.input_name_to_nodes().get(name, [])
        others = [node for node in readers if node.op_type != "Cast"]
        added = self._add_cast(graph_input, name, to=former) if others else None
        if added is not None:
            for node in others:
                self.replace_node_input(node, name, added.output[0])
        removed = []
        for node in (node for node in readers if node.op_type == "Cast"):
            if self.get_node_attribute(node, "to") == int(new_type) and self.find_graph_output(node.output[0]) is None:
                self.replace_input_of_all_nodes(node.output[0], name)
                removed.append(node)
        self.remove_nodes(removed)
        graph_input.type.tensor_type.elem_type = int(new_type)
        return added, removed

    def change_graph_output_type(self, graph_output: Message, new_type: int) -> Message | None:
        """Give an output of the model another type, by a Cast.

        Args:
            graph_output: an onnx.ValueInfoProto of the model.
            new_type: the number of the type, as of onnx.TensorProto.

        Returns:
            The Cast, None where the output has the type.

        Raises:
            InvalidArgument: the model has no output of this name.
        """
        self._check_known(self.find_graph_output(graph_output.name), graph_output, "output")
        if graph_output.type.tensor_type.elem_type == int(new_type):
            return None
        name = self.create_node_name("Cast")
        inner = f"{name}_{graph_output.name}"
        self.replace_output_of_all_nodes(graph_output.name, inner)
        self.replace_input_of_all_nodes(graph_output.name, inner)
        self._declare(graph_output, inner)
        node = helper.make_node("Cast", [inner], [graph_output.name], to=int(new_type), name=name)
        self.add_node(node)
        graph_output.type.tensor_type.elem_type = int(new_type)
        return node

    def _add_cast(self, value: Message, name: str, *, to: int) -> Message:
        node_name = self.create_node_name("Cast")
        node = helper.make_node("Cast", [name], [f"{node_name}_{name}"], to=to, name=node_name)
        self._declare(value, node.output[0])
        self.add_node(node)
        return node

    def _declare(self, value: Message, name: str) -> None:
        """Declare another value of the same type and shape."""
        declared = self.model.graph.value_info.add()
        declared.CopyFrom(value)
        declared.name = name

    def _check_known(self, found: Message | None, value: Message, what: str) -> None:
        if found is None:
            known = ", ".join(item.name for item in getattr(self.model.graph, what))
            raise InvalidArgument(f"the model has no {what} {value.name!r}; it has {known}")
