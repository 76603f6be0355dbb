"""Assignment for a file: which providers could run each node, with nothing compiled and nothing changed.

Every provider is asked about every node, so claims may overlap; no layout is converted, and no function is expanded. What comes of
it is noted in the metadata of the nodes, which a saved model keeps (the config entry `session.save_assignment` asks for it):

    sardonyx.providers = "CPUExecutionProvider;ReferenceExecutionProvider"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx.ir import Graph, Model, Node
from sardonyx.ir.walk import nested_graphs
from sardonyx.partition.claims import claims_of
from sardonyx.provider import Provider

__all__ = ["PROVIDERS_KEY", "assign_only", "note_providers"]

PROVIDERS_KEY = "sardonyx.providers"
"""The metadata of a node that lists the providers that can run it, in the order in which they are asked."""


def assign_only(graph: Graph, providers: Sequence[Provider]) -> Mapping[Node, tuple[str, ...]]:
    """Return for each node of `graph` (not of its subgraphs) the names of the providers that claim it, in order.

    Raises:
        EPFail: a provider raised, or claimed what it was not offered.
    """
    table = claims_of(graph, providers)
    return {node: table.providers_of(node) for node in graph}


def note_providers(model: Model, providers: Sequence[Provider]) -> None:
    """Note in each node of `model`, those of bodies included, which providers can run it."""
    for graph in list(nested_graphs(model.graph)):
        for node, names in assign_only(graph, providers).items():
            node.metadata = {**(node.metadata or {}), PROVIDERS_KEY: ";".join(names)}
