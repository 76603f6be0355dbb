"""Find a small part of a model that still shows what a pass does wrong.

    shrink(model, shows)          the nodes from some place to another, for which shows(part) still holds

A part is a run of the main graph's nodes; what they read from before becomes its inputs, what others read of them its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import captured_values
from sardonyx.optimize.region import model_of_nodes

__all__ = ["shrink"]

_TRIES = 60


def shrink(model: Model, shows: Callable[[Model], bool]) -> Model:
    """Return the smallest part found by halving from the end, then from the start; `model` itself where no part shows it.

    Args:
        model: what shows something.
        shows: whether a model shows it; called some times the logarithm of the number of nodes, with models of its own.
    """
    nodes = list(model.graph)
    budget = iter(range(_TRIES))

    def holds(start: int, stop: int) -> bool:
        return next(budget, None) is not None and start < stop and shows(_part(model, nodes[start:stop]))

    stop = _least(0, len(nodes), lambda count: holds(0, count))
    start = stop - _least(0, stop, lambda count: holds(stop - count, stop))
    part = _part(model, nodes[start:stop])
    return part if (start > 0 or stop < len(nodes)) and shows(part) else model


def _least(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the least number above `low` for which `holds`, as far as halving finds it; `high` is taken to hold."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def _part(model: Model, nodes: Sequence[Node]) -> Model:
    inside = set(nodes)
    inputs: dict[Value, None] = {}
    for node in nodes:
        for value in _reads(node):
            if value.constant is None and value.producer not in inside:
                inputs[value] = None
    outputs = [value for node in nodes for value in node.outputs if _is_read_outside(value, inside)]
    if not outputs:
        outputs = list(nodes[-1].outputs[:1])
    return model_of_nodes(model, "part", list(inputs), nodes, outputs, [value.name or f"y{i}" for i, value in enumerate(outputs)])


def _reads(node: Node) -> list[Value]:
    captured = [value for graph in node.subgraphs for value in captured_values(graph)]
    return [value for value in (*node.inputs, *captured) if value is not None]


def _is_read_outside(value: Value, nodes: set[Node]) -> bool:
    users = [user for user, _ in value.uses]
    return any(isinstance(user, Graph) or user not in nodes for user in users)
