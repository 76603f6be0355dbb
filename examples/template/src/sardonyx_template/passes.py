"""Passes over the whole graph."""

from __future__ import annotations

from sardonyx.ir import Model
from sardonyx.optimize.contract import Context

__all__ = ["PASSES"]


class NameNodes:
    """Give every node without a name that of its first output, so that messages and profiles can name it. O(nodes)."""

    name = "name_nodes"

    def run(self, model: Model, context: Context) -> bool:
        """Name the nodes of the main graph; return whether any got a name."""
        changed = False
        for node in model.graph:
            if not node.name and node.outputs and node.outputs[0].name:
                node.name = node.outputs[0].name
                changed = True
        return changed


PASSES = [NameNodes()]
