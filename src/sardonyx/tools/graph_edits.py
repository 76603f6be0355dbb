"""Changes of the nodes of an onnx.ModelProto: added, removed, renamed, ordered."""

from __future__ import annotations

import collections
import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.formats.protos import Message
from sardonyx.tools.graph_matching import GraphMatching
from sardonyx.tools.models import graphs_of

__all__ = ["GraphEdits"]


class GraphEdits(GraphMatching):
    """An onnx.ModelProto that is changed in place, with the methods of onnxruntime's class OnnxModel for it."""

    def add_node(self, node: Message, graph_name: str | None = None) -> None:
        """Append a node to the main graph, or to that of a name; raises InvalidArgument where there is none."""
        self._graph(graph_name).node.append(node)

    def add_nodes(self, nodes_to_add: Iterable[Message], node_name_to_graph_name: Mapping[str, str] | None = None) -> None:
        """Append nodes to the main graph, or each to the graph that the table names for it."""
        for node in nodes_to_add:
            self.add_node(node, (node_name_to_graph_name or {}).get(node.name))

    def remove_node(self, node: Message) -> None:
        """Remove a node from the graph that it is in; one that is in none stays where it is."""
        graph = self.get_graph_by_node(node)
        if graph is not None:
            graph.node.remove(node)

    def remove_nodes(self, nodes_to_remove: Iterable[Message]) -> None:
        """Remove nodes, as `remove_node` does."""
        for node in list(nodes_to_remove):
            self.remove_node(node)

    def add_initializer(self, tensor: Message, graph_name: str | None = None) -> None:
        """Add an onnx.TensorProto to a graph, as `add_node` does."""
        self._graph(graph_name).initializer.append(tensor)

    def remove_initializer(self, tensor: Message) -> None:
        """Remove an onnx.TensorProto from the first graph that has it."""
        for graph in self.graphs():
            if tensor in graph.initializer:
                graph.initializer.remove(tensor)
                return

    def add_input(self, input: Message, graph_name: str | None = None) -> None:
        """Add an input, an onnx.ValueInfoProto, to a graph, as `add_node` does."""
        self._graph(graph_name).input.append(input)

    def _graph(self, name: str | None) -> Message:
        found = self.model.graph if name is None else self.get_graph_by_name(name)
        if found is None:
            raise InvalidArgument(f"the model has no graph {name!r}; it has {', '.join(graph.name for graph in self.graphs())}")
        return found

    @staticmethod
    def replace_node_input(node: Message, old_input_name: str, new_input_name: str) -> None:
        """Have a node read another value wherever it reads one."""
        _rename(node.input, old_input_name, new_input_name)

    @staticmethod
    def replace_node_output(node: Message, old_output_name: str, new_output_name: str) -> None:
        """Have a node make a value under another name."""
        _rename(node.output, old_output_name, new_output_name)

    def replace_input_of_all_nodes(self, old_input_name: str, new_input_name: str) -> None:
        """Have all nodes read another value."""
        for node in self.nodes():
            _rename(node.input, old_input_name, new_input_name)

    def replace_output_of_all_nodes(self, old_output_name: str, new_output_name: str) -> None:
        """Have the node that makes a value do so under another name."""
        for node in self.nodes():
            _rename(node.output, old_output_name, new_output_name)

    def rename_graph_output(self, old_name: str, new_name: str) -> None:
        """Rename an output of the main graph, in the nodes that make and read it too.

        Raises:
            InvalidArgument: there is no such output, or another value has the new name.
        """
        output = self.find_graph_output(old_name)
        if output is None:
            known = ", ".join(value.name for value in self.model.graph.output)
            raise InvalidArgument(f"the model has no output {old_name!r}; it has {known}")
        taken = self.output_name_to_node().keys() | {value.name for graph in self.graphs() for value in graph.input}
        if new_name in taken or self.get_initializer(new_name) is not None:
            raise InvalidArgument(f"the output {old_name!r} cannot be called {new_name!r}: another value has this name")
        output.name = new_name
        self.replace_output_of_all_nodes(old_name, new_name)
        self.replace_input_of_all_nodes(old_name, new_name)

    def create_node_name(self, op_type: str, name_prefix: str | None = None) -> str:
        """Return a name that no node has: the operator, or the prefix, with a number that is one larger than those in use."""
        prefix = f"{(name_prefix or op_type).removesuffix('_')}_"
        ends = (node.name.removeprefix(prefix) for node in self.nodes() if node.name.startswith(prefix))
        return f"{prefix}{max((int(end) + 1 for end in ends if end.isdecimal()), default=0)}"

    def remove_unused_constant(self) -> None:
        """Remove constants that nothing reads: nodes Constant of all graphs, and initializers."""
        read = self.input_name_to_nodes().keys() | set(self.get_graphs_output_names())
        for graph in self.graphs():
            for node in [node for node in graph.node if node.op_type == "Constant" and node.output[0] not in read]:
                graph.node.remove(node)
            declared = {value.name for value in graph.input}
            for tensor in [tensor for tensor in graph.initializer if tensor.name not in read and tensor.name not in declared]:
                graph.initializer.remove(tensor)

    def prune_graph(self, outputs: Sequence[str] | None = None, allow_remove_graph_inputs: bool = True) -> None:
        """Keep what outputs of the main graph depend on.

        Args:
            outputs: their names; those that are left out are no outputs afterwards. All where None.
            allow_remove_graph_inputs: whether inputs that nothing reads then are removed.

        Raises:
            InvalidArgument: there is no output of a name.
        """
        graph = self.model.graph
        unknown = [name for name in outputs or () if self.find_graph_output(name) is None]
        if unknown:
            raise InvalidArgument(f"the model has no output {unknown[0]!r}; it has {', '.join(v.name for v in graph.output)}")
        kept = [value for value in graph.output if outputs is None or value.name in outputs]
        needed = {value.name for value in kept}
        nodes = []
        for node in reversed(_sorted(graph.node)):
            if needed.intersection(node.output):
                nodes.append(node)
                needed.update(_read_by(node))
        _refill(graph.node, reversed(nodes))
        _retain(graph.output, {value.name for value in kept})
        _retain(graph.initializer, needed)
        if allow_remove_graph_inputs:
            _retain(graph.input, needed)

    def update_graph(self, verbose: bool = False, allow_remove_graph_inputs: bool = False) -> None:
        """Remove what no output of the main graph depends on; `verbose` has no effect."""
        self.prune_graph(allow_remove_graph_inputs=allow_remove_graph_inputs)

    @staticmethod
    def graph_topological_sort(graph: Message, is_deterministic: bool = False) -> None:
        """Order the nodes of a graph, each after those that make what it reads; the order is always the same.

        Raises:
            InvalidArgument: nodes read one another's outputs in a circle.
        """
        _refill(graph.node, _sorted(graph.node))

    def topological_sort(self, is_deterministic: bool = False, dump_model_on_failure: bool = False) -> None:
        """Order the nodes of all graphs, as `graph_topological_sort` does; no model is written where that fails."""
        for graph in self.graphs():
            self.graph_topological_sort(graph)

    def clean_shape_infer(self) -> None:
        """Remove what the main graph declares of values inside."""
        del self.model.graph.value_info[:]


