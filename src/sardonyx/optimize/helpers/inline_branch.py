"""Put the nodes of one branch in the place of an If."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Graph, Node
from sardonyx.ops.schema import place_of
from sardonyx.optimize.edit import take_over

__all__ = ["inline_branch"]


def inline_branch(node: Node, name: str, fresh: Callable[[str], str]) -> None:
    """Move what branch `name` of an If holds in front of it, and remove it; O(nodes of the branch + uses of the outputs).

    Values of the branch lose their names, as values of the graph around may have the same; they are given new ones when saved.
    `fresh` gives names for its initializers.
    """
    graph, attribute = node.graph, node.attributes.get(name)
    if graph is None or attribute is None or not isinstance(attribute.value, Graph):
        raise InvalidGraph(f"{place_of(node)}: the branch {name!r} is missing")
    branch = attribute.value
    if len(branch.outputs) != len(node.outputs):
        raise InvalidGraph(f"{place_of(node)}: {name} gives {len(branch.outputs)} values out, expected {len(node.outputs)}")
    results = branch.outputs
    branch.clear_outputs()
    for value in branch.initializers.values():
        value.name = fresh(value.name)
        graph.initializers[value.name] = value
    branch.initializers = {}
    for inner in list(branch):
        graph.move_before(node, inner)
        for value in inner.outputs:
            value.name = ""
    for old, new in zip(node.outputs, results, strict=True):
        take_over(old, new, node.version)
    graph.remove(node)
