"""The choice of an executor for a plan.

sequential   the plan's order, in the calling thread: the least work per step
dataflow     what is ready, in the calling thread
parallel     what is ready, on several threads

Other names are those of executors that installed packages bring (`runtime/installed_executors.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from sardonyx.dtypes import OnnxValue
from sardonyx.forks import without_fork
from sardonyx.runtime.executor_memory import ExecutorMemory
from sardonyx.runtime.executors.sequential import SequentialExecutor
from sardonyx.runtime.memory import ArenaPool
from sardonyx.runtime.plan import Plan

__all__ = ["EXECUTORS", "Executor", "make_executor"]

EXECUTORS = ("sequential", "dataflow", "parallel")
"""The names of sardonyx's own."""


class Executor(Protocol):
    """Runs a plan; any number of threads may run it at a time."""

    @property
    def shares(self) -> Collection[tuple[int, int]]:
        """(output, input), by number, that may be one and the same array."""

    def run(
        self, inputs: Sequence[OnnxValue], captures: Sequence[OnnxValue] = (), targets: Sequence[OnnxValue] = ()
    ) -> list[OnnxValue]:
        """Compute the graph's outputs, on the host.

        Args:
            inputs: the graph's inputs.
            captures: the values of outer graphs that it reads.
            targets: for each output an array of the host to compute it in, or None; empty for no targets. One whose shape or type
                does not fit, or whose output is no result of a program that fills arrays, is left as it is.

        Returns:
            The outputs; a target where it was filled.
        """

    def trim(self, *, arenas_only: bool = False) -> int:
        """Give back idle arenas, and bindings unless told otherwise; returns the bytes of the arenas."""

    def memory(self) -> ExecutorMemory:
        """Return what it keeps between runs."""

    def maker(self) -> Callable[[], Executor]:
        """Return what makes executors of the same plan that keep nothing of runs yet, and keeps nothing of this one's."""


def make_executor(plan: Plan, name: str, threads: int, shared: ArenaPool | None = None) -> Executor:
    """Make an executor; a plan of one step has no order to choose, so of sardonyx's own it gets the sequential one.

    Args:
        plan: what it runs.
        name: one of EXECUTORS, or the name of an installed one.
        threads: how many threads it may use, where it uses any.
        shared: the arenas of the host, where several sessions use the same.

    Raises:
        InvalidArgument: there is none of the name.
        Fail: there is one, but it cannot be loaded.
    """
    if name not in EXECUTORS:
        with without_fork():
            from sardonyx.runtime.installed_executors import InstalledExecutor  # which few sessions have

        return InstalledExecutor(plan, name, threads, shared)
    if name == "sequential" or len(plan.steps) <= 1:
        return SequentialExecutor(plan, shared)
    with without_fork():
        from sardonyx.runtime.executors.dataflow import DataflowExecutor  # which few sessions have
        from sardonyx.runtime.executors.parallel import ParallelExecutor

    return DataflowExecutor(plan, shared) if name == "dataflow" else ParallelExecutor(plan, threads, shared)
