"""Parts of a model's main graph as models of their own, on the values that flow between them.

Nodes are numbered in topological order. A part is some of them, and everything that they read from others becomes an input; names,
types and symbolic dimensions stay as they are in the model, so that an optimizer sees in the part what it saw in the whole.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sardonyx.dtypes import DataType, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Expr, Graph, Model, Node, TensorType, Value, ValueType
from sardonyx.ir.shape import anonymous
from sardonyx.optimize.agreement import MOVING
from sardonyx.optimize.edit import Names, clone_node
from sardonyx.partition.cut import node_reads

__all__ = ["Part", "Slices"]


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """Some nodes of a model, as a model."""

    model: Model
    """The nodes between inputs and outputs that are named as in the whole."""
    nodes: tuple[Node, ...]
    """The nodes, of the whole, in topological order."""
    outputs: tuple[Value, ...]
    """For each output of `model` the value of the whole."""
    feed: Mapping[str, OnnxValue]
    """The inputs, by name."""
    depth: int
    """The most nodes that compute, one after another; nodes that move elements are not counted."""


class Slices:
    """The main graph of a model without function calls, whose named values can be cut anywhere."""

    def __init__(self, model: Model) -> None:
        """Take over `model`: values without a name that others read get one."""
        self.model = model
        self.nodes: tuple[Node, ...] = tuple(model.graph)
        """The nodes, in topological order."""
        self._reads = {node: tuple(node_reads(node)) for node in self.nodes}
        self._last: dict[Value, int] = {}
        names = Names.of(model)
        for index, node in enumerate(self.nodes):
            self._last.update((value, index) for value in self._reads[node])
            for value in node.outputs:
                if not value.name and value.use_count:
                    value.name = names.fresh(f"{node.name or node.op_type}_{index}")
        self._last.update((value, len(self.nodes)) for value in model.graph.outputs)

    def reads(self, node: Node) -> tuple[Value, ...]:
        """Return the values that a node reads, also inside its bodies."""
        return self._reads[node]

    def start(self, feed: Mapping[str, OnnxValue]) -> dict[Value, OnnxValue]:
        """Return the values before the first node: what is fed, by input."""
        return {value: feed[value.name] for value in self.model.graph.inputs if value.name in feed}

    def advance(self, values: Mapping[Value, OnnxValue], made: Mapping[Value, OnnxValue], index: int) -> dict[Value, OnnxValue]:
        """Return the values that node `index` and later ones may read, from those before and those `made` on the way."""
        return {value: item for value, item in {**values, **made}.items() if self._last.get(value, -1) >= index}

    def part(self, nodes: Sequence[Node], values: Mapping[Value, OnnxValue], *, gives_all: bool = False) -> Part:
        """Return a part.

        Args:
            nodes: which, in topological order.
            values: what they read of others, which may be more; anything by its ONNX type.
            gives_all: whether everything that they make is given out, not only what others read.

        Raises:
            InvalidArgument: a value is of a type that no input can have.
        """
        inside = set(nodes)
        made = {value for node in nodes for value in node.outputs}
        outputs = tuple(
            value for node in nodes for value in node.outputs if self._leaves(value, inside) or (gives_all and value.use_count)
        )
        copies: dict[Value, Value] = {}
        graph = Graph(self.model.graph.name or "part")
        sizes: dict[str, int] = {}
        for value in dict.fromkeys(value for node in nodes for value in self._reads[node] if value not in made):
            copy = copies[value] = Value(value.name, value.type, value.constant)
            if value.constant is not None:
                graph.initializers[value.name] = copy
                continue
            copy.type = _type_of(value, values.get(value), sizes)
            graph.inputs.append(copy)
        for node in nodes:
            graph.append(clone_node(node, copies))
        for value in outputs:
            graph.add_output(copies[value])
        whole = self.model
        model = Model(graph, dict(whole.opset_imports), ir_version=whole.ir_version, path=whole.path)
        feed = {
            value.name: values[value]
            for value, copy in copies.items()
            if value.constant is None and value in values and copy in graph.inputs
        }
        return Part(model, tuple(nodes), outputs, feed, self.depth(nodes))

    def named(self, nodes: Sequence[Node], feed: Mapping[str, OnnxValue]) -> dict[Value, OnnxValue]:
        """Return what `nodes` read of a feed, by value."""
        reads = (value for node in nodes for value in self._reads[node])
        return {value: feed[value.name] for value in reads if value.name in feed}

    def whole(self, values: Mapping[Value, OnnxValue]) -> Part:
        """Return all nodes as a part, whose outputs are those of the model."""
        feed = {value.name: item for value, item in values.items()}
        return Part(self.model, self.nodes, self.model.graph.outputs, feed, self.depth(self.nodes))

    def depth(self, nodes: Iterable[Node]) -> int:
        """Return the most of `nodes`, in topological order, that compute one after another; 1 at least."""
        deepest: dict[Value, int] = {}
        most = 1
        for node in nodes:
            before = max((deepest.get(value, 0) for value in self._reads[node]), default=0)
            depth = before + (node.op_type not in MOVING)
            deepest.update((value, depth) for value in node.outputs)
            most = max(most, depth)
        return most

    def ancestors(self, nodes: Sequence[Node], value: Value) -> list[Node]:
        """Return those of `nodes`, in their order, that `value` is computed by."""
        needed = {value}
        found = []
        for node in reversed(nodes):
            if any(output in needed for output in node.outputs):
                found.append(node)
                needed.update(self._reads[node])
        return found[::-1]

    def is_source(self, node: Node, nodes: Iterable[Node]) -> bool:
        """Return whether `node` reads nothing that the others of `nodes` make."""
        made = {value for other in nodes for value in other.outputs}
        return not any(value in made for value in self._reads[node])

    def _leaves(self, value: Value, inside: set[Node]) -> bool:
        """Return whether a value is read by others than the nodes `inside`."""
        if value.is_graph_output and value in self.model.graph.outputs:
            return True
        own = {user for user, _ in value.uses if isinstance(user, Node) and user.graph is self.model.graph}
        captured = value.use_count > sum(1 for user, _ in value.uses if isinstance(user, Node) and user in own)
        if captured:
            return any(value in self._reads[node] for node in self.nodes if node not in inside)
        return any(user not in inside for user in own)


def _type_of(value: Value, given: OnnxValue, sizes: dict[str, int]) -> ValueType | None:
    """Return the type of an input; a dimension that the value in the run contradicts is left open.

    Args:
        value: of the whole.
        given: what it was in the run.
        sizes: the sizes of symbols so far, to which new ones are added.
    """
    if not isinstance(given, np.ndarray):
        if value.type is None:
            raise InvalidArgument(f"the type of {value.name!r} is not known, and a {type(given).__name__} does not show it")
        return value.type
    shape = value.shape if value.shape is not None and len(value.shape) == given.ndim else (anonymous(),) * given.ndim
    dims = tuple(_dim(dim, size, sizes) for dim, size in zip(shape, given.shape, strict=True))
    return TensorType(DataType.from_numpy(given.dtype), dims)


def _dim(dim: Dim, size: int, sizes: dict[str, int]) -> Dim:
    if not isinstance(dim, Expr):
        return dim if dim == size else anonymous()
    is_plain = dim.name is not None and sizes.setdefault(dim.name, size) == size
    return dim if is_plain else anonymous()
