"""Kernels that count their tasks, and tables of them, for tests of the thread pool."""

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import Buffer, KernelCall, StepTable
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array


def counting_engine() -> Engine:
    """Return kernels that count each of their tasks.

    `linger` takes its time, `round` and `follow` count where the task so far before it has been done.
    """
    module = Module(host_target())
    with module.kernel("count") as b, b.loop(b.begin, b.end) as task:
        b.atomic_add(b.buffer(0, I64).at(task), 1)
    with module.kernel("linger") as b, b.loop(b.begin, b.end) as task:
        with b.loop(0, b.param(0)):
            b.pause()
        b.atomic_add(b.buffer(0, I64).at(task), 1)
    with module.kernel("round") as b, b.loop(b.begin, b.end) as task:
        counts, together = b.buffer(0, I64), b.param(0)
        with b.loop(0, b.param(1)):
            b.pause()
        least = b.variable(b.const(I64, 1))
        with b.loop(0, task // together * together) as before:
            least.set(b.min(least.value, b.atomic_load(counts.at(before))))
        b.atomic_add(counts.at(task), least.value)
    with module.kernel("follow") as b, b.loop(b.begin, b.end) as task:
        counts = b.buffer(0, I64)
        before = b.max(task - b.param(0), b.const(I64, 0))
        count = b.atomic_load(counts.at(task))
        with b.when((task < b.param(0)) | (b.atomic_load(counts.at(before)) > count)):
            b.atomic_add(counts.at(task), 1)
    engine = Engine(host_target())
    engine.add(module)
    return engine


def counting_table(engine: Engine, counts: Array, regions: int, threads: int, kernel: str = "count", turns: int = 0) -> StepTable:
    """Return `regions` steps of a kernel that counts in `counts`."""
    step = KernelCall(engine.address(kernel), [Buffer(1)], [turns], counts.size)
    table = StepTable([step] * regions, 1, threads=threads)
    table.set_bases([counts.ctypes.data])
    return table
