"""Values, nodes and graphs: pure data, linked both ways, safe to edit while iterating.

A `Value` has one producer (a node, or None for an input or initializer) and knows its uses. A use is (user, index): a node and
the position among its inputs, or a graph and the position among its outputs. Subgraphs refer to values of outer
graphs directly: capture needs no declaration.

Nodes of a graph form a linked list in topological order. While iterating you may remove any node, also the current one, and
insert anywhere: nodes put after the current one are visited, nodes put before it are not. Insertion, removal and membership
are O(1).

Names identify values only in files and feeds: a value made by a rule may have the name "" and is given one when saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from sardonyx.cancellation import CHECKED_EACH, check_cancelled
from sardonyx.dtypes import DataType
from sardonyx.ir.attribute import Attribute, AttributeKind, AttributeValue
from sardonyx.ir.operator import Operator
from sardonyx.ir.order import topological_order
from sardonyx.ir.shape import Shape
from sardonyx.ir.tensor import Tensor
from sardonyx.ir.types import SparseTensorType, TensorType, ValueType

__all__ = ["Graph", "Node", "Use", "User", "Value"]

_GRAPH, _GRAPHS = AttributeKind.GRAPH, AttributeKind.GRAPHS


class Value:
    """What flows along an edge."""

    __slots__ = ("_uses", "constant", "doc", "index", "metadata", "name", "producer", "type")

    def __init__(self, name: str = "", type: ValueType | None = None, constant: Tensor | None = None) -> None:
        """Make a value without producer; `constant` makes it an initializer once a graph lists it."""
        self.name = name
        self.type = type
        self.constant = constant
        self.producer: Node | None = None
        self.index = 0
        self.doc = ""
        self.metadata: dict[str, str] | None = None
        self._uses: dict[Use, None] = {}

    @property
    def dtype(self) -> DataType | None:
        """The element type of a tensor, or None where unknown or no tensor."""
        return self.type.dtype if isinstance(self.type, (TensorType, SparseTensorType)) else None

    @property
    def shape(self) -> Shape | None:
        """The dimensions of a tensor, or None where unknown or no tensor."""
        return self.type.shape if isinstance(self.type, (TensorType, SparseTensorType)) else None

    @property
    def uses(self) -> tuple[Use, ...]:
        """Every (user, index) that reads this value, as it stands now."""
        return tuple(self._uses)

    @property
    def use_count(self) -> int:
        """How many inputs of nodes and outputs of graphs read this value."""
        return len(self._uses)

    @property
    def is_graph_output(self) -> bool:
        """Whether any graph gives this value out."""
        return any(isinstance(user, Graph) for user, _ in self._uses)

    def replace_all_uses_with(self, new: Value) -> None:
        """Make every user of this value read `new`; O(uses).

        A graph output keeps its name: `new` takes this value's name, and this value loses it. Where `new` cannot be renamed
        (it is an input, an initializer or itself an output) an Identity is put between, so that the interface stays.
        """
        if new is self:
            return
        for user, index in tuple(self._uses):
            if isinstance(user, Graph):
                user.set_output(index, _named_output(user, new, self))
            else:
                user.replace_input(index, new)

    def __repr__(self) -> str:
        return f"%{self.name}" if self.name else f"%<{id(self):x}>"


class Node(Operator):
    """One application of an operator."""

    __slots__ = (
        "_next",
        "_previous",
        "attributes",
        "doc",
        "domain",
        "graph",
        "inputs",
        "metadata",
        "name",
        "op_type",
        "outputs",
        "overload",
        "version",
    )

    def __init__(
        self,
        op_type: str,
        inputs: Iterable[Value | None],
        outputs: Iterable[Value] | int = 1,
        attributes: Mapping[str, AttributeValue] | None = None,
        *,
        domain: str = "",
        version: int,
        name: str = "",
        overload: str = "",
    ) -> None:
        """Make a node that no graph holds yet.

        Args:
            op_type: the operator.
            inputs: values in order; None for an optional input that is left out.
            outputs: the values it produces, or how many new ones to make.
            attributes: Attribute objects, or Python values from which `Attribute.of` makes them.
            domain: the operator's domain; "" is ai.onnx.
            version: the opset version of `domain` under which the node is to be read.
            name: a name for messages.
            overload: which of the functions of one name is called (ONNX IR version 10).
        """
        self.op_type, self.domain, self.version, self.name, self.overload = op_type, domain, version, name, overload
        self.inputs = tuple(inputs)
        self.outputs = tuple(Value() for _ in range(outputs)) if isinstance(outputs, int) else tuple(outputs)
        self.attributes: dict[str, Attribute] = {
            key: value if isinstance(value, Attribute) else Attribute.of(value) for key, value in (attributes or {}).items()
        }
        self.graph: Graph | None = None
        self.doc = ""
        self.metadata: dict[str, str] | None = None
        self._next: Node | None = None
        self._previous: Node | None = None
        for index, value in enumerate(self.inputs):
            if value is not None:
                value._uses[self, index] = None
        for index, value in enumerate(self.outputs):
            value.producer, value.index = self, index

    @property
    def output(self) -> Value:
        """The only output; raises ValueError where there are several."""
        (value,) = self.outputs
        return value

    def get(self, name: str, default: AttributeValue = None) -> AttributeValue:
        """Return the value of attribute `name`, or `default` where the node has none; its type follows the attribute's kind."""
        found = self.attributes.get(name)
        return default if found is None else found.value

    def subgraph(self, name: str) -> Graph | None:
        """Return the graph of attribute `name`, or None; raises InvalidGraph for another kind."""
        found = self.attributes.get(name)
        if found is not None and not isinstance(found.value, Graph):
            raise self._refusal(name, found, _GRAPH)
        return None if found is None else found.value

    @property
    def place(self) -> str:
        """What messages call it: `node "conv1" (Conv, opset 13)`, by its first output where it has no name."""
        if self.name:
            called = f'node "{self.name}"'
        else:
            called = f'node that makes "{self.outputs[0].name}"' if self.outputs else "node without outputs"
        domain = f"{self.domain}." if self.domain else ""
        return f"{called} ({domain}{self.op_type}, opset {self.version})"

    def input(self, index: int) -> Value | None:
        """Return input `index`, or None where it is left out or beyond the last."""
        return self.inputs[index] if index < len(self.inputs) else None

    def replace_input(self, index: int, value: Value | None) -> None:
        """Read `value` as input `index`."""
        old = self.inputs[index]
        if old is not None:
            del old._uses[self, index]
        if value is not None:
            value._uses[self, index] = None
        self.inputs = (*self.inputs[:index], value, *self.inputs[index + 1 :])

    def set_inputs(self, inputs: Iterable[Value | None]) -> None:
        """Replace all inputs, also by more or fewer."""
        for index, value in enumerate(self.inputs):
            if value is not None:
                del value._uses[self, index]
        self.inputs = tuple(inputs)
        for index, value in enumerate(self.inputs):
            if value is not None:
                value._uses[self, index] = None

    @property
    def subgraphs(self) -> tuple[Graph, ...]:
        """The graphs among its attributes (bodies of If, Loop, Scan …), in the order of the attributes."""
        found: tuple[Graph, ...] = ()
        for attribute in self.attributes.values():
            kind = attribute.kind
            if (kind is _GRAPH or kind is _GRAPHS) and attribute.value is not None:
                found += (attribute.value,) if kind is _GRAPH else tuple(attribute.value)
        return found

    def __repr__(self) -> str:
        prefix = f"{self.domain}." if self.domain else ""
        return f"<{prefix}{self.op_type}-{self.version} {self.name!r} {list(self.inputs)} -> {list(self.outputs)}>"


