"""Shape computations that stay on the host, where a provider of another memory claims them.

    x ─ Shape ─ Gather ─ Concat ─► Reshape        Shape, Gather and Concat on the host, Reshape on the device

A node stays where it makes small integers of what the host has at hand: the sizes of a host value, constants, and small integers
that other nodes of the host made. A chain of such nodes on a device would copy what is small anyway, and wait for it. Sizes of a
value that the device makes are taken there, since that value would have to be copied otherwise.
"""

from __future__ import annotations

from collections.abc import Collection

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Node, TensorType, Value

__all__ = ["shape_nodes"]

_SIZES = ("Shape", "Size")
_SMALL = (DataType.INT64, DataType.INT32, DataType.BOOL)


def shape_nodes(graph: Graph, claimed: Collection[Node], fixed: Collection[Node] = ()) -> set[Node]:
    """Return those of `claimed`, nodes of `graph` that a device would run, which are better left to the host; O(nodes).

    Args:
        graph: the graph.
        claimed: nodes claimed one by one.
        fixed: other nodes that the device runs, or that somebody placed.
    """
    away: set[Value] = set()
    found: set[Node] = set()
    for node in graph:
        if node in fixed or (node in claimed and not _stays(node, away)):
            away.update(node.outputs)
        elif node in claimed:
            found.add(node)
    return found


def _stays(node: Node, away: Collection[Value]) -> bool:
    inputs = [value for value in node.inputs if value is not None]
    if (
        node.subgraphs
        or not inputs
        or any(value in away for value in inputs)
        or not all(_is_small(value) for value in node.outputs)
    ):
        return False
    if node.op_type in _SIZES and not node.domain:
        return True
    return all(_is_small(value) for value in inputs) and any(value.constant is None for value in inputs)


def _is_small(value: Value) -> bool:
    """Return whether it is a vector or a number that may be sizes."""
    return isinstance(value.type, TensorType) and value.dtype in _SMALL and value.shape is not None and len(value.shape) <= 1
