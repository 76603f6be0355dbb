"""Copies at the seams between memories: each value is copied once to each memory that needs it.

    A (host) -> B (device) -> C (host)      becomes      A, copy to device, B, copy to host, C

A value goes from one device to another by way of the host. What the body of a Loop captures is copied before its first iteration.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Graph, Value
from sardonyx.partition.part import Cut
from sardonyx.provider import HOST, Memory

__all__ = ["Stage", "Transfer", "ValueInMemory", "entering_transfers", "insert_transfers"]

ValueInMemory: TypeAlias = tuple[Value, str]
"""A value in the memory of a name."""


@dataclasses.dataclass(frozen=True, slots=True)
class Transfer:
    """Copy a value from one memory to another; one of the two is the host's."""

    value: Value
    """What is copied."""
    source: Memory
    """Where it is."""
    target: Memory
    """Where it is needed too."""
    provider: str
    """A provider of the memory that is not the host's."""


Stage: TypeAlias = Cut | Transfer
"""One step of a run before it is planned."""


def entering_transfers(cuts: Sequence[Cut], captures: Collection[Value]) -> list[Transfer]:
    """Return the copies of `captures`, values of outer graphs, to the devices on which `cuts` read them."""
    wanted = [
        Transfer(value, HOST, part.provider.memory, part.provider.name)
        for part in cuts
        if part.provider.memory.name != HOST.name
        for value in part.partition.inputs
        if value in captures
    ]
    return list({(copy.value, copy.target.name): copy for copy in reversed(wanted)}.values())


def insert_transfers(graph: Graph, cuts: Sequence[Cut], entered: Sequence[Transfer] = ()) -> list[Stage]:
    """Put the copies that `cuts` need between them; inputs of `graph`, captures and outputs are on the host.

    Constants are not copied here: a program gets them when compiled. Nor is what `entered` has copied before.
    """
    stages: list[Stage] = []
    home: dict[Value, Memory] = {}
    present: set[ValueInMemory] = {(copy.value, copy.target.name) for copy in entered}
    owners = {part.provider.memory.name: part.provider.name for part in reversed(cuts)}

    def bring(value: Value, target: Memory) -> None:
        source = home.get(value, HOST)
        present.add((value, source.name))
        if (value, target.name) in present:
            return
        if source.name != HOST.name and (value, HOST.name) not in present:
            stages.append(Transfer(value, source, HOST, owners[source.name]))
            present.add((value, HOST.name))
        if target.name != HOST.name:
            stages.append(Transfer(value, HOST, target, owners[target.name]))
        present.add((value, target.name))

    for part in cuts:
        for value in part.partition.inputs:
            bring(value, part.provider.memory)
        stages.append(part)
        home.update((value, part.provider.memory) for value in part.partition.outputs)
    for value in graph.outputs:
        bring(value, HOST)
    return stages
