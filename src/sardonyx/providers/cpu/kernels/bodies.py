"""Graphs inside nodes, and the nodes of partitions: claimed as a whole, and lowered to steps among the others.

A graph's results become the node's by placing the buffers of `make_outputs` in the node's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled
from sardonyx.ir import Graph, Node, Value
from sardonyx.ops.schema import place_of
from sardonyx.providers.cpu.claims import Claimed, claim_node, lower_nodes
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.kernels.elementwise import copy_between
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.size_claims import Elements
from sardonyx.providers.cpu.size_values import size_values
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import moved_type

__all__ = ["BodySpec", "claim_body", "lower_body", "make_outputs"]


@dataclasses.dataclass(frozen=True, slots=True)
class BodySpec:
    """A graph inside a node, all of whose nodes can be lowered."""

    graph: Graph
    """The graph."""
    claims: Mapping[Node, Claimed]
    """How its nodes are lowered."""
    sizes: Mapping[Node, tuple[Elements, ...]]
    """For the others: the sizes that they make."""


def claim_body(graph: Graph) -> BodySpec | str:
    """Return how the nodes of a graph inside a node are lowered, or why one cannot be compiled."""
    for value in (*graph.inputs, *graph.outputs):
        if value.shape is None or (element_type(value.dtype) or moved_type(value.dtype)) is None:
            return f"{value.name or 'a value'} of its body is {value.type or 'of a type that is not known'}"
    sizes = size_values(graph)
    claims: dict[Node, Claimed] = {}
    for node in graph:
        check_cancelled()
        found = None if node in sizes else claim_node(node)
        if isinstance(found, str):
            return f"{place_of(node)} of its body: {found}"
        if found is not None and found.is_counted:
            return f"{place_of(node)} of its body makes results of sizes that only the run shows"
        if found is not None:
            claims[node] = found
    return BodySpec(graph, claims, sizes)


def lower_body(low: Lowering, node: Node, body: BodySpec) -> None:
    """Add the steps of a graph that `node` holds, whose inputs have their buffers; they count as the node's."""
    place = low.places.get(node)
    if place is not None:
        low.places.update(dict.fromkeys((*body.claims, *body.sizes), place))
    lower_nodes(low, body.claims, body.sizes, body.graph.outputs)


def make_outputs(low: Lowering, values: Iterable[Value]) -> list[Buffer]:
    """Return a root for each output of a body that its steps write, no two the same; called where they were added.

    What the body only hands on, such as a captured value, is copied.
    """
    taken: set[Buffer] = set()
    found: list[Buffer] = []
    for value in values:
        buffer = low.of(value)
        if not buffer.is_whole or not low.is_written(buffer.root) or buffer.root in taken or buffer.root.dtype is not buffer.dtype:
            source, buffer = buffer, low.temporary(buffer.dtype, buffer.shape)
            copy_between(low, source, buffer, value.producer)
        taken.add(buffer.root)
        found.append(buffer.root)
    return found
