"""The threads on which `run_async` and `arun` compute: one pool for the process."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from sardonyx.forks import new_lock, renew_in_child

__all__ = ["submit"]

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


class _Pool:
    """A pool that is made when it is first needed, and anew in the child of a fork, which has none of its threads."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._made: ThreadPoolExecutor | None = None
        renew_in_child(self)

    def get(self) -> ThreadPoolExecutor:
        """Return the pool."""
        with self._lock:
            if self._made is None:
                self._made = ThreadPoolExecutor(max(2, os.cpu_count() or 1), "sardonyx-async")
            return self._made

    def after_fork(self) -> None:
        """Let go of the parent's threads."""
        self._made = None


_POOL = _Pool()


def submit(function: Callable[P, ResultT], /, *arguments: P.args, **named: P.kwargs) -> Future[ResultT]:
    """Call `function` on a thread of the pool, which has as many as the machine has processors and at least two."""
    return _POOL.get().submit(function, *arguments, **named)
