"""Ending runs from outside: flags, timers, and signals that come in their middle."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from sardonyx.cancellation import Cancellation, Flag, reset_cancellation, set_cancellation
from sardonyx.errors import RunTerminated


@contextlib.contextmanager
def ended_by(flag: Flag) -> Iterator[Cancellation]:
    """Let `flag` end what this thread does in the block; the error is RunTerminated."""
    cancellation = Cancellation(flag, functools.partial(RunTerminated, "terminated"))
    token = set_cancellation(cancellation)
    try:
        yield cancellation
    finally:
        reset_cancellation(token)


class Counted(Cancellation):
    """Ends nothing, and counts how often it is asked."""

    count = 0

    def check(self) -> None:
        """Count."""
        self.count += 1


def checks_of(work: Callable[[], object]) -> int:
    """Return how often a piece of work asks whether it is to end."""
    counted = Counted(Flag(), functools.partial(RunTerminated, "terminated"))
    token = set_cancellation(counted)
    try:
        work()
    finally:
        reset_cancellation(token)
    return counted.count


@contextlib.contextmanager
def after(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Call `act` in another thread, `seconds` after the block began."""
    timer = threading.Timer(seconds, act)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@contextlib.contextmanager
def handler(handle: Any, number: int = signal.SIGINT) -> Iterator[None]:
    """Handle a signal by `handle` in the block: by default Ctrl-C, which a shell may have had ignored.

    Python drops what is raised in callbacks of the garbage collector, such as those of Hypothesis, and a handler is likely to be called
    there, after a long collection: so there are none in the block.
    """
    before, callbacks = signal.signal(number, handle), gc.callbacks[:]
    gc.callbacks.clear()
    try:
        yield
    finally:
        signal.signal(number, before)
        gc.callbacks[:] = callbacks


def interrupt() -> None:
    """Send this process what Ctrl-C sends."""
    os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def interrupted_starts() -> Iterator[list[threading.Thread]]:
    """Let the first thread that is started in the block be interrupted by Ctrl-C when it runs already; yields those that were started."""
    start, started = threading.Thread.start, list[threading.Thread]()

    def begin(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)
        if len(started) == 1:
            raise KeyboardInterrupt

    threading.Thread.start = begin  # type: ignore[method-assign]
    try:
        yield started
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
