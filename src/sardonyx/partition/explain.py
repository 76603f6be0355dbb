"""The report of a partitioning: for each node who runs it, and why those asked before do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sardonyx.ir import Graph, Node
from sardonyx.partition.cut import Cut

__all__ = ["Placement", "explain"]


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """Where one node runs."""

    node: str
    """The node's name; its first output's where it has none."""
    op_type: str
    """The operator, with its domain where that is not ai.onnx."""
    version: int
    """The opset version that it is read under."""
    graph: str
    """The graph that holds it: the main graph's name, or the path to a body, such as "loop_3/body"."""
    provider: str
    """Who runs it."""
    partition: str
    """The partition that it is part of."""
    unit: str
    """The fused claim that it is part of; "" for a node that runs by itself."""
    declined: Mapping[str, str]
    """Provider -> why that provider, asked before, does not run it."""


def explain(graph: Graph, label: str, cuts: Sequence[Cut], declined: Mapping[Node, Mapping[str, str]]) -> list[Placement]:
    """Describe the placement of each node of `graph`, in the order in which they run."""
    return [
        Placement(
            node=node.name or next((value.name for value in node.outputs if value.name), ""),
            op_type=f"{node.domain}.{node.op_type}" if node.domain else node.op_type,
            version=node.version,
            graph=label,
            provider=part.provider.name,
            partition=part.partition.name,
            unit=unit.name if unit.fused else "",
            declined=dict(declined.get(node, {})),
        )
        for part in cuts
        for unit in part.partition.units
        for node in unit.nodes
    ]
