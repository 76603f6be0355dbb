"""From a partition to the program of its kind.

That is plain steps, a Loop whose scan outputs are as long as only the run shows, or a node whose output's size elements of its
inputs say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sardonyx.codegen.target import Target
from sardonyx.forks import without_fork
from sardonyx.provider import Partition
from sardonyx.providers.cpu.compile import lower_partition, make_program
from sardonyx.providers.cpu.library import driver_for
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.program import CpuProgram

if TYPE_CHECKING:
    from sardonyx.providers.cpu.loop_program import LoopProgram
    from sardonyx.providers.cpu.sized_program import SizedProgram

__all__ = ["compile_partition"]


def compile_partition(
    partition: Partition, target: Target, threads: int, precision: Precision, *, flush: bool
) -> CpuProgram | LoopProgram | SizedProgram:
    """Lower a partition to steps and compile the kernels that they need.

    Args:
        partition: the partition.
        target: what to compile for.
        threads: how many threads run a step.
        precision: what operands of products may be rounded to.
        flush: whether runs take denormal numbers as zero.
    """
    low = Lowering(target, threads, precision=precision)
    if partition.nodes[0].op_type == "Loop":
        with without_fork():
            from sardonyx.providers.cpu.open_loop import make_loop_program, open_loop  # which few sessions need

        lengths = open_loop(partition)
        if lengths is not None:
            return make_loop_program(partition, low, lengths, driver_for(target), flush=flush)
    program = make_program(partition, low, lower_partition(low, partition), driver_for(target))
    program.flushes_denormals = flush
    return program if not partition.units[0].alone else _sized(partition, program)


def _sized(partition: Partition, program: CpuProgram) -> CpuProgram | SizedProgram:
    with without_fork():
        from sardonyx.providers.cpu.sized_program import SizedProgram  # which few sessions need
        from sardonyx.providers.cpu.value_sizes import value_sizes

    sizes = value_sizes(partition)
    return program if sizes is None else SizedProgram(program, sizes)
