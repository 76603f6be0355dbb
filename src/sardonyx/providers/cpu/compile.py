"""From a partition to a program: lower its groups to steps, find their kernels, decide where everything lies."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence

from sardonyx.codegen.run.driver import Driver
from sardonyx.disk_cache import Cache
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node, Value
from sardonyx.provider import Partition
from sardonyx.providers.cpu.fuse import Group, group_nodes
from sardonyx.providers.cpu.kernels.constant import store_sizes
from sardonyx.providers.cpu.kernels.elementwise import copy_to
from sardonyx.providers.cpu.library import library_for
from sardonyx.providers.cpu.liveness import live_steps
from sardonyx.providers.cpu.lowering import Lowering, find_operator
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.size_values import SizesClaim
from sardonyx.providers.cpu.steps import Buffer, Step
from sardonyx.providers.cpu.storage import Storage

__all__ = ["Lowered", "lower_partition", "make_program"]


@dataclasses.dataclass(frozen=True, slots=True)
class Lowered:
    """A partition as steps over buffers."""

    steps: Sequence[Step]
    """The steps that outputs depend on."""
    inputs: Sequence[Buffer]
    """The buffers of the partition's inputs."""
    outputs: Sequence[Buffer]
    """The buffers of its outputs, each with memory of its own."""


def lower_partition(low: Lowering, partition: Partition) -> Lowered:
    """Lower the groups of `partition`."""
    inputs = [low.of(value) for value in partition.inputs]
    sizes = {node: unit.elements for unit in partition.units if isinstance(unit, SizesClaim) for node in unit.nodes}
    for node, elements in sizes.items():
        store_sizes(low, node, elements)
    computed = [node for node in partition.nodes if node not in sizes]
    for group in group_nodes(computed, functools.partial(_joins, set(partition.outputs))):
        operator = find_operator(group.anchor.domain, group.anchor.op_type)
        if operator is None:
            raise InvalidArgument(f"{group.anchor!r} was claimed, but there is no way to lower it")
        operator.lower(low, group)
        low.release_packed(group.anchor.inputs)
    outputs = _outputs(low, partition.outputs, inputs)
    return Lowered(live_steps(low.steps, outputs), inputs, outputs)


def make_program(partition: Partition, low: Lowering, lowered: Lowered, runner: Driver, cache: Cache | None = None) -> CpuProgram:
    """Find or compile the kernels of lowered steps, as `Library.compile` does, and lay out their buffers; `low` is used up."""
    steps, outputs = lowered.steps, lowered.outputs
    kernels, engines = library_for(low.target).compile({step.symbol: low.writers[step.symbol] for step in steps}, cache)
    storage = Storage(steps, lowered.inputs, [buffer.root for buffer in outputs])
    low.forget()
    return CpuProgram(partition.inputs, outputs, storage, kernels, engines, runner, low.threads, low.packs)


def _joins(outputs: set[Value], group: Group, node: Node, value: Value) -> bool:
    operator = find_operator(group.anchor.domain, group.anchor.op_type)
    return operator is not None and value not in outputs and operator.joins(group, node, value)


def _outputs(low: Lowering, values: Iterable[Value], inputs: Sequence[Buffer]) -> list[Buffer]:
    """The buffers of the outputs, each with memory of its own: views of parts, inputs and constants are copied."""
    taken: set[Buffer] = set(inputs)
    found: list[Buffer] = []
    for value in values:
        buffer = low.of(value)
        if not buffer.is_whole or buffer.root in taken or buffer.root.constant is not None:
            buffer = copy_to(low, value, buffer)
        taken.add(buffer.root)
        found.append(buffer)
    return found
