"""The class that onnxruntime's quantizers hold their model in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sardonyx.formats.protos import Message
from sardonyx.tools.onnx_model import OnnxModel

__all__ = ["ONNXModel"]


class ONNXModel(OnnxModel):
    """An onnx.ModelProto, with the methods of `onnxruntime.quantization.onnx_model.ONNXModel`."""

    def initializer(self) -> Sequence[Message]:
        """Return the constants of the main graph, which may be changed in place."""
        found: Sequence[Message] = self.model.graph.initializer
        return found

    def initializer_extend(self, inits: Iterable[Message]) -> None:
        """Add constants to the main graph."""
        self.model.graph.initializer.extend(inits)

    def ir_version(self) -> int:
        """Return the version of the format."""
        return int(self.model.ir_version)

    def opset_import(self) -> Sequence[Message]:
        """Return the versions of operators that the model imports."""
        found: Sequence[Message] = self.model.opset_import
        return found

    def set_opset_import(self, domain: str, version: int) -> None:
        """Have the model import a version of a domain."""
        item = next((item for item in self.model.opset_import if item.domain == domain), None)
        (self.model.opset_import.add() if item is None else item).version = version
        if item is None:
            self.model.opset_import[-1].domain = domain

    def get_tensor_type(self, tensor_name: str) -> Message | None:
        """Return the onnx.TypeProto.Tensor that the main graph declares for a value, None where it declares none."""
        graph = self.model.graph
        values = (value for value in (*graph.value_info, *graph.output, *graph.input) if value.name == tensor_name)
        found = next(values, None)
        return found.type.tensor_type if found is not None and found.type.HasField("tensor_type") else None

    def get_initializer_name_set(self) -> set[str]:
        """Return the names of the constants of the main graph."""
        return {tensor.name for tensor in self.model.graph.initializer}

    def remove_initializers(self, init_to_remove: Iterable[Message]) -> None:
        """Remove constants, as `remove_initializer` does."""
        for tensor in list(init_to_remove):
            self.remove_initializer(tensor)

    def get_non_initializer_inputs(self) -> set[str]:
        """Return the names of the inputs that a feed must have."""
        return {value.name for value in self.get_graph_inputs_excluding_initializers()}

    def find_node_by_name(self, node_name: str, new_nodes_list: Iterable[Message], graph: Message) -> Message | None:
        """Return the node of a name among those of a graph and a list, None where none has it."""
        return next((node for node in (*graph.node, *new_nodes_list) if node.name == node_name), None)

    def find_nodes_by_initializer(self, graph: Message, initializer: Message) -> list[Message]:
        """Return the nodes of a graph that read a constant."""
        return [node for node in graph.node if initializer.name in node.input]

    def get_largest_node_name_suffix(self, node_name_prefix: str) -> int:
        """Return the largest number behind a prefix in the names of nodes, -1 where there is none."""
        return _largest((node.name for node in self.model.graph.node), node_name_prefix)

    def get_largest_initializer_name_suffix(self, initializer_name_prefix: str) -> int:
        """Return the largest number behind a prefix in the names of constants, -1 where there is none."""
        return _largest((tensor.name for tensor in self.model.graph.initializer), initializer_name_prefix)

    def replace_input_of_nodes(self, old_input_name: str, new_input_name: str, node_names_set: Collection[str]) -> None:
        """Have the nodes of some names read another value."""
        for node in self.nodes():
            if node.name in node_names_set:
                self.replace_node_input(node, old_input_name, new_input_name)

    def replace_output_of_nodes(self, old_output_name: str, new_output_name: str, node_names_set: Collection[str]) -> None:
        """Have the nodes of some names make a value under another name."""
        for node in self.nodes():
            if node.name in node_names_set:
                self.replace_node_output(node, old_output_name, new_output_name)

    def is_graph_output(self, output_name: str) -> bool:
        """Return whether the model has an output of a name."""
        return self.find_graph_output(output_name) is not None

    def is_graph_input(self, tensor_name: str) -> bool:
        """Return whether the model has an input of a name."""
        return self.find_graph_input(tensor_name) is not None

    def clean_initializers(self) -> None:
        """Remove constants that nothing reads."""
        self.remove_unused_constant()


def _largest(names: Iterable[str], prefix: str) -> int:
    ends = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return max((int(end) for end in ends if end.isdecimal()), default=-1)
