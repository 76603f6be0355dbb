"""Walks over graphs, subgraphs and functions."""

from __future__ import annotations

from collections.abc import Iterator

from sardonyx.ir.graph import Graph, Node, Value
from sardonyx.ir.model import Model

__all__ = ["all_graphs", "all_nodes", "captured_values", "nested_graphs"]


def nested_graphs(graph: Graph) -> Iterator[Graph]:
    """Yield `graph`, then the subgraphs of its nodes at every depth, outer before inner."""
    stack = [graph]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.bodies()))


def all_graphs(model: Model) -> Iterator[Graph]:
    """Yield the main graph, the function bodies, and every subgraph of them."""
    yield from nested_graphs(model.graph)
    for function in model.functions.values():
        yield from nested_graphs(function.graph)


def all_nodes(model: Model) -> Iterator[Node]:
    """Yield every node of the model at every depth, function bodies included."""
    for graph in all_graphs(model):
        yield from graph


def captured_values(graph: Graph) -> list[Value]:
    """Return values that `graph`, or a subgraph of it, reads from graphs around it, in the order of first use; O(nodes)."""
    inside: set[Value] = set()
    found: dict[Value, None] = {}
    graphs = list(nested_graphs(graph))
    for current in graphs:
        inside.update(current.inputs, current.initializers.values())
        for node in current:
            inside.update(node.outputs)
    for current in graphs:
        for node in current:
            found.update((value, None) for value in node.inputs if value is not None and value not in inside)
        found.update((value, None) for value in current.outputs if value not in inside)
    return list(found)
