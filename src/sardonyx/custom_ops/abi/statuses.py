"""Statuses: how errors cross the border to a library and back, since nothing may be thrown across it."""

from __future__ import annotations

import ctypes
import dataclasses
import threading

from sardonyx import errors
from sardonyx.custom_ops.abi.handles import drop, find, keep, keep_fixed
from sardonyx.errors import SardonyxError, describe

__all__ = ["NULL_STATUS", "Status", "make_status", "note_failure", "raise_failures", "raise_status", "status_of"]

_CODES: dict[int, type[SardonyxError]] = {
    1: errors.Fail,
    2: errors.InvalidArgument,
    3: errors.NoSuchFile,
    4: errors.Fail,
    5: errors.Fail,
    6: errors.RuntimeException,
    7: errors.InvalidProtobuf,
    8: errors.Fail,
    9: errors.NotImplemented,
    10: errors.InvalidGraph,
    11: errors.EPFail,
}
"""OrtErrorCode -> the class of our error tree."""

_FAIL = 1
_NUMBERS = {kind: code for code, kind in reversed(_CODES.items())}
_PENDING = threading.local()


@dataclasses.dataclass(frozen=True, slots=True)
class Status:
    """An error on its way across the border."""

    code: int
    """Its OrtErrorCode."""
    text: ctypes.Array[ctypes.c_char]
    """What it says, in UTF-8 and ended by a zero byte, in memory that lives as long as the status."""


NULL_STATUS = 0x800
"""The handle of the status that machine code gives where a library passes NULL for what there must be."""


def make_status(code: int, text: str) -> int:
    """Return the handle of a new status, which its receiver releases."""
    return keep(Status(code, ctypes.create_string_buffer(text.encode("utf-8", "replace"))))


keep_fixed(NULL_STATUS, Status(2, ctypes.create_string_buffer(b"the library gave NULL for a value, a kernel context or a result")))


def status_of(error: BaseException) -> int:
    """Return a new status that says what `error` does, with the code of its class."""
    if isinstance(error, SardonyxError):
        return make_status(next((_NUMBERS[kind] for kind in type(error).__mro__ if kind in _NUMBERS), _FAIL), str(error))
    return make_status(_FAIL, describe(error))


def raise_status(handle: int | None, place: str) -> None:
    """Raise what a status that a library returned says, and release it; NULL is success.

    Args:
        handle: the status.
        place: what the message begins with.
    """
    if not handle:
        return
    status = find(handle, Status)
    drop(handle)
    kind = _CODES.get(status.code, errors.Fail)
    raise kind(f"{place}: {status.text.value.decode('utf-8', 'replace')}")


def note_failure(text: str) -> None:
    """Keep an error for `raise_failures` of this thread: what is wrong in a function that cannot return a status."""
    if not hasattr(_PENDING, "texts"):
        _PENDING.texts = []
    _PENDING.texts.append(text)


def raise_failures(place: str) -> None:
    """Raise NotImplemented for what `note_failure` kept on this thread since the last call."""
    texts: list[str] = getattr(_PENDING, "texts", [])
    if texts:
        message = "; ".join(dict.fromkeys(texts))
        texts.clear()
        raise errors.NotImplemented(f"{place}: {message}")
