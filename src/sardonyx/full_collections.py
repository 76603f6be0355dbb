"""Full garbage collections, which wait while a large graph is built.

A graph of 30,000 nodes is about a million objects, all of them in use. A full collection walks over all objects of the process
without a pause, in which nothing is heard of a signal or a deadline, and finds next to nothing there: what a build makes lives
until its end, and is freed by taking the graph apart. The young generations are collected as always. As soon as the build ends,
the thresholds are the user's again; a full collection that came due meanwhile is made when the user's next objects are, or before
the next build. Where the user has the young objects collected seldom or never, nothing is changed.

Since Python 3.14 collections are made in small steps, which need not wait.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections.abc import Iterator

from sardonyx.forks import new_lock, renew_in_child

__all__ = ["without_full_collections"]

_NEVER = (1 << 31) - 5
"""A threshold of the oldest generation that is not reached."""
_MOST_OBJECTS = 100_000
"""A program that lets more young objects than that be made has few collections, full ones among them."""
_HAS_STEPS = sys.version_info >= (3, 14)


@contextlib.contextmanager
def without_full_collections() -> Iterator[None]:
    """Let full collections wait until the block ends; those of young objects go on.

    One block at a time holds them back, so that blocks of several threads, one begun before another ends, never do so for longer
    than the longest of them takes.
    """
    if _HAS_STEPS or not gc.isenabled():
        yield
        return
    block = _Block()
    try:
        _WAITING.begin(block)
        yield
    finally:
        _WAITING.end(block)


class _Block:
    """One block of the program; where it is gone, so is what held collections back."""

    __slots__ = ("__weakref__",)


class _Waiting:
    """Who holds full collections back at present, and what the thresholds were before."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._holder: weakref.ref[_Block] | None = None
        self._thresholds = gc.get_threshold()
        renew_in_child(self)

    def begin(self, block: _Block) -> None:
        with self._lock:
            if self._is_held():
                return
            self._give_back()  # what a block held back whose end was interrupted
        if not 0 < gc.get_threshold()[0] <= _MOST_OBJECTS:
            return
        if gc.get_count()[2] > gc.get_threshold()[2]:
            _let_collect()  # without the lock: finalizers run, which may make sessions
        with self._lock:
            if self._is_held():
                return
            self._thresholds = gc.get_threshold()
            self._holder = weakref.ref(block)
            gc.set_threshold(*self._thresholds[:2], _NEVER)

    def _is_held(self) -> bool:
        return self._holder is not None and self._holder() is not None

    def end(self, block: _Block) -> None:
        with self._lock:
            if self._holder is None or self._holder() is not block:
                return
            self._give_back()

    def after_fork(self) -> None:
        """Give back the thresholds in a child, which does not have the thread that held collections back."""
        if self._holder is not None:
            self._give_back()

    def _give_back(self) -> None:
        now = gc.get_threshold()
        if now[2] == _NEVER:
            gc.set_threshold(*now[:2], self._thresholds[2])
        self._holder = None


def _let_collect() -> None:
    """Make as many objects as have the collector look what is due."""
    kept: list[list[object]] = [[] for _ in range(gc.get_threshold()[0] + 1)]
    del kept


_WAITING = _Waiting()
