"""From a partition that is a Loop whose scan outputs are as long as only the run shows to its program."""

from __future__ import annotations

from sardonyx.codegen.run.driver import Driver
from sardonyx.dtypes import Array
from sardonyx.ops.schema import place_of
from sardonyx.provider import Partition
from sardonyx.providers.cpu.claims import NodeClaim
from sardonyx.providers.cpu.compile import lower_partition, make_program
from sardonyx.providers.cpu.kernels.control_flow import LoopSpec
from sardonyx.providers.cpu.loop_program import LoopProgram, OpenLoop
from sardonyx.providers.cpu.lowering import Lowering

__all__ = ["make_loop_program", "open_loop"]


def open_loop(partition: Partition) -> OpenLoop | None:
    """Return what there is to know of the Loop that a partition is, if scan outputs have lengths that only the run shows."""
    unit = partition.units[0]
    spec = unit.claimed.spec if isinstance(unit, NodeClaim) and unit.claimed is not None else None
    if not isinstance(spec, LoopSpec) or not spec.capacities:
        return None
    node = partition.nodes[0]
    limit = node.inputs[0]
    if limit is None:
        trips: int | Array | None = None
    else:
        trips = partition.inputs.index(limit) if limit.constant is None else limit.constant.numpy()
    scanned = set(node.outputs[spec.carried :])
    stacked = frozenset(place for place, value in enumerate(partition.outputs) if value in scanned)
    open_dims = {
        place: tuple(axis for axis, dim in enumerate(partition.outputs[place].shape or ()) if not isinstance(dim, int))
        for place in stacked
    }
    return OpenLoop(place_of(node), trips, spec.is_exact, spec.capacities, stacked, open_dims)


def make_loop_program(partition: Partition, low: Lowering, loop: OpenLoop, runner: Driver, *, flush: bool = False) -> LoopProgram:
    """Lower a partition that is an open loop, and make its program, whose last output is the number of iterations.

    With `flush` it computes with zeros for denormal numbers.
    """
    program = make_program(partition, low, lower_partition(low, partition, counts=True), runner)
    program.flushes_denormals = flush
    return LoopProgram(program, loop)
