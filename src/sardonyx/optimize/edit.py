"""Small edits that rules and passes share: constants, fresh names, removal of what nothing reads, copies of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sardonyx.dtypes import Array
from sardonyx.ir import Attribute, AttributeKind, Graph, Model, Node, Tensor, Value
from sardonyx.ir.walk import all_graphs, nested_graphs

__all__ = [
    "PROVIDER_KEY",
    "RANDOM",
    "Names",
    "Resolve",
    "are_placed_apart",
    "clone_graph",
    "clone_node",
    "inherit_metadata",
    "overridable_values",
    "remove_dead",
    "replace_value",
    "small_constant",
    "take_over",
    "tensor_of",
]

PROVIDER_KEY = "sardonyx.provider"
"""The metadata of a node that names its provider."""

RANDOM = frozenset(
    ["Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"]
)
"""Operators whose outputs are drawn anew each time: never merged, never folded."""


class Names:
    """Names that are taken, so that new ones differ from each."""

    def __init__(self, taken: Iterable[str]) -> None:
        """Begin with the names `taken`."""
        self._taken = set(taken)
        self._serials: dict[str, int] = {}
        """The last number that was put behind each base; those below are taken."""

    @staticmethod
    def of(model: Model) -> Names:
        """Return the names of all values and initializers of a model; O(nodes)."""
        names = Names(())
        for graph in all_graphs(model):
            names._taken.update(value.name for value in graph.inputs)
            names._taken.update(graph.initializers)
            names._taken.update(value.name for node in graph for value in node.outputs)
        return names

    def fresh(self, base: str) -> str:
        """Return `base`, or `base` with a number, whichever is not taken; it is from now on."""
        name, serial = base, self._serials.get(base, 0)
        while name in self._taken or not name:
            serial += 1
            name = f"{base}_{serial}"
        self._serials[base] = serial
        self._taken.add(name)
        return name


def overridable_values(model: Model) -> frozenset[Value]:
    """Return graph inputs with a default: initializers that a feed may override, hence no constants."""
    return frozenset(value for graph in all_graphs(model) for value in graph.inputs if value.constant is not None)


def tensor_of(value: Value | None, overridable: frozenset[Value] = frozenset()) -> Tensor | None:
    """Return the tensor that `value` always is: that of an initializer or of a Constant node; None for any other value."""
    if value is None or value in overridable:
        return None
    if value.constant is not None:
        return value.constant
    node = value.producer
    if node is None or node.op_type != "Constant" or node.domain:
        return None
    attribute = node.attributes.get("value")
    return attribute.value if attribute is not None and attribute.reference is None else None


def small_constant(value: Value | None, overridable: frozenset[Value] = frozenset(), *, max_elements: int = 1024) -> Array | None:
    """Return the elements of a constant of at most `max_elements`, else None."""
    tensor = tensor_of(value, overridable)
    return None if tensor is None or tensor.size > max_elements else tensor.numpy()


def take_over(old: Value, new: Value, version: int) -> None:
    """Make all users of `old` read `new`, which takes over the type and the name where it has none.

    Outputs of graphs keep their names; where that needs an Identity, it is read under opset `version`.
    """
    if new.type is None:
        new.type = old.type
    outputs = [(user, index) for user, index in old.uses if isinstance(user, Graph)]
    old.replace_all_uses_with(new)
    for graph, index in outputs:
        producer = graph.outputs[index].producer
        if graph.outputs[index] is not new and producer is not None:
            producer.version = version
    if not new.name and new.producer is not None:
        new.name, old.name = old.name, ""


def replace_value(old: Value, new: Value) -> bool:
    """Make all users of `old` read `new`; not where an output of a graph could not keep its name without a copy.

    Returns:
        Whether it was done. `new` takes over the type where it had none.
    """
    outputs = [user for user, _ in old.uses if isinstance(user, Graph)]
    if outputs:
        producer = new.producer
        if len(outputs) > 1 or producer is None or producer.graph is not outputs[0] or new.is_graph_output:
            return False
    if new.type is None:
        new.type = old.type
    old.replace_all_uses_with(new)
    return True


def remove_dead(nodes: Iterable[Node]) -> list[Node]:
    """Remove each of `nodes` whose outputs nobody uses, then what only those used, upwards; returns the removed nodes."""
    removed: list[Node] = []
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node.graph is None or any(value.use_count for value in node.outputs):
            continue
        before = [value.producer for value in _read_by(node) if value.producer is not None]
        node.graph.remove(node)
        removed.append(node)
        stack.extend(before)
    return removed


def _read_by(node: Node) -> list[Value]:
    values = [value for value in node.inputs if value is not None]
    for subgraph in node.subgraphs:
        for graph in nested_graphs(subgraph):
            values.extend(graph.outputs)
            values.extend(value for inner in graph for value in inner.inputs if value is not None)
    return values


def are_placed_apart(nodes: Iterable[Node]) -> bool:
    """Return whether the metadata of `nodes` name more than one provider, so that no one node can take their place."""
    return len({node.metadata[PROVIDER_KEY] for node in nodes if node.metadata and PROVIDER_KEY in node.metadata}) > 1


def inherit_metadata(old: Iterable[Node], new: Iterable[Node]) -> None:
    """Give the nodes that take the place of `old` their metadata; of two texts under one key the first node's stays."""
    merged: dict[str, str] = {}
    for node in old:
        for key, text in (node.metadata or {}).items():
            merged.setdefault(key, text)
    for node in new if merged else ():
        node.metadata = merged | (node.metadata or {})


