"""Chains of nodes found by their operators, as fusions written for onnxruntime's class OnnxModel look for them."""

from __future__ import annotations

from collections.abc import Collection, MutableSequence, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.formats.protos import Message
from sardonyx.tools.graph_queries import GraphQueries, Makers, Readers

__all__ = ["GraphMatching", "ParentPath"]

ParentPath = tuple[Sequence[str], Sequence[int | None] | None]
"""Operators of a chain, and for each which input of the node before it leads there: None for any."""


class GraphMatching(GraphQueries):
    """An onnx.ModelProto in which chains of nodes are looked for, upwards by inputs and downwards by outputs."""

    def match_first_parent(
        self, node: Message, parent_op_type: str, output_name_to_node: Makers | None = None, exclude: Collection[Message] = ()
    ) -> tuple[Message, int] | tuple[None, None]:
        """Return the first node of an operator that makes an input of a node, and which input that is; else (None, None).

        Args:
            node: whose inputs are looked at, in their order.
            parent_op_type: the operator.
            output_name_to_node: the table of makers; made where None.
            exclude: nodes that do not count.
        """
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        for index, name in enumerate(node.input):
            if _fits(makers.get(name), parent_op_type, exclude):
                return makers[name], index
        return None, None

    def match_parent(
        self,
        node: Message,
        parent_op_type: str,
        input_index: int | None = None,
        output_name_to_node: Makers | None = None,
        exclude: Collection[Message] = (),
        return_indice: MutableSequence[int | None] | None = None,
    ) -> Message | None:
        """Return a node of an operator that makes an input of a node, None where there is none.

        Args:
            node: whose input is looked at.
            parent_op_type: the operator.
            input_index: which input; the first that fits where None.
            output_name_to_node: the table of makers; made where None.
            exclude: nodes that do not count.
            return_indice: gets the index of the input that fits (None where none does), if `input_index` is None.

        Raises:
            InvalidArgument: the index is negative, or there is no node.
        """
        if node is None:
            raise InvalidArgument(f"match_parent looks for a parent {parent_op_type} of a node, got None")
        if input_index is not None and input_index < 0:
            raise InvalidArgument(f"input_index of match_parent is 0 or more, or None for any input, got {input_index}")
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        if input_index is None:
            found, index = self.match_first_parent(node, parent_op_type, makers, exclude)
            if return_indice is not None:
                return_indice.append(index)
            return found
        parent = self.get_parent(node, input_index, makers)
        return parent if _fits(parent, parent_op_type, exclude) else None

    def match_parent_path(
        self,
        node: Message,
        parent_op_types: Sequence[str],
        parent_input_index: Sequence[int | None] | None = None,
        output_name_to_node: Makers | None = None,
        return_indice: MutableSequence[int | None] | None = None,
    ) -> list[Message] | None:
        """Return the nodes of a chain that ends at a node, the nearest first; None where there is no such chain.

        Of the inputs that fit, only the first is followed.

        Args:
            node: where the chain ends; it is not in the result.
            parent_op_types: the operators, the nearest first.
            parent_input_index: for each, which input of the node after it leads there; None for any.
            output_name_to_node: the table of makers; made where None.
            return_indice: gets the index of each input that was left open.

        Raises:
            InvalidArgument: there are not as many indices as operators.
        """
        if parent_input_index is not None and len(parent_input_index) != len(parent_op_types):
            raise InvalidArgument(
                f"parent_input_index has {len(parent_input_index)} indices, and parent_op_types {len(parent_op_types)} operators:"
                " give one for each, or None"
            )
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        chain: list[Message] = []
        for position, op_type in enumerate(parent_op_types):
            index = None if parent_input_index is None else parent_input_index[position]
            last = chain[-1] if chain else node
            found = self.match_parent(last, op_type, index, makers, return_indice=return_indice)
            if found is None:
                return None
            chain.append(found)
        return chain

    def match_parent_paths(
        self, node: Message, paths: Sequence[ParentPath], output_name_to_node: Makers | None = None
    ) -> tuple[int, list[Message], list[int | None]] | tuple[int, None, None]:
        """Return which of several chains is the first that ends at a node, its nodes, and the indices of its open inputs.

        (-1, None, None) where there is none. Arguments and errors are those of `match_parent_path`.
        """
        found, chains, indices = self.match_parent_paths_all(node, paths, output_name_to_node, first_only=True)
        return (found[0], chains[0], indices[0]) if found else (-1, None, None)

    def match_parent_paths_all(
        self,
        node: Message,
        paths: Sequence[ParentPath],
        output_name_to_node: Makers | None = None,
        *,
        first_only: bool = False,
    ) -> tuple[list[int], list[list[Message]], list[list[int | None]]]:
        """Return which of several chains end at a node, the nodes of each, and the indices of its open inputs.

        Args:
            node: where the chains end.
            paths: operators and indices of each, as `match_parent_path` takes them.
            output_name_to_node: the table of makers; made where None.
            first_only: whether to stop at the first that is found.

        Raises:
            InvalidArgument: a path is no list or tuple, or has not as many indices as operators.
        """
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        found: list[int] = []
        chains: list[list[Message]] = []
        indices: list[list[int | None]] = []
        for position, path in enumerate(paths):
            if not isinstance(path, (list, tuple)):
                raise InvalidArgument(f"a path is a list of operators and one of indices, got {type(path).__name__} at {position}")
            opened: list[int | None] = []
            chain = self.match_parent_path(node, path[0], path[1], makers, opened)
            if chain:
                found.append(position)
                chains.append(chain)
                indices.append(opened)
                if first_only:
                    break
        return found, chains, indices

    def match_child_path(
        self,
        node: Message,
        child_op_types: Sequence[str],
        edges: Sequence[tuple[int, int]] | None = None,
        input_name_to_nodes: Readers | None = None,
        exclude: Collection[Message] = (),
    ) -> list[Message] | None:
        """Return the nodes of a chain that begins behind a node, the nearest first; None where there is no such chain.

        Of the nodes that fit, only the first is followed.

        Args:
            node: behind which the chain begins; it is not in the result.
            child_op_types: the operators, the nearest first.
            edges: for each, which output of the node before it goes to which of its inputs; any where None.
            input_name_to_nodes: the table of readers; made where None.
            exclude: nodes that do not count.

        Raises:
            InvalidArgument: there are not as many edges as operators, or one is not a tuple of two integers.
        """
        if edges is not None and len(edges) != len(child_op_types):
            raise InvalidArgument(f"there are {len(edges)} edges for {len(child_op_types)} operators: give one for each, or None")
        given: Sequence[object] = edges or ()
        for pair in given:
            if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(index, int) for index in pair):
                raise InvalidArgument(f"an edge is a tuple of the indices of an output and of an input, got {pair!r}")
        readers = self.input_name_to_nodes() if input_name_to_nodes is None else input_name_to_nodes
        chain: list[Message] = []
        for position, op_type in enumerate(child_op_types):
            last = chain[-1] if chain else node
            edge = None if edges is None else edges[position]
            children = self.get_children(last, readers, None if edge is None else edge[0])
            fitting = (child for child in children if _fits(child, op_type, exclude) and _joined(last, child, edge))
            found = next(fitting, None)
            if found is None:
                return None
            chain.append(found)
        return chain

    def is_safe_to_fuse_nodes(
        self,
        nodes_to_remove: Collection[Message],
        keep_outputs: Collection[str],
        input_name_to_nodes: Readers,
        output_name_to_node: Makers | None = None,
    ) -> bool:
        """Return whether nodes may be removed: nothing else reads what they make, but for `keep_outputs`.

        Args:
            nodes_to_remove: the nodes.
            keep_outputs: values that something else will make.
            input_name_to_nodes: the table of readers.
            output_name_to_node: accepted.
        """
        made = [name for node in nodes_to_remove for name in node.output if name not in keep_outputs]
        return all(reader in nodes_to_remove for name in made for reader in input_name_to_nodes.get(name, ()))

    @staticmethod
    def get_topological_insert_id(graph: Message, outputs: Collection[str]) -> int:
        """Return the index of the first node of a graph that reads one of the values; the number of nodes where none does."""
        reads = (index for index, node in enumerate(graph.node) if any(name in outputs for name in node.input))
        return next(reads, len(graph.node))


def _fits(node: Message | None, op_type: str, exclude: Collection[Message]) -> bool:
    return node is not None and node.op_type == op_type and node not in exclude


def _joined(parent: Message, child: Message, edge: tuple[int, int] | None) -> bool:
    """Return whether the output of an edge is its input."""
    if edge is None:
        return True
    made, read = edge
    return read < len(child.input) and child.input[read] == parent.output[made]
