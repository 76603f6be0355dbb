"""From a partition to a program: lower its groups to steps, find their kernels, decide where everything lies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from sardonyx.cancellation import check_cancelled
from sardonyx.codegen.run.driver import Driver
from sardonyx.disk_cache import Cache
from sardonyx.errors import EPFail
from sardonyx.ir import Expr, Node, Value
from sardonyx.ops.schema import place_of
from sardonyx.ops.views.reshape import Reshape
from sardonyx.provider import Partition
from sardonyx.providers.cpu.claims import Claimed, NodeClaim
from sardonyx.providers.cpu.fuse import Group, Member, group_nodes
from sardonyx.providers.cpu.kernels.constant import store_sizes
from sardonyx.providers.cpu.kernels.elementwise import copy_to
from sardonyx.providers.cpu.library import library_for
from sardonyx.providers.cpu.liveness import live_steps
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.program import CpuProgram, NotZero
from sardonyx.providers.cpu.size_values import SizesClaim
from sardonyx.providers.cpu.steps import Buffer, KernelLaunch
from sardonyx.providers.cpu.storage import Storage

__all__ = ["Lowered", "lower_partition", "make_program"]


@dataclasses.dataclass(frozen=True, slots=True)
class Lowered:
    """A partition as steps over buffers."""

    steps: Sequence[KernelLaunch]
    """The steps that outputs depend on."""
    inputs: Sequence[Buffer]
    """The buffers of the partition's inputs."""
    outputs: Sequence[Buffer]
    """The buffers of its outputs, each with memory of its own."""


def lower_partition(low: Lowering, partition: Partition) -> Lowered:
    """Lower the groups of `partition`, as their claims say.

    Raises:
        EPFail: a node was claimed on the condition that it be converted to NHWC, and was not.
    """
    inputs = [low.of(value) for value in partition.inputs]
    sizes = {node: unit.elements for unit in partition.units if isinstance(unit, SizesClaim) for node in unit.nodes}
    for node, elements in sizes.items():
        store_sizes(low, node, elements)
    made = {node: unit.claimed for unit in partition.units if isinstance(unit, NodeClaim) for node in unit.nodes}
    check_cancelled()
    claims = {node: _claimed(node, made.get(node)) for node in partition.nodes if node not in sizes}
    check_cancelled()
    low.specs.update((node, claimed.spec) for node, claimed in claims.items())
    low.places.update((node, place) for place, node in enumerate(partition.nodes))
    outputs = set(partition.outputs)

    def joins(group: Group, member: Member, value: Value) -> bool:
        return value not in outputs and claims[group.node].joins(group, member, value)

    for group in group_nodes(list(claims.values()), joins):
        check_cancelled()
        claims[group.node].lower(low, group)
        low.release_packed(group.node.inputs)
    check_cancelled()
    made_outputs = _outputs(low, partition.outputs, inputs)
    return Lowered(live_steps(low.steps, made_outputs), inputs, made_outputs)


def _claimed(node: Node, claimed: Claimed | None) -> Claimed:
    if claimed is None:
        raise EPFail(f"{place_of(node)} is compiled in NHWC only, and was not converted to it")
    return claimed


def make_program(partition: Partition, low: Lowering, lowered: Lowered, runner: Driver, cache: Cache | None = None) -> CpuProgram:
    """Find or compile the kernels of lowered steps, as `Library.compile` does, and lay out their buffers; `low` is used up."""
    steps, outputs = lowered.steps, lowered.outputs
    check_cancelled()
    kernels, engines = library_for(low.target).compile({step.symbol: low.writers[step.symbol] for step in steps}, cache)
    check_cancelled()
    storage = Storage(steps, lowered.inputs, [buffer.root for buffer in outputs])
    low.forget()
    made = CpuProgram(partition.inputs, outputs, storage, kernels, engines, runner, low.threads, low.packs)
    made.not_zero = [size for node in partition.nodes if _copies_sizes(node) for size in _not_zero(node)]
    return made


def _copies_sizes(node: Node) -> bool:
    """Return whether a node is a Reshape in whose target shape a 0 copies a size of the input."""
    return node.op_type == "Reshape" and not Reshape.of(node).keeps_zero


def _not_zero(node: Node) -> Iterable[NotZero]:
    """Yield the sizes of a Reshape's result that were inferred from other shapes, with those of the input that a 0 would copy."""
    source, target = node.inputs[0], node.output.shape or ()
    old = () if source is None or source.shape is None else source.shape
    for index, dim in enumerate(target):
        copied = old[index] if index < len(old) else 1
        if isinstance(dim, Expr) and copied != dim:
            yield NotZero(node.place, dim, copied)


def _outputs(low: Lowering, values: Iterable[Value], inputs: Sequence[Buffer]) -> list[Buffer]:
    """Return the buffers of the outputs, each with memory of its own: views of parts, inputs and constants are copied."""
    taken: set[Buffer] = set(inputs)
    found: list[Buffer] = []
    for value in values:
        buffer = low.of(value)
        if not buffer.is_whole or buffer.root in taken or buffer.root.constant is not None:
            buffer = copy_to(low, value, buffer)
        taken.add(buffer.root)
        found.append(buffer)
    return found
