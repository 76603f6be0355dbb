"""The threads of the process: Python threads that stay in native code, without the GIL, and share the tasks of a step.

What they do there is in `pool_code`. Threads are started when first needed, forgotten after a fork (the child starts its own) and
ended when Python ends.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
import time
from collections.abc import Sequence

import numpy as np

from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.pool_words import MAIN_THREAD, POOL_WORDS
from sardonyx.forks import new_lock, renew_in_child
from sardonyx.trace import event

__all__ = ["ThreadPool", "shared_pool"]


class ThreadPool:
    """The words of a pool and the Python threads that work for it. Use `shared_pool`: there is one in a process."""

    def __init__(self) -> None:
        raw = np.zeros(POOL_WORDS + 16, np.int64)
        self._words = raw[-(raw.ctypes.data // 8) % 16 :][:POOL_WORDS]
        self._lock = new_lock()
        self._threads: list[threading.Thread] = []
        self._engine: Engine | None = None
        self._processors: tuple[frozenset[int], ...] = ()
        self._clear()
        renew_in_child(self)
        atexit.register(self.stop)

    @property
    def address(self) -> int:
        """Where the words are: the same for the life of the process and of its children."""
        return int(self._words.ctypes.data)

    @property
    def workers(self) -> int:
        """How many threads help the callers."""
        return len(self._threads)

    def grow(self, workers: int, engine: Engine) -> None:
        """Have at least `workers` threads, in the code of `engine`, which the pool keeps; fewer if the system gives no more."""
        with self._lock:
            self._engine = self._engine or engine
            entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self._engine.address("pool_worker"))
            while len(self._threads) < workers:
                arguments = (self.address, len(self._threads))
                thread = threading.Thread(target=entry, args=arguments, daemon=True, name=f"sardonyx-{len(self._threads)}")
                self._threads.append(thread)  # before it starts: an interrupt may be raised when it runs already
                try:
                    thread.start()
                except RuntimeError:
                    self._threads.remove(thread)
                    return
                self._pin(thread, len(self._threads) - 1)

    def pin(self, processors: Sequence[frozenset[int]]) -> None:
        """Let worker i, now or when it is started, run on the processors `processors[i]` only; further ones stay as they are."""
        with self._lock:
            self._processors = tuple(processors)
            for index, thread in enumerate(self._threads):
                self._pin(thread, index)

    def _pin(self, thread: threading.Thread, index: int) -> None:
        if index >= len(self._processors) or thread.native_id is None or not hasattr(os, "sched_setaffinity"):
            return
        try:
            os.sched_setaffinity(thread.native_id, self._processors[index])
        except OSError as error:
            event("threads.unpinned", thread=thread.name, processors=sorted(self._processors[index]), error=str(error))

    def stop(self) -> None:
        """End the threads; a later `grow` starts new ones. They stay if a run keeps the pool for longer than a second."""
        with self._lock:
            if self._engine is None or not self._threads:
                return
            stop = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(self._engine.address("pool_stop"))
            deadline = time.monotonic() + 1
            while not stop(self.address):
                if time.monotonic() > deadline:
                    return
                time.sleep(0.001)
            for thread in self._threads:
                if thread.ident is not None:  # None where an interrupt came before its start
                    thread.join()
            self._threads = []
            self._clear()

    def after_fork(self) -> None:
        """Begin without threads in the child of a fork: it has none of its parent's."""
        self._clear()
        self._threads = []

    def _clear(self) -> None:
        self._words[:] = 0
        self._words[MAIN_THREAD] = threading.main_thread().ident or 0


@functools.cache
def shared_pool() -> ThreadPool:
    """Return the pool of this process."""
    return ThreadPool()
