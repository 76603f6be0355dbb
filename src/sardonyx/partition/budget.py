"""Partitioning by capacity: a provider gets no more nodes than its memory holds.

    limit 100 KiB     fc1 60 KiB ─ relu 10 KiB ─ fc2 60 KiB ─ add 10 KiB      the provider gets fc1 and relu

As in onnxruntime, nodes are counted in topological order, and the first that does not fit ends it: what comes after it goes to
other providers too, so that there is one seam. A weight that several nodes read is counted once. Fused claims fit as a whole, or
not at all. A node takes one byte at least, so that a limit of 0 keeps all away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Graph, Node, Tensor
from sardonyx.ir.walk import nested_graphs
from sardonyx.partition.node_memory import NodeMemory, name_of, node_memory, weights_of
from sardonyx.provider import Capability, Claims

__all__ = ["Accountant", "Budget"]

_MARGIN = 1.5
"""What is reckoned from shapes is multiplied by this, as onnxruntime does: nodes need more than their results."""


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    """What one provider may take of its memory."""

    limit_bytes: int
    """How much."""
    table: Mapping[str, NodeMemory] = dataclasses.field(default_factory=dict)
    """Name of a node -> what it needed when it was measured; others are reckoned from their shapes."""


class Accountant:
    """Counts what the graphs of one model take of the memory of providers that have a budget."""

    def __init__(self, budgets: Mapping[str, Budget], sizes: Mapping[str, int]) -> None:
        """Begin with nothing taken.

        Args:
            budgets: provider -> its budget.
            sizes: symbol -> the size to reckon with.
        """
        self._budgets, self._sizes = budgets, sizes
        self._taken: dict[tuple[str, Graph], tuple[int, set[Tensor]]] = {}

    def fit(self, provider: str, graph: Graph, claims: Claims, held: Iterable[Capability]) -> tuple[Claims, Mapping[Node, str]]:
        """Return those of a provider's claims in `graph` that fit, and for the nodes of the others why they do not.

        Args:
            provider: who claims.
            graph: the graph.
            claims: the answer to a capability query.
            held: claims in the graph that the provider has already.
        """
        budget = self._budgets.get(provider)
        if budget is None:
            return claims, {}
        others = [taken for (name, other), taken in self._taken.items() if name == provider and other is not graph]
        seen = set[Tensor]().union(*(weights for _, weights in others))
        before = sum(count for count, _ in others)
        taken = before + sum(self._need(unit, budget, seen) for unit in held)
        kept: list[Capability] = []
        left: dict[Node, str] = {}
        reason = ""
        for unit in _units(graph, claims):
            need = self._need(unit, budget, seen)
            if not reason and taken + need > budget.limit_bytes:
                reason = (
                    f"its memory is full: {name_of(unit.nodes[0])!r} needs {_kib(need)}, and {_kib(taken)} of "
                    f"{_kib(budget.limit_bytes)} are taken"
                )
            if reason:
                left.update(dict.fromkeys(unit.nodes, reason))
                continue
            taken += need
            kept.append(unit)
        self._taken[provider, graph] = taken - before, seen
        return Claims(kept, claims.declined), left

    def _need(self, unit: Capability, budget: Budget, seen: set[Tensor]) -> int:
        """Return what a claim takes that has not been counted, bodies that the provider runs itself included."""
        bodies = [body for node in unit.nodes for body in node.subgraphs] if unit.owns_bodies else []
        inner = (node for body in bodies for graph in nested_graphs(body) for node in graph)
        return sum(self._need_of_node(node, budget, seen) for node in (*unit.nodes, *inner))

    def _need_of_node(self, node: Node, budget: Budget, seen: set[Tensor]) -> int:
        """Return what a node takes that has not been counted; its weights are `seen` afterwards."""
        measured = budget.table.get(name_of(node))
        weights = weights_of(node)
        known = sum(count for tensor, count in weights.items() if tensor in seen)
        seen.update(weights)
        if measured is not None:
            return max(1, measured.taken_bytes - known)
        return max(1, round(_MARGIN * (node_memory(node, self._sizes).taken_bytes - known)))


def _units(graph: Graph, claims: Claims) -> list[Capability]:
    """Return fused claims, and single nodes, by where they begin."""
    rank = {node: index for index, node in enumerate(graph)}
    units = [
        unit
        for claim in claims.capabilities
        for unit in ([claim] if claim.fused else [dataclasses.replace(claim, nodes=(node,)) for node in claim.nodes])
    ]
    return sorted(units, key=lambda unit: min(rank[node] for node in unit.nodes))


def _kib(size_bytes: int) -> str:
    return f"{-(-size_bytes // 1024)} KiB"
