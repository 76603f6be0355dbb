"""The threads on which `run_async` and `arun` compute: one pool for the process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["submit"]

P = ParamSpec("P")
ResultT = TypeVar("ResultT")

_LOCK = threading.Lock()
_POOL: ThreadPoolExecutor | None = None


def submit(function: Callable[P, ResultT], /, *arguments: P.args, **named: P.kwargs) -> Future[ResultT]:
    """Call `function` on a thread of the pool, which has as many as the machine has processors and at least two."""
    global _POOL
    with _LOCK:
        if _POOL is None:
            _POOL = ThreadPoolExecutor(max(2, os.cpu_count() or 1), "sardonyx-async")
        pool = _POOL
    return pool.submit(function, *arguments, **named)


def _forget() -> None:
    """Start anew in a forked child, which has none of the threads."""
    global _LOCK, _POOL
    _LOCK, _POOL = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)
