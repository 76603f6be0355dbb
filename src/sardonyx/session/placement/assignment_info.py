"""What `get_provider_graph_assignment_info` gives: the partitions and their nodes, under onnxruntime's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import Fail
from sardonyx.session.providers import CPU, REFERENCE
from sardonyx.session.settings.keys import RECORD_ASSIGNMENT

if TYPE_CHECKING:
    from sardonyx.partition.explain import Placement

__all__ = ["OrtEpAssignedNode", "OrtEpAssignedSubgraph", "assignment_info"]


@dataclasses.dataclass(frozen=True, slots=True)
class OrtEpAssignedNode:
    """A node of the optimized model."""

    name: str
    """Its name."""
    domain: str
    """Its operator's domain; "" is ai.onnx."""
    op_type: str
    """Its operator."""


@dataclasses.dataclass(frozen=True, slots=True)
class OrtEpAssignedSubgraph:
    """A partition."""

    ep_name: str
    """The provider that runs it."""
    nodes: tuple[OrtEpAssignedNode, ...]
    """Its nodes."""

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """Return the nodes of the partition."""
        return list(self.nodes)


def assignment_info(placements: Sequence[Placement], *, recorded: bool) -> list[OrtEpAssignedSubgraph]:
    """Return who runs which nodes; raises Fail where the config entry that asks for it is not set.

    Nodes of the built-in providers stand alone, as those of onnxruntime's CPU provider do; another provider's are grouped by
    its partitions.
    """
    if not recorded:
        raise Fail(
            f"Session configuration entry '{RECORD_ASSIGNMENT.name}' must be set to \"1\" to get who runs what; or use explain()"
        )
    nodes: dict[tuple[str, str, int], list[OrtEpAssignedNode]] = {}
    for index, place in enumerate(placements):
        domain, _, op_type = place.op_type.rpartition(".")
        alone = index if place.provider in (CPU, REFERENCE) else 0
        nodes.setdefault((place.provider, place.partition, alone), []).append(OrtEpAssignedNode(place.node, domain, op_type))
    return [OrtEpAssignedSubgraph(provider, tuple(found)) for (provider, _, _), found in nodes.items()]
