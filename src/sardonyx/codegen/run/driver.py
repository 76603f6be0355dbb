"""Run a table of steps in one native call, without the GIL.

`step_table` has the form of the table, `driver_code` is what walks over it.

A kernel that finds a value it cannot work with (an index out of range) writes a number other than 0 where base STATUS points;
the driver then stops and says which step it was. A kernel that decides which step follows (the end of a loop's body, a branch)
writes into the word behind it how many steps to skip, less than 0 to go back. What is less than 0 in the status is no failure: the
kernel asks for the caller, and is called again afterwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import DONE, StepTable
from sardonyx.codegen.run.thread_pool import ThreadPool, shared_pool
from sardonyx.codegen.target import Target
from sardonyx.disk_cache import Cache
from sardonyx.forks import without_fork

if TYPE_CHECKING:
    from sardonyx.codegen.emit.module import Module

__all__ = ["Call", "Driver"]


class Call(Protocol):
    """What runs a table on the bases that it has then; may be called often, by one thread at a time."""

    def __call__(
        self, watch: int = 0, paused: Callable[[], object] | None = None, asked: Callable[[], object] | None = None
    ) -> int:
        """Run the table.

        Args:
            watch: the address of three words, as `pace` describes; 0 for a run that nothing ends.
            paused: is called whenever the run has paused; what it raises ends the run.
            asked: is called whenever a kernel has asked for the caller; without it that is a failure.

        Returns:
            DONE, or the number of the step that failed, whose report is `table.status`.
        """


_EXPORTS = ("pool_worker", "pool_stop", "driver_refuse", "driver_run", "driver_watch", "driver_resume")
"""The functions of the driver's module."""


class Driver:
    """The compiled driver, and the pool that it shares tasks with."""

    def __init__(
        self, target: Target, *, cache: Cache | None = None, pool: ThreadPool | None = None, edition: str | None = None
    ) -> None:
        """Compile the driver, or take it from the cache.

        Args:
            target: what it is compiled for.
            cache: where the object is looked up and kept.
            pool: whose threads do tasks; None for the process's.
            edition: what the sources are, by which a known driver is found without writing its text; None where that is not known.
        """
        self._engine = Engine(target, cache=cache)
        if edition is None:
            self._engine.add(_new_module(target))
        else:
            self._engine.add_named("driver", _EXPORTS, _write, edition)
        self._pool = pool or shared_pool()
        alone = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        watched = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        self._run: Callable[[ctypes.c_void_p], int] = alone(self._engine.address("driver_run"))
        self._watch: Callable[[ctypes.c_void_p, int], int] = watched(self._engine.address("driver_watch"))
        self._resume: Callable[[ctypes.c_void_p, int], int] = watched(self._engine.address("driver_resume"))

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return self._engine.target

    @property
    def refusal(self) -> int:
        """The address of a kernel that reports a failure: for a step that cannot run, where it may not come to it."""
        return self._engine.address("driver_refuse")

    def prepare(self, table: StepTable) -> Call:
        """Return what runs `table`; it keeps the table and the driver.

        Workers are started by the first call that needs them, also in the child of a fork.
        """
        table.set_pool(self._pool.address)
        run, run_watched, resume, workers, pool = self._run, self._watch, self._resume, table.threads - 1, self._pool

        def call(watch: int = 0, paused: Callable[[], object] | None = None, asked: Callable[[], object] | None = None) -> int:
            if pool.workers < workers:
                pool.grow(workers, self._engine)
            result = run_watched(table.pointer, watch) if watch else run(table.pointer)
            while result != DONE and table.attend(result, paused, asked):
                result = resume(table.pointer, watch)
            return result

        return call

    def native(self, table: StepTable) -> tuple[int, int]:
        """Return the address of what runs `table`, a function of the table's address, and that of what goes on after a pause.

        The second is a function of the table's address and the watch's. Starts the workers that the table needs.
        """
        table.set_pool(self._pool.address)
        if self._pool.workers < table.threads - 1:
            self._pool.grow(table.threads - 1, self._engine)
        return self._engine.address("driver_run"), self._engine.address("driver_resume")

    def run(self, table: StepTable) -> int:
        """Run a table once, as `prepare` says."""
        return self.prepare(table)()


def _new_module(target: Target) -> Module:
    with without_fork():
        from sardonyx.codegen.emit.module import Module  # which processes with a known driver do without

    module = Module(target)
    _write(module)
    return module


def _write(module: Module) -> None:
    with without_fork():
        from sardonyx.codegen.run.driver_code import write_driver  # as above

    write_driver(module)
