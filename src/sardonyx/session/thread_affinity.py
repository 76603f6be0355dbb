"""On which processors the threads run that help the calling one: `session.intra_op_thread_affinities`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

from sardonyx.codegen.run.thread_pool import shared_pool
from sardonyx.logs import user_stacklevel

__all__ = ["pin_threads"]


def pin_threads(processors: Sequence[frozenset[int]]) -> None:
    """Let thread i of those of the process, now or when it starts, run on `processors[i]` only, numbers from 0 on.

    All sessions share these threads, so the last one that says something counts. Where a thread may use none of its processors,
    or the system cannot pin threads, a warning says so, and the thread stays where it is.
    """
    own = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else frozenset[int]()
    for number, wanted in enumerate(processors):
        if not own & wanted:
            asked = ",".join(str(processor + 1) for processor in sorted(wanted)[:8])
            warnings.warn(
                f"session.intra_op_thread_affinities gives thread {number} the processors {asked}, none of which this process may "
                f"use; {f'it may use {len(own)}' if own else 'this system pins no threads'}, and the thread stays where it is",
                UserWarning,
                stacklevel=user_stacklevel(),
            )
    shared_pool().pin(processors)
