"""Graphs inside nodes, run by machine code where they are one program: a loop in Python runs its body once for each token."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx.cancellation import current_cancellation
from sardonyx.config import runs_natively
from sardonyx.dtypes import OnnxValue
from sardonyx.forks import without_fork
from sardonyx.ir import Value
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.executor_memory import ExecutorMemory

if TYPE_CHECKING:
    from sardonyx.session.native.run import NativeRuns

__all__ = ["NativeBody", "native_body"]

_LEARNS_FROM_RUN = 2
"""From which run on it is worth while to prepare native ones."""


def native_body(executor: Executor, inputs: Sequence[Value], outputs: int) -> Executor:
    """Return what runs a graph as `executor` does, by machine code where that can be.

    Args:
        executor: of the graph.
        inputs: the graph's inputs.
        outputs: how many outputs it has.
    """
    names = [value.name for value in inputs]
    return NativeBody(executor, inputs, outputs) if all(names) and len(set(names)) == len(names) and runs_natively() else executor


class NativeBody:
    """An executor whose runs without captured values and targets need no Python once their shapes are known."""

    def __init__(self, executor: Executor, inputs: Sequence[Value], outputs: int) -> None:
        """Know nothing yet; arguments as of `native_body`."""
        self._executor, self._inputs, self._outputs = executor, list(inputs), outputs
        self._names = [value.name for value in inputs]
        self._count = 0
        self._runs: NativeRuns | None = None
        self._run: Callable[..., list[OnnxValue]] = NativeBody._run_in_python

    @property
    def shares(self) -> Collection[tuple[int, int]]:
        """(output, input), by number, that may be one and the same array."""
        return self._executor.shares

    def run(
        self, inputs: Sequence[OnnxValue], captures: Sequence[OnnxValue] = (), targets: Sequence[OnnxValue] = ()
    ) -> list[OnnxValue]:
        """Compute the graph's outputs; see `Executor.run`. A run that may be ended from outside is one in Python."""
        if captures or targets or current_cancellation() is not None:
            return self._executor.run(inputs, captures, targets)
        return self._run(self, None, dict(zip(self._names, inputs, strict=True)), None)

    def _run_in_python(self, _names: object, feed: Mapping[str, OnnxValue], _options: object) -> list[OnnxValue]:
        """Run, and have later runs like this one made by machine code where they can be; arguments are those of a session's run.

        It is kept as a function, not as a method of this object, which would hold itself.
        """
        results = self._executor.run([feed[name] for name in self._names])
        self._count += 1
        if self._count == _LEARNS_FROM_RUN:
            self._runs = self._known_runs()
        if self._runs is not None:
            python = NativeBody._run_in_python
            self._run = self._runs.learn(feed, python) or python
        return results

    def _known_runs(self) -> NativeRuns | None:
        with without_fork():
            from sardonyx.session.native.run import NativeRuns  # which few models with bodies need

        return NativeRuns.of(self._executor, self._inputs, {}, [f"result {place}" for place in range(self._outputs)])

    def trim(self, *, arenas_only: bool = False) -> int:
        """Give back idle arenas, and what is known of shapes unless told otherwise; returns the bytes of the arenas."""
        native = 0
        if self._runs is not None and not arenas_only:
            self._run = NativeBody._run_in_python
            native = self._runs.trim()
        return native + self._executor.trim(arenas_only=arenas_only)

    def memory(self) -> ExecutorMemory:
        """Return what it keeps between runs."""
        return self._executor.memory()

    def maker(self) -> Callable[[], Executor]:
        """Return what makes executors of the same plan that keep nothing of runs yet, and keeps nothing of this one's."""
        make, inputs, outputs = self._executor.maker(), self._inputs, self._outputs
        return lambda: NativeBody(make(), inputs, outputs)
