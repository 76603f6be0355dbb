"""The report of a partitioning: for each node who runs it, and why those asked before do not."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import checked
from sardonyx.ir import AttributeKind, Graph, Node
from sardonyx.partition.part import Cut
from sardonyx.provider import Partition

__all__ = [
    "NO_CUSTOM_OPERATOR",
    "Placement",
    "SaysPrecisions",
    "body_paths",
    "explain",
    "nodes_of",
    "shown_reasons",
    "with_precisions",
]

NO_CUSTOM_OPERATOR = "no custom operator"
"""Why what runs custom operators declines all others."""


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
    precision: str = ""
    """What the operands of a product are multiplied in, such as "float32"; "" where that is not known, or there is no product."""


@runtime_checkable
class SaysPrecisions(Protocol):
    """A program that says what the operands of its products are multiplied in."""

    precisions: Sequence[str]
    """For each of `nodes_of` its partition, such as "float32"; "" for no product."""


def explain(graph: Graph, label: str, cuts: Sequence[Cut], declined: Mapping[Node, Mapping[str, str]]) -> list[Placement]:
    """Describe the placement of each node of `graph`, in the order in which they run.

    Nodes of bodies that a provider runs itself follow the node that holds them.
    """
    return [
        Placement(
            node=inner.name or next((value.name for value in inner.outputs if value.name), ""),
            op_type=f"{inner.domain}.{inner.op_type}" if inner.domain else inner.op_type,
            version=inner.version,
            graph=path,
            provider=part.provider.name,
            partition=part.partition.name,
            unit=unit.name if unit.fused else "",
            declined=dict(declined.get(inner, {})),
        )
        for part in cuts
        for unit in checked(part.partition.units)
        for node in unit.nodes
        for path, inner in _with_bodies(node, label, unit.owns_bodies)
    ]


def nodes_of(partition: Partition) -> Iterator[Node]:
    """Yield the nodes of a partition as `explain` lists them: unit by unit, those of their providers' bodies after each."""
    for unit in partition.units:
        for node in unit.nodes:
            for _, inner in _with_bodies(node, "", unit.owns_bodies):
                yield inner


def shown_reasons(declined: Mapping[str, str]) -> dict[str, str]:
    """Return why providers declined a node, without those that run custom operators only, where it is none."""
    return {name: reason for name, reason in declined.items() if not reason.startswith(NO_CUSTOM_OPERATOR)}


def with_precisions(placements: Sequence[Placement], known: Mapping[str, Sequence[str]]) -> list[Placement]:
    """Return placements with the precisions of products.

    Args:
        placements: as `explain` lists them.
        known: partition -> the precision of each of its nodes, in that order. Those of a compiled model are all its node's.
    """
    counts = collections.Counter(place.partition for place in placements)
    texts = {name: iter(_one_each(found, counts[name])) for name, found in known.items()}
    return [dataclasses.replace(place, precision=next(texts.get(place.partition, iter(())), "")) for place in placements]


def _one_each(found: Sequence[str], count: int) -> Sequence[str]:
    if len(found) == count:
        return found
    return ["; ".join(dict.fromkeys(filter(None, found)))] * count if count == 1 else [""] * count


def body_paths(node: Node, label: str) -> Iterator[tuple[Graph, str]]:
    """Yield the graphs that a node of the graph `label` holds, each with the path that reports call it by."""
    for name, attribute in node.attributes.items():
        if attribute.kind is AttributeKind.GRAPH and isinstance(attribute.value, Graph):
            yield attribute.value, f"{label}/{node.name or node.op_type}/{name}"


def _with_bodies(node: Node, label: str, owns_bodies: bool) -> Iterator[tuple[str, Node]]:
    """Yield a node and, where they are its provider's, those of its bodies at every depth, with the paths of their graphs."""
    yield label, node
    if owns_bodies:
        for body, path in body_paths(node, label):
            for inner in body:
                yield from _with_bodies(inner, path, owns_bodies)