Resolve = Callable[[Attribute], Attribute | None]
"""Gives the attribute in whose place a copied one stands; None leaves it out."""


def clone_node(node: Node, values: dict[Value, Value], resolve: Resolve | None = None) -> Node:
    """Copy a node with its subgraphs; inputs are looked up in `values`, to which its outputs are added."""
    attributes: dict[str, Attribute] = {}
    for name, attribute in node.attributes.items():
        resolved = attribute if resolve is None else resolve(attribute)
        if resolved is not None:
            own = resolved is attribute
            attributes[name] = _clone_attribute(resolved, values if own else {}, resolve if own else None)
    copy = Node(
        node.op_type,
        [None if value is None else values.get(value, value) for value in node.inputs],
        [_clone_value(value, values) for value in node.outputs],
        attributes,
        domain=node.domain,
        version=node.version,
        name=node.name,
        overload=node.overload,
    )
    copy.doc, copy.metadata = node.doc, node.metadata
    return copy


def _clone_value(value: Value, values: dict[Value, Value]) -> Value:
    copy = Value(value.name, value.type, value.constant)
    copy.doc, copy.metadata = value.doc, value.metadata
    values[value] = copy
    return copy


def _clone_attribute(attribute: Attribute, values: dict[Value, Value], resolve: Resolve | None) -> Attribute:
    if attribute.value is None or attribute.kind not in (AttributeKind.GRAPH, AttributeKind.GRAPHS):
        return attribute
    if attribute.kind is AttributeKind.GRAPH:
        return Attribute(attribute.kind, clone_graph(attribute.value, values, resolve))
    return Attribute(attribute.kind, tuple(clone_graph(graph, values, resolve) for graph in attribute.value))


def clone_graph(graph: Graph, values: dict[Value, Value], resolve: Resolve | None = None) -> Graph:
    """Copy a graph; what it captures is looked up in `values`, to which its own values are added."""
    inputs = [_clone_value(value, values) for value in graph.inputs]
    initializers = [values[value] if value in values else _clone_value(value, values) for value in graph.initializers.values()]
    copy = Graph(graph.name, inputs, initializers=initializers)
    copy.doc, copy.metadata = graph.doc, graph.metadata
    for node in graph:
        copy.append(clone_node(node, values, resolve))
    for value in graph.outputs:
        copy.add_output(values.get(value, value))
    return copy


def clone_model(model: Model) -> Model:
    """Copy a model; tensors and the bodies of functions are shared."""
    copy = Model(clone_graph(model.graph, {}), dict(model.opset_imports), ir_version=model.ir_version, path=model.path)
    copy.functions, copy.metadata = dict(model.functions), dict(model.metadata)
    for name in ("producer_name", "producer_version", "domain", "doc", "version", "training", "configurations"):
        setattr(copy, name, getattr(model, name))
    return copy
