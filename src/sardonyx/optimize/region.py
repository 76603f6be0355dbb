"""Cut the nodes of a match, and those put in their place, out of a graph: two small models with the same inputs.

    match:     y = Div(d, Sqrt(Add(v, e)))          before:  graph(d, v) -> (y) { the matched nodes }
    new:       y' = Normalize(d, v)                 after:   graph(d, v) -> (y) { the new nodes }

A rule may read values above the ones that its pattern names; then the nodes on the way from those to the pattern belong to
`before`. Arithmetic on shapes (a target of Reshape, places that are counted) is computed in both from what it is made of: random
numbers make no shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import captured_values
from sardonyx.optimize.edit import Names, clone_node
from sardonyx.optimize.match import Match

__all__ = ["Region", "cut_out", "model_of_nodes"]

_MOST_STEPS_UP = 400
_MOST_SHAPE_NODES = 64
_MOST_SHAPE_ELEMENTS = 64
_SHAPE_OPERATORS = frozenset(
    [
        "Add",
        "Cast",
        "Ceil",
        "Concat",
        "Constant",
        "ConstantOfShape",
        "Div",
        "Equal",
        "Expand",
        "Floor",
        "Gather",
        "Identity",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "Range",
        "ReduceMax",
        "ReduceProd",
        "Reshape",
        "Shape",
        "Size",
        "Slice",
        "Squeeze",
        "Sub",
        "Unsqueeze",
        "Where",
    ]
)


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """What a rewrite replaced, and by what."""

    before: Model
    """The nodes that were matched."""
    after: Model
    """The nodes that were put in their place; its inputs and outputs are those of `before`."""
    inputs: tuple[Value, ...]
    """The values of the whole graph that the inputs stand for, in order."""
    operators: frozenset[str]
    """The operators of both."""


def cut_out(match: Match, values: Sequence[Value], built: Iterable[Node], model: Model) -> Region:
    """Return the region of a rewrite whose new nodes stand in the graph beside the old ones; O(nodes visited).

    Args:
        match: what is replaced.
        values: what takes the place of `match.outputs`.
        built: the new nodes.
        model: the model that both are in.
    """
    old, new = set(match.nodes), set(built)
    read = {value for node in new for value in _reads(node)} | {value for value in values if value.producer not in new}
    old |= _between(read, _sources(match.outputs, old))
    old |= _shape_nodes({*_sources(match.outputs, old), *_sources(values, old | new)})
    inputs = dict.fromkeys([*_sources(match.outputs, old), *_sources(values, old | new)])
    before, after = _ordered(match.outputs, old), _ordered(values, old | new)
    names = [value.name for value in match.outputs]
    return Region(
        model_of_nodes(model, "before", list(inputs), before, match.outputs, names),
        model_of_nodes(model, "after", list(inputs), after, values, names),
        tuple(inputs),
        frozenset(f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in (*before, *after)),
    )


def _reads(node: Node) -> list[Value]:
    """Return what a node reads that is no constant."""
    captured = [value for graph in node.subgraphs for value in captured_values(graph)]
    return [value for value in (*node.inputs, *captured) if value is not None and value.constant is None]


def _sources(outputs: Iterable[Value], nodes: set[Node]) -> list[Value]:
    """Return the values that `nodes` compute `outputs` from, in the order in which they are met; constants are not among them."""
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    stack = list(outputs)[::-1]
    while stack:
        value = stack.pop()
        if value in seen or value.constant is not None:
            continue
        seen.add(value)
        if value.producer is not None and value.producer in nodes:
            stack.extend(reversed(_reads(value.producer)))
        else:
            found[value] = None
    return list(found)


def _between(wanted: set[Value], sources: Iterable[Value]) -> set[Node]:
    """Return the nodes on the ways from `wanted` down to `sources`, so far as they are near."""
    wanted = {value for value in wanted if value.constant is None}
    above: list[Node] = []
    seen: set[Node] = set()
    front = [value.producer for value in sources if value.producer is not None and value not in wanted]
    while front and len(seen) < _MOST_STEPS_UP:
        node = front.pop(0)
        if node in seen:
            continue
        seen.add(node)
        above.append(node)
        front += [value.producer for value in _reads(node) if value.producer is not None and value not in wanted]
    reached: set[Node] = set()
    changed = True
    while changed:
        changed = False
        for node in above:
            if node not in reached and any(value in wanted or value.producer in reached for value in _reads(node)):
                reached.add(node)
                changed = True
    return reached


def _shape_nodes(sources: Iterable[Value]) -> set[Node]:
    """Return the nodes that compute those of `sources` that are shapes, or numbers for one."""
    found: set[Node] = set()
    stack = [value for value in sources if _is_shape(value)]
    while stack and len(found) < _MOST_SHAPE_NODES:
        node = stack.pop().producer
        if node is None or node in found or node.domain or (node.op_type not in _SHAPE_OPERATORS):
            continue
        found.add(node)
        if node.op_type not in ("Shape", "Size"):
            stack.extend(_reads(node))
    return found


def _is_shape(value: Value) -> bool:
    if value.producer is None or (value.producer.op_type == "Constant" and not value.producer.domain):
        return value.producer is not None
    if value.dtype not in (DataType.INT64, DataType.INT32) or value.shape is None or any(dim != 1 for dim in value.shape[:-1]):
        return False
    return all(not isinstance(dim, int) or dim <= _MOST_SHAPE_ELEMENTS for dim in value.shape)


def _ordered(outputs: Iterable[Value], nodes: set[Node]) -> list[Node]:
    """Return those of `nodes` that `outputs` need, in topological order."""
    order: dict[Node, None] = {}
    stack = [(value.producer, False) for value in outputs if value.producer is not None]
    while stack:
        node, is_done = stack.pop()
        if node in order or node not in nodes:
            continue
        if is_done:
            order[node] = None
            continue
        stack.append((node, True))
        stack.extend((value.producer, False) for value in _reads(node) if value.producer is not None)
    return list(order)


def model_of_nodes(
    model: Model, name: str, inputs: Sequence[Value], nodes: Sequence[Node], outputs: Sequence[Value], output_names: Sequence[str]
) -> Model:
    """Return a model of its own with copies of some nodes of `model`.

    Args:
        model: what they are nodes of.
        name: the name of the graph.
        inputs: values that they read and none of them makes; constants come along without being named here.
        nodes: the nodes, in topological order.
        outputs: values to give out, in order.
        output_names: what these are called.
    """
    copies: dict[Value, Value] = {}
    names = Names(output_names)
    for value in inputs:
        copies[value] = Value(names.fresh(value.name or "x"), value.type)
    constants = [value for node in nodes for value in _constants(node)] + [value for value in outputs if value.constant is not None]
    for value in constants:
        if value not in copies:
            copies[value] = Value(names.fresh(value.name or "constant"), value.type, value.constant)
    graph = Graph(name, [copies[value] for value in inputs], initializers=[copies[value] for value in dict.fromkeys(constants)])
    for node in nodes:
        graph.append(clone_node(node, copies))
    for value, output_name in zip(outputs, output_names, strict=True):
        _give_out(graph, copies.get(value, value), output_name)
    imports = dict(model.opset_imports)
    for node in nodes:
        imports.setdefault(node.domain, node.version)
    return Model(graph, imports, ir_version=model.ir_version)


def _constants(node: Node) -> list[Value]:
    captured = [value for graph in node.subgraphs for value in captured_values(graph)]
    return [value for value in (*node.inputs, *captured) if value is not None and value.constant is not None]


def _give_out(graph: Graph, value: Value, name: str) -> None:
    if value.producer is None or value.is_graph_output:
        copy = graph.append(Node("Identity", [value], 1, version=13)).output
        copy.type, value = value.type, copy
    value.name = name
    graph.add_output(value)
