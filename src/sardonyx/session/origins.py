"""Which nodes of the model as it was given each node of the optimized model stands for.

Rewrites keep the names of the values that they compute anew. So a node stands for what lay, in the given model, between the values
that it makes and the nearest values that the optimized model still has:

    given        x ─ Div ─ a ─ Erf ─ b ─ Add ─ c ─ Mul ─ y        optimized    x ─ Gelu ─ y
    Gelu stands for Div, Erf, Add, Mul: from y back to x

Nodes that only constants feed are left out: they are folded.
"""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import all_graphs

__all__ = ["Origins"]

_MOST = 64
"""As many nodes are listed for one; more would be a graph, not an answer."""


class Origins:
    """The names of a model as it was given, kept while the model is changed."""

    def __init__(self, model: Model) -> None:
        """Note each node of `model`; O(nodes)."""
        self._makers: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._labels: set[str] = set()
        self._kept: dict[int, frozenset[str]] = {}
        for graph in all_graphs(model):
            constant = {value.name for value in graph.initializers.values() if value not in set(graph.inputs)}
            for node in graph:
                self._note(node, constant)

    def _note(self, node: Node, constant: set[str]) -> None:
        reads = tuple(value.name for value in node.inputs if value is not None and value.name)
        if constant.issuperset(reads) and not node.subgraphs:
            constant.update(value.name for value in node.outputs)
            return
        label = _label(node)
        self._labels.add(label)
        for value in node.outputs:
            self._makers[value.name] = (label, reads)

    def of(self, node: Node, graph: Graph) -> tuple[str, ...]:
        """Return the names of the given nodes that `node` of the optimized `graph` stands for, the nearest to its outputs first.

        A node without a name is called by its first output.
        """
        kept = self._kept_names(graph)
        found: dict[str, None] = {}
        waiting = [value.name for value in node.outputs if value.name in self._makers]
        seen = set(waiting)
        while waiting and len(found) < _MOST:
            label, reads = self._makers[waiting.pop(0)]
            found[label] = None
            for name in reads:
                if name not in seen and name not in kept and name in self._makers:
                    seen.add(name)
                    waiting.append(name)
        return tuple(found) or ((node.name,) if node.name in self._labels else ())

    def _kept_names(self, graph: Graph) -> frozenset[str]:
        """Return the names of the values that the optimized graph still has; found once for each graph."""
        if id(graph) not in self._kept:
            self._kept[id(graph)] = frozenset(_names(graph))
        return self._kept[id(graph)]


def _names(graph: Graph) -> Iterable[str]:
    values: list[Value] = [*graph.inputs, *(value for node in graph for value in node.outputs)]
    return (value.name for value in values if value.name)


def _label(node: Node) -> str:
    return node.name or next((value.name for value in node.outputs if value.name), "")
