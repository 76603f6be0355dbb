"""Put the derivative of a graph, in other operators, in the place of each Gradient node (ai.onnx.preview.training)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sardonyx import errors
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.schema import place_of
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.derivatives import Make, derivative_of, differentiable_operators
from sardonyx.optimize.edit import clone_node, take_over

__all__ = ["EXPAND_GRADIENTS"]

_DOMAIN = "ai.onnx.preview.training"


class _ExpandGradients:
    """Differentiate in reverse mode the part of the graph that a Gradient node names.

        c = Add(a, b); d = Mul(c, a); p, q = Gradient(a, b) {xs = ["a", "b"], y = "d"}
        ->    p = Add(Mul(one, c), Mul(one, a)) …; q = Mul(one, a)                          with one = ones like d

    Holds before: values have the names that the model gives them. The part may stand before or after the Gradient node. Where the
    inputs are not the named values themselves, the forward part is computed anew from them. Cost: O(nodes) for each Gradient.

    Raises InvalidGraph where a name is unknown or y does not depend on x, NotImplemented for an operator without known derivative.
    """

    name = "expand_gradients"

    def run(self, model: Model, context: Context) -> bool:
        """Expand all Gradient nodes; whether there were any."""
        found = [node for graph in nested_graphs(model.graph) for node in graph if _is_gradient(node)]
        if not found:
            return False
        infer_graph(model)
        made: dict[str, Value] = {}
        for node in found:
            _expand(node, made)
        return True


EXPAND_GRADIENTS: Pass = _ExpandGradients()


def _is_gradient(node: Node) -> bool:
    return node.op_type == "Gradient" and node.domain == _DOMAIN


def _expand(node: Node, made: dict[str, Value]) -> None:
    graph = node.graph
    assert graph is not None
    named = {**_values_by_name(graph), **made}
    xs = [_find(node, name, named) for name in node.texts("xs", ())]
    zs = [_find(node, name, named) for name in node.texts("zs", ())]
    y = _find(node, node.text("y", ""), named)
    if len(node.inputs) != len(xs) + len(zs) or len(node.outputs) > len(xs):
        raise InvalidGraph(
            f"{place_of(node)} has {len(node.inputs)} inputs and {len(node.outputs)} outputs; expected {len(xs) + len(zs)} inputs, "
            f"one for each of xs and zs, and at most {len(xs)} outputs, one for each of xs"
        )
    make = Make()
    leaves = {value: value if given is None else given for value, given in zip([*xs, *zs], node.inputs, strict=True)}
    forward = list(_between(graph, set(leaves), y))
    values: dict[Value, Value] = {}
    if any(value is not given for value, given in leaves.items()):
        values.update(leaves)
        make.nodes.extend(clone_node(inner, values) for inner in forward)
    nodes = list(make.nodes) or forward
    gradients = _differentiate(node, make, nodes, values.get(y, y))
    results = [gradients.get(values.get(x, x)) for x in xs]
    for output, x, result in zip(node.outputs, xs, results, strict=False):
        new = make.filled(0, values.get(x, x)) if result is None else make("Identity", result)
        if output.name:
            made[output.name] = new
        take_over(output, new, node.version)
    for inner in make.nodes:
        graph.insert_before(node, inner)
    graph.remove(node)
    graph.sort()


def _values_by_name(graph: Graph) -> dict[str, Value]:
    found = {value.name: value for node in graph for value in node.outputs if value.name}
    found.update(graph.initializers)
    found.update((value.name, value) for value in graph.inputs)
    return found


def _find(node: Node, name: str, named: Mapping[str, Value]) -> Value:
    if name not in named:
        raise InvalidGraph(f"{place_of(node)} names {name!r}, which is no value of its graph")
    return named[name]


def _between(graph: Graph, leaves: set[Value], y: Value) -> Iterator[Node]:
    """Yield the nodes that y depends on, up to the leaves, in topological order."""
    wanted: set[Node] = set()
    stack = [] if y in leaves else [y]
    while stack:
        producer = stack.pop().producer
        if producer is None or producer in wanted or producer.graph is not graph:
            continue
        wanted.add(producer)
        stack.extend(value for value in producer.inputs if value is not None and value not in leaves)
    return (node for node in graph if node in wanted)


def _differentiate(place: Node, make: Make, nodes: list[Node], y: Value) -> dict[Value, Value]:
    """Return, by value, the gradient of y with respect to it, for all that y depends on differentiably."""
    gradients = {y: make.filled(1, y)}
    for node in reversed(nodes):
        found = [(value, gradients[value]) for value in node.outputs if value in gradients]
        if not found:
            continue
        derivative = derivative_of(node)
        if derivative is None or len(node.outputs) != 1:
            known = ", ".join(differentiable_operators())
            raise errors.NotImplemented(f"{place_of(place)}: no derivative of {place_of(node)} is known, only those of {known}")
        ((_, gradient),) = found
        for value, part in zip(node.inputs, derivative(make, node, gradient), strict=False):
            if value is not None and part is not None:
                gradients[value] = make("Add", gradients[value], part) if value in gradients else part
    return gradients