User: TypeAlias = "Node | Graph"
"""Who reads a value: a node as an input, or a graph as an output."""
Use: TypeAlias = tuple[User, int]
"""A user and the position among its inputs (node) or outputs (graph)."""


class Graph:
    """Nodes in topological order between inputs and outputs; iterate over it to get its nodes."""

    __slots__ = ("_count", "_head", "_outputs", "_tail", "doc", "initializers", "inputs", "metadata", "name")

    def __init__(
        self,
        name: str = "",
        inputs: Iterable[Value] = (),
        outputs: Iterable[Value] = (),
        initializers: Iterable[Value] = (),
        nodes: Iterable[Node] = (),
    ) -> None:
        """Make a graph; initializers are values with a `constant`, and may also be among the inputs (IR version 3)."""
        self.name = name
        self.inputs: list[Value] = list(inputs)
        self.initializers: dict[str, Value] = {value.name: value for value in initializers}
        self.doc = ""
        self.metadata: dict[str, str] | None = None
        self._outputs: list[Value] = []
        self._head: Node | None = None
        self._tail: Node | None = None
        self._count = 0
        for node in nodes:
            self.append(node)
        for value in outputs:
            self.add_output(value)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values that the graph gives out, in order; one value may occur twice."""
        return tuple(self._outputs)

    def add_output(self, value: Value) -> None:
        """Give `value` out too, after the others."""
        value._uses[self, len(self._outputs)] = None
        self._outputs.append(value)

    def set_output(self, index: int, value: Value) -> None:
        """Give out `value` at `index`; its name becomes the output's name in a file."""
        del self._outputs[index]._uses[self, index]
        self._outputs[index] = value
        value._uses[self, index] = None

    def clear_outputs(self) -> None:
        """Give nothing out."""
        for index, value in enumerate(self._outputs):
            del value._uses[self, index]
        self._outputs = []

    def add_initializer(self, tensor: Tensor, name: str = "") -> Value:
        """Add a constant, under `name` or one like it that no initializer of this graph has, and return its value."""
        base = name or tensor.name or "constant"
        unique, serial = base, 0
        while unique in self.initializers:
            serial += 1
            unique = f"{base}_{serial}"
        value = Value(unique, TensorType(tensor.dtype, tensor.shape), tensor)
        self.initializers[unique] = value
        return value

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Node]:
        node, count = self._head, 0
        while node is not None:
            if count % CHECKED_EACH == CHECKED_EACH - 1:
                check_cancelled()
            yield node
            node, count = node._next, count + 1
            while node is not None and node.graph is not self:  # removed meanwhile: its link still leads onwards
                node = node._next

    def bodies(self) -> list[Graph]:
        """Return the subgraphs of its nodes, in order; quicker than to ask each node."""
        found: list[Graph] = []
        node = self._head
        while node is not None:
            for attribute in node.attributes.values():
                kind = attribute.kind
                if kind is _GRAPH or kind is _GRAPHS:
                    found += node.subgraphs
                    break
            node = node._next
        return found

    def __reversed__(self) -> Iterator[Node]:
        node, count = self._tail, 0
        while node is not None:
            if count % CHECKED_EACH == CHECKED_EACH - 1:
                check_cancelled()
            yield node
            node, count = node._previous, count + 1
            while node is not None and node.graph is not self:
                node = node._previous

    def append(self, node: Node) -> Node:
        """Put `node` last and return it."""
        return self._link(node, self._tail, None)

    def append_new(
        self,
        op_type: str,
        inputs: tuple[Value | None, ...],
        outputs: tuple[Value, ...],
        attributes: dict[str, Attribute],
        domain: str,
        version: int,
        name: str,
        overload: str,
    ) -> Node:
        """Make a node and put it last: `append(Node(...))` without the conversions, for readers of large files."""
        node = Node.__new__(Node)
        node.op_type = op_type
        node.inputs = inputs
        node.outputs = outputs
        node.attributes = attributes
        node.domain = domain
        node.version = version
        node.name = name
        node.overload = overload
        node.doc = ""
        node.metadata = None
        node.graph = self
        node._next = None
        for index, value in enumerate(inputs):
            if value is not None:
                value._uses[node, index] = None
        for index, output in enumerate(outputs):
            output.producer = node
            output.index = index
        node._previous = tail = self._tail
        if tail is None:
            self._head = node
        else:
            tail._next = node
        self._tail = node
        self._count += 1
        return node

    def insert_before(self, place: Node, node: Node) -> Node:
        """Put `node` just before `place`, a node of this graph, and return it."""
        return self._link(node, place._previous, place)

    def insert_after(self, place: Node, node: Node) -> Node:
        """Put `node` just after `place`, a node of this graph, and return it."""
        return self._link(node, place, place._next)

    def _link(self, node: Node, previous: Node | None, following: Node | None) -> Node:
        if node.graph is not None:
            raise ValueError(f"{node!r} already belongs to a graph; remove it there first")
        node.graph, node._previous, node._next = self, previous, following
        if previous is None:
            self._head = node
        else:
            previous._next = node
        if following is None:
            self._tail = node
        else:
            following._previous = node
        self._count += 1
        return node

    def remove(self, node: Node) -> None:
        """Take out `node`, whose outputs nobody may use any longer, and release its inputs (those of its subgraphs too).

        Raises:
            ValueError: the node is not in this graph, or an output of it is still used.
        """
        if node.graph is not self:
            raise ValueError(f"{node!r} is not in graph {self.name!r}")
        for value in node.outputs:
            if value._uses:
                raise ValueError(f"{node!r} cannot be removed: {value!r} is still used by {value.uses[0][0]!r}")
        self._unlink(node)
        node.set_inputs(())
        for value in node.outputs:
            if value.producer is node:  # else another node makes it by now
                value.producer = None
        for subgraph in node.subgraphs:
            subgraph.release()

    def move_before(self, place: Node, node: Node) -> None:
        """Take `node` from where it is, in this graph or another, to just before `place` of this graph; uses stay."""
        if node.graph is not None:
            node.graph._unlink(node)
        self.insert_before(place, node)

    def _unlink(self, node: Node) -> None:
        if node._previous is None:
            self._head = node._next
        else:
            node._previous._next = node._next
        if node._next is None:
            self._tail = node._previous
        else:
            node._next._previous = node._previous
        node.graph = None
        self._count -= 1

    def release(self) -> None:
        """Drop all outputs and nodes, so that captured values no longer count this graph among their users."""
        self.clear_outputs()
        for node in reversed(self):
            self.remove(node)

    def dismantle(self) -> None:
        """Cut the links by which nodes, values and graphs hold one another in circles, so that they are freed at once.

        Nodes keep inputs, outputs and attributes; values forget producers, uses and constants. No cancellation ends it.
        """
        following = self._head
        while (node := following) is not None:
            for value in filter(None, (*node.inputs, *node.outputs)):
                _forget(value)
            for subgraph in node.subgraphs:
                subgraph.dismantle()
            following = node._next
            node.graph = node._next = node._previous = None
        for value in (*self.inputs, *self._outputs, *self.initializers.values()):
            _forget(value)
        self._head, self._tail, self._count = None, None, 0

    def sort(self) -> list[Node]:
        """Put the nodes in topological order, stable where several orders do; O(nodes + edges).

        Returns:
            The nodes on cycles or after one, left at the end in their old order; empty for a valid graph.
        """
        nodes = list(self)
        order, stuck = topological_order(nodes, lambda node: _needs(node, self))
        for node in nodes:
            self._unlink(node)
        for node in [*order, *stuck]:
            self.append(node)
        return stuck

    def __repr__(self) -> str:
        return f"<graph {self.name!r}: {self._count} nodes, {len(self.inputs)} inputs, {len(self._outputs)} outputs>"


def _forget(value: Value) -> None:
    value.producer = value.constant = None
    value._uses = {}


def _named_output(graph: Graph, new: Value, old: Value) -> Value:
    if new.name == old.name:
        return new
    fixed = new.producer is None or new.is_graph_output or new.producer.graph is not graph
    if not fixed:
        new.name, old.name = old.name, ""
        return new
    identity = Node("Identity", [new], 1, version=1)
    identity.output.name, identity.output.type, old.name = old.name, old.type, ""
    return graph.append(identity).output


def _needs(node: Node, graph: Graph) -> list[Node]:
    """Return nodes of `graph` that must run before `node`: producers of its inputs and of what its subgraphs capture.

    The list has `node` itself if the graph is cyclic.
    """
    found: dict[Node, None] = {}
    stack = [node]
    while stack:
        current = stack.pop()
        values: list[Value | None] = list(current.inputs)
        for subgraph in current.subgraphs:
            stack.extend(subgraph)
            values.extend(subgraph.outputs)
        for value in values:
            producer = None if value is None else value.producer
            if producer is not None and producer.graph is graph:
                found[producer] = None
    return list(found)
