"""The pool of `run_async`."""

from __future__ import annotations

import os
import threading

from sardonyx.session.callbacks import submit


def test_calls_share_threads() -> None:
    """Many calls take no more threads than the pool has."""
    names = {submit(lambda: threading.current_thread().name).result(10) for _ in range(50)}
    assert len(names) <= max(2, os.cpu_count() or 1)
    assert all(name.startswith("sardonyx-async") for name in names)


def test_a_forked_child_has_a_pool_of_its_own() -> None:
    """The parent's threads are not there."""
    assert submit(int, "3").result(10) == 3
    child = os.fork()
    if child == 0:
        os._exit(submit(int, "4").result(10))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
