"""How a run or a load is ended from outside: by a flag that any thread sets, by a time, or by a signal.

    token = set_cancellation(Cancellation(flag, stopped))
    try: …                                       check_cancelled() now and then, in this thread
    finally: reset_cancellation(token)

Native code reads the flag and the time by their addresses. Signals are Python's matter: their handlers run in the main thread
between two of its instructions. What a handler raises may be taken for a failure of the code in whose middle it was raised, and
wrapped like one; `raise_interrupt` finds it again.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import functools
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import TypeAlias, TypeVar

from sardonyx.errors import SardonyxError

__all__ = [
    "CHECKED_EACH",
    "Cancellation",
    "Flag",
    "check_cancelled",
    "checked",
    "checked_blocks",
    "current_cancellation",
    "holding",
    "limited_to",
    "raise_interrupt",
    "reset_cancellation",
    "set_cancellation",
]

NewError: TypeAlias = Callable[[], SardonyxError]
"""Makes an error, a new one for each time that it is raised."""

_Item = TypeVar("_Item")

CHECKED_EACH = 64
"""How many nodes, or other items of a graph, are gone through between two checks."""
_BLOCK_ITEMS = 4096
_NEVER = (1 << 63) - 1
_Words = ctypes.c_int64 * 3
"""Kept: a type of arrays that nobody refers to is made anew, as a class, each time that one is asked for."""
_PATIENCE_SECONDS = 0.03


class Flag:
    """A word that any thread may set and native code may read. Copies and pickles of it are flags of their own."""

    __slots__ = ("_word", "address")

    def __init__(self, value: bool = False) -> None:
        self._word = ctypes.c_int64(value)
        self.address = ctypes.addressof(self._word)
        """Where it is, while the flag lives: 0 for False."""

    def __bool__(self) -> bool:
        return self._word.value != 0

    def set(self, value: bool) -> None:
        """Set it."""
        self._word.value = int(value)

    def __reduce__(self) -> tuple[type[Flag], tuple[bool]]:
        return Flag, (bool(self),)


class Cancellation:
    """What may end a piece of work: a flag and a time, and the errors that say so."""

    __slots__ = ("_flags", "_stopped", "_timed_out", "_wake_ns", "_words", "address")

    def __init__(self, flag: Flag, stopped: NewError, timeout_ms: float = 0, timed_out: NewError | None = None) -> None:
        """Begin to count the time.

        Args:
            flag: ends the work as soon as it is set.
            stopped: makes the error that is raised then.
            timeout_ms: how long the work may take from now on; 0 for any time.
            timed_out: makes the error that is raised when it takes longer.
        """
        self._stopped, self._timed_out = stopped, timed_out
        self._wake_ns = int(min(time.monotonic_ns() + timeout_ms * 1e6, _NEVER)) if timeout_ms else _NEVER
        self._watch((flag, flag))

    def _watch(self, flags: tuple[Flag, Flag]) -> None:
        self._flags = flags
        self._words = _Words(flags[0].address, flags[1].address, self._wake_ns)
        self.address = ctypes.addressof(self._words)
        """Words for native code: the addresses of two flags, and the monotonic time in nanoseconds at which the work ends."""

    def with_flag(self, flag: Flag) -> Cancellation:
        """Return what ends a part of the work: where this does, or as soon as `flag` is set too."""
        made = Cancellation(self._flags[0], self._stopped, 0, self._timed_out)
        made._wake_ns = self._wake_ns
        made._watch((self._flags[0], flag))
        return made

    def with_limit(self, timeout_ms: float, timed_out: NewError) -> Cancellation:
        """Return what ends a part of the work: where this does, or when the part has taken so long."""
        limit = Cancellation(self._flags[0], self._stopped, timeout_ms, timed_out)
        if self._wake_ns <= limit._wake_ns:
            limit._wake_ns, limit._timed_out = self._wake_ns, self._timed_out
        limit._watch(self._flags)
        return limit

    def __reduce__(self) -> tuple[type[Cancellation], tuple[Flag, NewError]]:
        return Cancellation, (self._flags[0], self._stopped)  # what native code reads lies elsewhere in a copy

    def check(self) -> None:
        """Raise the error that fits where the work is to end."""
        if self._flags[0] or self._flags[1]:
            raise self._stopped()
        if self._timed_out is not None and time.monotonic_ns() >= self._wake_ns:
            raise self._timed_out()


_CURRENT: contextvars.ContextVar[Cancellation | None] = contextvars.ContextVar("cancellation", default=None)

current_cancellation: Callable[[], Cancellation | None] = _CURRENT.get
"""Return what may end the work that this thread is doing, None for nothing."""


def check_cancelled() -> None:
    """Raise the error that fits where the work that this thread is doing is to end; to be called between long pieces of it."""
    cancellation = _CURRENT.get()
    if cancellation is not None:
        cancellation.check()


def checked(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield `items`, of which there may be very many; raises as `check_cancelled` between them."""
    for number, item in enumerate(items, 1):
        if not number % CHECKED_EACH:
            check_cancelled()
        yield item


def checked_blocks(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """Yield slices of `items`, for work of some microseconds on each item; raises as `check_cancelled` between them."""
    if len(items) <= _BLOCK_ITEMS:
        yield items
        return
    for start in range(0, len(items), _BLOCK_ITEMS):
        check_cancelled()
        yield items[start : start + _BLOCK_ITEMS]


def set_cancellation(cancellation: Cancellation | None) -> contextvars.Token[Cancellation | None]:
    """Let `cancellation` end the work that this thread does from now on, until the token is reset."""
    return _CURRENT.set(cancellation)


def reset_cancellation(token: contextvars.Token[Cancellation | None]) -> None:
    """Undo `set_cancellation`."""
    _CURRENT.reset(token)


@contextlib.contextmanager
def holding(lock: threading.RLock) -> Iterator[None]:
    """Hold a lock for which the work that this thread is doing may have to wait long; raises as `check_cancelled` meanwhile."""
    while not lock.acquire(timeout=_PATIENCE_SECONDS):
        check_cancelled()
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def limited_to(seconds: float, timed_out: NewError) -> Iterator[None]:
    """Let the work that this thread does inside end when it has taken so long, too, by the error that `timed_out` makes."""
    around = _CURRENT.get() or Cancellation(Flag(), timed_out)
    token = _CURRENT.set(around.with_limit(seconds * 1e3, timed_out))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def raise_interrupt(error: BaseException) -> None:
    """Raise the exception that a handler of a signal raised, where `error` is it or was made of it."""
    codes = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:  # an error that was given more details has itself as its cause
        if _passes(cause, codes):
            raise cause from cause.__cause__
        seen.add(id(cause))
        cause = cause.__cause__


def _passes(error: BaseException, codes: set[CodeType | None]) -> bool:
    """Return whether `error` came through a function of one of `codes`."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _code_of(handler: object) -> CodeType | None:
    """Return the code of a handler that is written in Python."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    for candidate in (handler, getattr(handler, "__func__", None), vars(type(handler)).get("__call__")):
        code = getattr(candidate, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None