def _rename(names: Message, old: str, new: str) -> None:
    for index, name in enumerate(names):
        if name == old:
            names[index] = new


def _read_by(node: Message) -> set[str]:
    """Return the values that a node reads, those that its bodies read included."""
    bodies = (body for attribute in node.attribute for body in ([attribute.g] if attribute.HasField("g") else attribute.graphs))
    inner = [graph for body in bodies for graph in graphs_of(body)]
    names = [name for graph in inner for item in graph.node for name in item.input]
    return {*node.input, *names, *(value.name for graph in inner for value in graph.output)}


def _sorted(nodes: Iterable[Message]) -> list[Message]:
    """Return nodes, each after those that make what it reads; nodes that are in such an order stay as they are."""
    given = list(nodes)
    makers = {name: index for index, node in enumerate(given) for name in node.output if name}
    waits = [{makers[name] for name in _read_by(node) if name in makers} for node in given]
    readers: dict[int, list[int]] = collections.defaultdict(list)
    for index, made_by in enumerate(waits):
        for maker in made_by:
            readers[maker].append(index)
    missing = [len(made_by) for made_by in waits]
    ready = [index for index, count in enumerate(missing) if not count]
    order = []
    while ready:
        order.append(heapq.heappop(ready))
        for reader in readers[order[-1]]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, reader)
    if len(order) < len(given):
        stuck = next(node for node, count in zip(given, missing, strict=True) if count)
        raise InvalidArgument(f"nodes read one another's outputs in a circle, {stuck.op_type} {stuck.name!r} among them")
    return [given[index] for index in order]


def _refill(field: Message, items: Iterable[Message]) -> None:
    kept = list(items)
    del field[:]
    field.extend(kept)


def _retain(field: Message, names: Collection[str]) -> None:
    """Delete what is called by none of these names; what stays is not copied."""
    for index in reversed(range(len(field))):
        if field[index].name not in names:
            del field[index]
