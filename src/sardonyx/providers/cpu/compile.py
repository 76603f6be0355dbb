"""From a partition to a program: lower its groups to steps, find their kernels, decide where everything lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled
from sardonyx.codegen.run.driver import Driver
from sardonyx.disk_cache import Cache
from sardonyx.errors import EPFail
from sardonyx.forks import without_fork
from sardonyx.ir import Expr, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.schema import place_of
from sardonyx.ops.views.inputs import COMPUTED, constants
from sardonyx.ops.views.reshape import Reshape
from sardonyx.partition.explain import nodes_of
from sardonyx.provider import Partition
from sardonyx.providers.cpu.claims import Claimed, NodeClaim, lower_nodes
from sardonyx.providers.cpu.library import library_for
from sardonyx.providers.cpu.liveness import live_steps
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.planner import NotZero
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.size_claims import SizesClaim
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


def lower_partition(low: Lowering, partition: Partition, *, counts: bool = False) -> Lowered:
    """Lower the groups of `partition`, as their claims say.

    Args:
        low: a new lowering.
        partition: the partition.
        counts: whether it is one Loop, whose number of iterations is one more output.

    Raises:
        EPFail: a node was claimed on the condition that it be converted to NHWC, and was not.
    """
    inputs = [low.of(value) for value in partition.inputs]
    sizes = {node: unit.elements for unit in partition.units if isinstance(unit, SizesClaim) for node in unit.nodes}
    made = {node: unit.claimed for unit in partition.units if isinstance(unit, NodeClaim) for node in unit.nodes}
    check_cancelled()
    claims = {node: _claimed(node, made.get(node)) for node in partition.nodes if node not in sizes}
    check_cancelled()
    low.places.update((node, place) for place, node in enumerate(partition.nodes))
    low.expect_weights(_constant_bytes(partition))
    lower_nodes(low, claims, sizes, partition.outputs)
    made_outputs = [*_outputs(low, partition.outputs, inputs), *([low.counters[partition.nodes[0]]] if counts else [])]
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
    precisions = tuple("; ".join(low.precisions.get(node, ())) for node in nodes_of(partition))
    low.forget()
    not_zero = [size for node in _all_nodes(partition) if _copies_sizes(node) for size in _not_zero(node)]
    made = CpuProgram.of(partition.inputs, outputs, storage, kernels, engines, runner, low.threads, low.packs, not_zero)
    made.precisions = precisions
    return made


def _constant_bytes(partition: Partition) -> int:
    """Return how many bytes the constants have that nodes of a partition read."""
    read = {value for node in _all_nodes(partition) for value in node.inputs if value is not None}
    return sum(value.constant.size_bytes for value in read if value.constant is not None)


def _all_nodes(partition: Partition) -> Iterable[Node]:
    """Yield the nodes of a partition and those of their bodies."""
    for node in partition.nodes:
        yield node
        for body in node.subgraphs:
            for graph in nested_graphs(body):
                yield from graph


def _copies_sizes(node: Node) -> bool:
    """Return whether a node is a Reshape in whose target shape, which is not constant, a 0 copies a size of the input."""
    if node.op_type != "Reshape":
        return False
    view = Reshape.of(node, constants(node))
    return view.shape is COMPUTED and not view.keeps_zero


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
            with without_fork():
                from sardonyx.providers.cpu.kernels.elementwise import copy_to

            buffer = copy_to(low, value, buffer)
        taken.add(buffer.root)
        found.append(buffer)
    return found
