"""Which nodes run as one step: an anchor, and the element-wise nodes after it that are fused into its epilogue.

    Conv -> Add(residual) -> Relu        one group: anchor Conv, tail Add, Relu
    Mul -> Add -> Sigmoid                one group: anchor Mul, tail Add, Sigmoid

A node joins the group of one of its inputs where that input is the group's result so far, is read by nobody else, and has the
shape of the node's output. The group runs at the place of its last node, when all that its tail reads has been made.

    QLinearConv -> DequantizeLinear -> Add      one group, with the DequantizeLinear of the residual in its tail: what widens
    residual -> DequantizeLinear ----/          numbers is computed where it is read, and the residual is read as it is stored
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled
from sardonyx.ir import Node, Value

__all__ = ["Group", "Joins", "Member", "group_nodes"]

LONGEST_TAIL = 64
"""Nodes that one group may take up after its anchor: longer chains are cut, so that kernels stay of a readable size."""

MOST_INPUTS = 128
"""Inputs that one node may have, and inputs that the nodes of a group may have together: a kernel has an argument for each."""


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Member:
    """A node of a partition."""

    node: Node
    """The node."""
    spec: object
    """What the claim of its operator made of it: what to compute, without the node's attributes."""


@dataclasses.dataclass(eq=False, slots=True)
class Group:
    """An anchor with its tail."""

    anchor: Member
    """The node whose kernel it is."""
    tail: list[Member]
    """Nodes computed from the anchor's result, in order."""

    @property
    def node(self) -> Node:
        """The anchor's node."""
        return self.anchor.node

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in order."""
        return tuple(member.node for member in (self.anchor, *self.tail))

    @property
    def result(self) -> Value:
        """What the group makes."""
        last = self.tail[-1] if self.tail else self.anchor
        return last.node.outputs[0]


Joins = Callable[[Group, Member, Value], bool]
"""Whether a group can fuse a node into its epilogue; the value is the group's result, which the node reads."""


def group_nodes(members: Sequence[Member], joins: Joins) -> list[Group]:
    """Group nodes, given in topological order; the groups come in an order in which they can run. O(nodes + edges)."""
    group_of: dict[Node, Group] = {}
    last: dict[Group, int] = {}
    for index, member in enumerate(members):
        check_cancelled()
        group = _joined(member, group_of, last, joins) if len(member.node.outputs) == 1 else None
        if group is None:
            group = Group(member, [])
        else:
            for widened in _widened(member, group, group_of, joins):
                group.tail.extend([widened.anchor, *widened.tail])
                group_of.update((each.node, group) for each in (widened.anchor, *widened.tail))
                del last[widened]
            group.tail.append(member)
        group_of[member.node] = group
        last[group] = index
    return sorted(last, key=last.__getitem__)


def _joined(member: Member, group_of: dict[Node, Group], last: dict[Group, int], joins: Joins) -> Group | None:
    candidates = []
    node = member.node
    for value in dict.fromkeys(node.inputs):
        group = None if value is None or value.producer is None else group_of.get(value.producer)
        if group is None or value is None or value is not group.result or len(group.tail) >= LONGEST_TAIL:
            continue
        if len(node.inputs) > 3 and len(node.inputs) + sum(len(each.inputs) for each in group.nodes) > MOST_INPUTS:
            continue
        if any(user is not node for user, _ in value.uses) or not joins(group, member, value):
            continue
        candidates.append(group)
    return max(candidates, key=lambda group: (bool(group.node.op_type in _HEAVY), last[group]), default=None)


def _widened(member: Member, group: Group, group_of: dict[Node, Group], joins: Joins) -> list[Group]:
    """Return the groups whose results nobody reads but a node that joins `group`, and that make wider numbers of what they read.

    They are computed from what they read in the store of `group`, if it takes them.
    """
    node, result = member.node, group.result
    found: list[Group] = []
    for value in dict.fromkeys(node.inputs):
        other = None if value is None or value.producer is None else group_of.get(value.producer)
        if other is None or other is group or value is None or value is not other.result or other.node.op_type not in _WIDENING:
            continue
        members = (other.anchor, *other.tail)
        if len(group.tail) + len(members) >= LONGEST_TAIL or any(user is not node for user, _ in value.uses):
            continue
        if all(joins(group, each, result) for each in members):
            found.append(other)
    return found


_WIDENING = frozenset(("Cast", "DequantizeLinear"))

_HEAVY = frozenset(
    (
        "Conv",
        "ConvInteger",
        "ConvTranspose",
        "DynamicQuantizeMatMul",
        "Gemm",
        "MatMul",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "QGemm",
        "QLinearConv",
        "QLinearMatMul",
    )
)
"""Anchors whose store is the best place for an element-wise node, where there is a choice."""
