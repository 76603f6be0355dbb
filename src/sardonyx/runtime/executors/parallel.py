"""The parallel executor: steps that do not wait for one another run at once, on threads of the executor and the calling one.

Programs work without the GIL for their long pieces, so threads serve. Each run asks for as many helpers as the plan has independent
steps; where the threads are busy with other runs, the calling thread does it all.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sardonyx.cancellation import Cancellation, Flag, current_cancellation, raise_interrupt, reset_cancellation, set_cancellation
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import RunTerminated
from sardonyx.forks import new_lock, renew_in_child
from sardonyx.runtime.executors.dataflow import DataflowExecutor, DataflowRun
from sardonyx.runtime.memory import ArenaPool
from sardonyx.runtime.plan import Plan

__all__ = ["ParallelExecutor"]


class ParallelExecutor(DataflowExecutor):
    """Runs a plan on several threads; any number of threads may run it at a time."""

    def __init__(self, plan: Plan, threads: int, shared: ArenaPool | None = None) -> None:
        """Make an executor that uses up to `threads` threads besides those that call it, less one; `shared` as there."""
        DataflowExecutor.__init__(self, plan, shared)
        self._most_threads = threads
        self._helpers = max(0, min(threads, self.order.width) - 1)
        self._lock = new_lock()
        self._pool: ThreadPoolExecutor | None = None
        renew_in_child(self)

    def maker(self) -> Callable[[], ParallelExecutor]:
        """Return what makes executors of the same plan that keep nothing of runs yet, and keeps nothing of this one's."""
        return functools.partial(ParallelExecutor, self.plan, self._most_threads, self.shared)

    def after_fork(self) -> None:
        """Begin without threads in the child of a fork: it has none of its parent's."""
        self._pool = None

    def _work(self, run: DataflowRun) -> list[OnnxValue]:
        outer = current_cancellation() or Cancellation(Flag(), functools.partial(RunTerminated, "another thread was interrupted"))
        token = set_cancellation(outer.with_flag(run.interrupted))
        try:
            self._ask_for_help(run)
            run.work()
        except BaseException as error:
            run.abandon(error)
            raise
        finally:
            reset_cancellation(token)
        return run.results()

    def _ask_for_help(self, run: DataflowRun) -> None:
        """Have the threads work for `run` too; where the system gives none, the caller does it all."""
        try:
            for _ in range(self._helpers):
                self._threads().submit(contextvars.copy_context().run, run.work)
        except BaseException as error:  # a thread whose start was interrupted is not known to the pool, and would wait for ever
            with self._lock:
                pool, self._pool = self._pool, None
            if pool is not None:
                pool.shutdown(wait=False)
            raise_interrupt(error)
            if not isinstance(error, RuntimeError):
                raise

    def _threads(self) -> ThreadPoolExecutor:
        """Return the threads, started when first needed; they end when the executor is freed."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._helpers, "sardonyx-inter-op")
            return self._pool
