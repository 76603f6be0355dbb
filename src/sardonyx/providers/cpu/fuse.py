"""Which nodes run as one step: an anchor, and the element-wise nodes after it that are computed in its store.

    Conv -> Add(residual) -> Relu        one group: anchor Conv, tail Add, Relu
    Mul -> Add -> Sigmoid                one group: anchor Mul, tail Add, Sigmoid

A node joins the group of one of its inputs where that input is the group's result so far, is read by nobody else, and has the
shape of the node's output. The group runs at the place of its last node, when all that its tail reads has been made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from sardonyx.ir import Node, Value

__all__ = ["Group", "group_nodes"]

LONGEST_TAIL = 64
"""Nodes that one group may take up after its anchor: longer chains are cut, so that kernels stay of a readable size."""


@dataclasses.dataclass(eq=False, slots=True)
class Group:
    """An anchor with its tail."""

    anchor: Node
    """The node whose kernel it is."""
    tail: list[Node]
    """Element-wise nodes computed from the anchor's result, in order."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in order."""
        return self.anchor, *self.tail

    @property
    def result(self) -> Value:
        """What the group makes."""
        return self.nodes[-1].outputs[0]


Joins = Callable[[Group, Node, Value], bool]
"""Whether a group can compute `node` in its store; the value is the group's result, which `node` reads."""


def group_nodes(nodes: Sequence[Node], joins: Joins) -> list[Group]:
    """Group nodes, given in topological order; the groups come in an order in which they can run. O(nodes + edges)."""
    group_of: dict[Node, Group] = {}
    last: dict[Group, int] = {}
    for index, node in enumerate(nodes):
        group = _joined(node, group_of, last, joins) if len(node.outputs) == 1 else None
        if group is None:
            group = Group(node, [])
        else:
            group.tail.append(node)
        group_of[node] = group
        last[group] = index
    return sorted(last, key=last.__getitem__)


def _joined(node: Node, group_of: dict[Node, Group], last: dict[Group, int], joins: Joins) -> Group | None:
    candidates = []
    for value in dict.fromkeys(node.inputs):
        group = None if value is None or value.producer is None else group_of.get(value.producer)
        if group is None or value is None or value is not group.result or len(group.tail) >= LONGEST_TAIL:
            continue
        if any(user is not node for user, _ in value.uses) or not joins(group, node, value):
            continue
        candidates.append(group)
    return max(candidates, key=lambda group: (bool(group.anchor.op_type in _HEAVY), last[group]), default=None)


_HEAVY = frozenset(("Conv", "ConvTranspose", "Gemm", "MatMul"))
"""Anchors whose store is the best place for an element-wise node, where there is a choice."""
