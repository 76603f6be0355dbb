"""Move transposes to where they cancel, or where they move less."""

from __future__ import annotations

from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import overridable_values
from sardonyx.optimize.transposes.push import push_transposes

__all__ = ["MOVE_TRANSPOSES"]


class _MoveTransposes:
    """Push transposes behind the nodes that they feed, so that those which undo each other meet.

        Transpose(x) -> Relu -> Transpose          ->      x -> Relu
        Add(Transpose(x), Transpose(y))            ->      Transpose(Add(x, y))

    What it costs and which operators can be passed is said in `transposes/push.py`.

    Left alone: whatever would not become cheaper; models with initializers that a feed may override, since these look like
    constants. Holds before: shapes inferred. Cost: O(nodes).
    """

    name = "move_transposes"
    aliases = (
        "TransposeOptimizer",
        "TransposeOptimizer_CPUExecutionProvider",
    )

    def run(self, model: Model, context: Context) -> bool:
        """Move; whether any moved."""
        if overridable_values(model):
            return False
        changed = False
        for graph in nested_graphs(model.graph):
            before = _wiring(graph)
            push_transposes(graph, set(graph), between_layouts=False)
            changed |= _wiring(graph) != before
        return changed


def _wiring(graph: Graph) -> list[tuple[Node, tuple[Value | None, ...]]]:
    return [(node, tuple(node.inputs)) for node in graph]


MOVE_TRANSPOSES: Pass = _MoveTransposes()
"""Cancels and merges transposes across other nodes."""
