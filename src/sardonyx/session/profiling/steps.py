"""What a profile says of the steps of one program: operators, nodes, types and shapes, operations and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Shape
from sardonyx.ir.shape import evaluate
from sardonyx.ops.flops import flops_of
from sardonyx.partition.part import Cut
from sardonyx.provider import StepInfo
from sardonyx.session.origins import Origins

__all__ = ["NodeFacts", "StepFacts", "facts_of_nodes", "steps_of"]

_PICKS = frozenset(("Gather", "GatherElements", "GatherND", "GatherBlockQuantized", "Slice", "Split", "Compress"))
"""Operators that read only the elements that they copy."""
_DECIDES = frozenset(("If", "Loop", "Scan"))
"""Operators whose own steps say which step follows, on which memory, and move no elements."""
Tensor: TypeAlias = tuple[DataType, Shape]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node of a partition, as a profile shows it when the graph is gone."""

    name: str
    """Its name; that of its first output where it has none."""
    operator: str
    """Its operator, with the domain where that is not ai.onnx."""
    origins: tuple[str, ...]
    """The nodes of the given model that it stands for."""
    flops: Dim | None
    """Its floating-point operations; None where they are not known."""


@dataclasses.dataclass(frozen=True, slots=True)
class StepFacts:
    """One step of a program."""

    name: str
    """Its first node's name; its operators where it computes no node."""
    info: StepInfo
    """What the program says of it."""
    nodes: tuple[NodeFacts, ...]
    """Its nodes."""
    place: int | None
    """Where its first node stands in the partition."""

    def arguments(self, provider: str, symbols: Mapping[str, int]) -> dict[str, object]:
        """Return what an event of the profile says of it, with the keys of onnxruntime and then those of this engine.

        Sizes are bytes, as text like there; `symbols` are what symbolic dimensions were.
        """
        info = self.info
        sizes = [_bytes(tensors, symbols) for tensors in (info.inputs, info.constants, info.outputs)]
        facts: dict[str, object] = {
            "op_name": self.nodes[0].operator if self.nodes else info.operators[0],
            "provider": provider,
            "node_index": "" if self.place is None else str(self.place),
            "activation_size": str(sizes[0]),
            "parameter_size": str(sizes[1]),
            "output_size": str(sizes[2]),
            "input_type_shape": _shown((*info.inputs, *info.constants), symbols),
            "output_type_shape": _shown(info.outputs, symbols),
            "fused": "+".join(info.operators),
            "kernel": info.kernel,
            "nodes": [node.name for node in self.nodes],
            "original_nodes": list(dict.fromkeys(name for node in self.nodes for name in node.origins)),
        }
        counts = {"bytes": self._traffic(symbols), "flops": self._flops(symbols)}
        return facts | {key: count for key, count in counts.items() if count is not None}

    def _traffic(self, symbols: Mapping[str, int]) -> int | None:
        """Return the bytes that it reads and writes; of a tensor that it picks from, no more than it writes.

        None for the steps of control flow.
        """
        info = self.info
        if _DECIDES.issuperset(info.operators):
            return None
        written = _bytes(info.outputs, symbols)
        read = [_bytes([tensor], symbols) for tensor in (*info.inputs, *info.constants)]
        picks = not _PICKS.isdisjoint(info.operators)
        return written + sum(min(size, written) if picks else size for size in read)

    def _flops(self, symbols: Mapping[str, int]) -> int | None:
        counts = [_value(node.flops, symbols) for node in self.nodes if node.flops is not None]
        known = [count for count in counts if count is not None]
        return sum(known) if known or not self.nodes else None


def facts_of_nodes(nodes: Sequence[Node], part: Cut, origins: Origins | None) -> list[NodeFacts]:
    """Return what is to be kept of the nodes of a partition, whose graph is still whole."""
    graph = part.partition.graph
    return [
        NodeFacts(
            node.name or next((value.name for value in node.outputs if value.name), ""),
            f"{node.domain}.{node.op_type}" if node.domain not in ("", "sardonyx.nhwc") else node.op_type,
            () if origins is None else origins.of(node, graph),
            flops_of(node),
        )
        for node in nodes
    ]


def steps_of(infos: Sequence[StepInfo], nodes: Sequence[NodeFacts]) -> list[StepFacts]:
    """Join what a program says of its steps with what is known of the partition's nodes."""
    return [_step(info, nodes) for info in infos]


def _step(info: StepInfo, nodes: Sequence[NodeFacts]) -> StepFacts:
    computed = tuple(nodes[place] for place in info.nodes if place < len(nodes))
    name = next((node.name for node in computed if node.name), "+".join(info.operators))
    return StepFacts(name, info, computed, info.nodes[0] if info.nodes else None)


def _value(dim: Dim, symbols: Mapping[str, int]) -> int | None:
    if isinstance(dim, int):
        return dim
    try:
        return evaluate(dim, symbols)
    except (KeyError, ZeroDivisionError):
        return None


def _sizes(shape: Shape, symbols: Mapping[str, int]) -> list[int]:
    return [-1 if (size := _value(dim, symbols)) is None else size for dim in shape]


def _bytes(tensors: Sequence[Tensor], symbols: Mapping[str, int]) -> int:
    total = 0
    for dtype, shape in tensors:
        count = int(dtype.numpy.itemsize)
        for size in _sizes(shape, symbols):
            count *= size
        total += max(count, 0)
    return total


def _shown(tensors: Sequence[Tensor], symbols: Mapping[str, int]) -> list[dict[str, list[int]]]:
    return [{str(dtype): _sizes(shape, symbols)} for dtype, shape in tensors]
