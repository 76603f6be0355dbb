"""Work that takes long in one piece, in a thread beside the run's own, which hears signals, flags and times meanwhile.

    the run's thread     call ─► waits: signals are handled, flags and times looked at ─► the result, or the error that ends the run
    a thread of its own          the work ───────────────────────────────────────────────► nothing is done with a late result

NumPy and kernels work without the interpreter's lock, but a task of theirs cannot be ended. What a run that has ended leaves behind
ends at its next look at the flags, or with its task; until then it keeps what it reads and writes, so that only memory that the
interpreter owns is worked on there.
"""

from __future__ import annotations

import _thread
import contextlib
import contextvars
import mmap
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from sardonyx.cancellation import Cancellation, Flag, check_cancelled, current_cancellation, set_cancellation
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import RunTerminated, SardonyxError

__all__ = ["arrays_of", "call_aside", "is_left_behind", "may_be_left", "writing_for_others"]

_PERIOD_SECONDS = 0.02
"""How long a wait lasts before flags and times are looked at; signals end it at once."""

_T = TypeVar("_T")
_LEFT: set[int] = set()
"""What has memory that work of runs which have ended may use, by `id`."""
_WRITES_FOR_OTHERS: contextvars.ContextVar[bool] = contextvars.ContextVar("writes_for_others", default=False)


@contextlib.contextmanager
def writing_for_others() -> Iterator[None]:
    """Have what runs inside write into arrays of a user, who may use them as soon as it has ended: nothing is left behind."""
    token = _WRITES_FOR_OTHERS.set(True)
    try:
        yield
    finally:
        _WRITES_FOR_OTHERS.reset(token)


def may_be_left(values: Iterable[OnnxValue]) -> bool:
    """Return whether work on `values` may go on when its run has ended, and somebody may end that."""
    is_heard = current_cancellation() is not None or threading.current_thread() is threading.main_thread()
    return is_heard and not _WRITES_FOR_OTHERS.get() and all(_is_kept(array) for value in values for array in arrays_of(value))


def is_left_behind(memory: object) -> bool:
    """Return whether work that a run has left behind may still use `memory`, or a part of it."""
    return bool(_LEFT) and id(_owner(memory)) in _LEFT


def call_aside(function: Callable[[], _T], used: Sequence[object] = ()) -> _T:
    """Return what `function` returns, or raise what it raises, from a thread of its own; raises as `check_cancelled` meanwhile.

    What goes on then may use the memory in `used`, to which it refers, until `is_left_behind` says otherwise.
    """
    owners = [_owner(memory) for memory in used]
    results: list[_T] = []
    errors: list[BaseException] = []
    flag, process = Flag(), os.getpid()
    around = current_cancellation() or Cancellation(flag, _left)
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            set_cancellation(around.with_flag(flag))
            results.append(function())
        except BaseException as error:  # noqa: BLE001  raised again by the thread that waits
            errors.append(error)
        finally:
            done.release()
            _LEFT.difference_update(map(id, owners))

    try:
        _thread.start_new_thread(contextvars.copy_context().run, (run,))
    except RuntimeError:  # the system gives no more threads
        return function()
    try:
        while not done.acquire(timeout=_PERIOD_SECONDS):
            check_cancelled()
            if os.getpid() != process:  # a handler has forked: the thread is not here
                return function()
    except BaseException as error:
        flag.set(True)
        _LEFT.update(map(id, owners))
        if results or errors or done.acquire(timeout=_PERIOD_SECONDS if isinstance(error, SardonyxError) else 0):
            _LEFT.difference_update(map(id, owners))
            if errors and type(errors[0]) is type(error):
                raise errors.pop() from None  # which says where it ended
        raise
    if errors:
        raise errors.pop()
    return results.pop()


def arrays_of(value: OnnxValue) -> Iterable[Array]:
    """Return the arrays of a tensor or of a sequence of tensors; none of other values."""
    if isinstance(value, np.ndarray):
        return (value,)
    return [item for item in value if isinstance(item, np.ndarray)] if isinstance(value, list) else ()


def _left() -> SardonyxError:
    return RunTerminated("the run has ended")


def _is_kept(array: Array) -> bool:
    """Return whether the memory of an array lives as long as somebody refers to it."""
    return isinstance(_owner(array), (bytes, bytearray, mmap.mmap, np.ndarray))


def _owner(memory: object) -> object:
    """Return what has the memory of an array; None for one that shares memory that nobody has."""
    while isinstance(memory, memoryview) or (isinstance(memory, np.ndarray) and not memory.flags.owndata):
        memory = memory.obj if isinstance(memory, memoryview) else memory.base
    return memory
