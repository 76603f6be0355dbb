"""What a fork needs: locks that the child of a fork finds free, and work that a fork must not cut in two.

    self._lock = new_lock()          a lock that is renewed in the child: the thread that held it is not there
    with without_fork():             forks by other threads wait until the block ends; for imports and the like
        import onnx

Every lock of the package comes from here, and every import inside a function is made without a fork: a module that is half imported
would stay so in the child, behind a lock that nobody gives back. What a lock guards may be as a thread left it between two
statements, so state is changed by single assignments, after all that can take long is done.

The same holds within one thread: a handler of a signal, or a finalizer, runs between two statements of whatever its thread does,
and may make and run sessions itself. So a thread can take a lock again that it holds.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Protocol

__all__ = ["Renewed", "is_half_imported", "new_lock", "renew_in_child", "without_fork"]

_GATE = threading.RLock()
_HOOKED = {"logging": "_lock", "concurrent.futures.thread": "_global_shutdown_lock"}
"""Modules that hook into forks, which hold these locks of theirs meanwhile: one that is imported while a fork waits gives its lock
back afterwards without having taken it."""
_LONGEST_SECONDS = 60.0
"""How long a fork waits at most; a block that takes longer may itself be waiting for the thread that forks."""
_LOCKS: weakref.WeakSet[object] = weakref.WeakSet()
_RENEWED: weakref.WeakSet[Renewed] = weakref.WeakSet()


class Renewed(Protocol):
    """What holds threads, or other things that a child of a fork does not have."""

    def after_fork(self) -> None:
        """Let go of them, in the child."""


def new_lock() -> threading.RLock:
    """Return a lock that is free in the child of a fork, whoever held it in the parent, and that its thread may take again."""
    lock = threading.RLock()
    _LOCKS.add(lock)
    return lock


def renew_in_child(item: Renewed) -> None:
    """Call `item.after_fork()` in the child of each fork from now on, as long as somebody refers to `item`."""
    _RENEWED.add(item)


@contextlib.contextmanager
def without_fork() -> Iterator[None]:
    """Have forks by other threads wait until the block ends; the block waits for no other thread of the program."""
    with _GATE:
        yield


def is_half_imported(module: str) -> bool:
    """Return whether a module is being imported: where its own thread asks, a signal's handler runs in the midst of that."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


class _Fork:
    """What happens around each fork of this process."""

    def __init__(self) -> None:
        self._holds_gate = False

    def before(self) -> None:
        unhooked = [name for name in _HOOKED if name not in sys.modules or is_half_imported(name)]
        self._holds_gate = _GATE.acquire(timeout=_LONGEST_SECONDS)
        for name in unhooked:
            if name in sys.modules and not is_half_imported(name):
                getattr(sys.modules[name], _HOOKED[name]).acquire()

    def after_in_parent(self) -> None:
        if self._holds_gate:
            _GATE.release()

    def after_in_child(self) -> None:
        if self._holds_gate:
            _GATE.release()
        else:
            _renew(_GATE)
        for lock in list(_LOCKS):
            _renew(lock)
        for item in list(_RENEWED):
            item.after_fork()


def _renew(lock: Any) -> None:  # typing does not know the method, by which `threading` and `logging` renew their own locks
    lock._at_fork_reinit()


_FORK = _Fork()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_FORK.before, after_in_parent=_FORK.after_in_parent, after_in_child=_FORK.after_in_child)
