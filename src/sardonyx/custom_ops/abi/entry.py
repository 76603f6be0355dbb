"""How a function of OrtApi is written in Python.

    @entry(ENTRIES, "GetDimensionsCount", POINTER, POINTER)
    def _get_dimensions_count(info, out): ...

A function that returns a status raises what is wrong, and its wrapper makes a status of it; nothing passes the border as an
exception. Functions that return something else name their result type; their errors are kept for the end of the library's call.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable
from typing import Any

from sardonyx import errors
from sardonyx.custom_ops.abi.statuses import note_failure, status_of
from sardonyx.errors import describe

__all__ = ["INT32", "INT64", "POINTER", "SIZE", "UINT32", "Entry", "entry", "make_callback", "unfilled"]

POINTER, SIZE, INT32, INT64, UINT32 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32

Function = Callable[..., object]
"""Takes and returns what ctypes converts, by its signature."""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A filled function."""

    name: str
    """Its name in OrtApi."""
    arguments: tuple[Any, ...]
    """The ctypes types of its arguments."""
    function: Function
    """What it does."""
    returns: Any
    """The ctypes type of its result; "status" where it returns one, None where it returns nothing."""


def entry(entries: list[Entry], name: str, *arguments: object, returns: object = "status") -> Callable[[Function], Function]:
    """Add the decorated function to `entries` as the function `name` of OrtApi; arguments and result are ctypes types."""

    def add(function: Function) -> Function:
        entries.append(Entry(name, arguments, function, returns))
        return function

    return add


def make_callback(item: Entry) -> object:
    """Return a function pointer for an entry: a ctypes callback, which its owner keeps."""
    if item.returns == "status":
        return ctypes.CFUNCTYPE(POINTER, *item.arguments)(_with_status(item.function))
    return ctypes.CFUNCTYPE(item.returns, *item.arguments)(_without_status(item))


def unfilled(name: str, *, returns_status: bool) -> object:
    """Return a function pointer for a function that is not there: it says so by a status, or when the library's call ends."""
    text = f"the library calls {name} of OrtApi, which sardonyx does not provide; ask for it with the library's name"

    def refuse() -> int | None:
        if returns_status:
            return status_of(errors.NotImplemented(text))
        note_failure(text)
        return None

    return ctypes.CFUNCTYPE(POINTER)(refuse)


def _with_status(function: Function) -> Function:
    def call(*arguments: object) -> int | None:
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001  nothing may be thrown into the library
            return status_of(error)
        return None

    return call


def _without_status(item: Entry) -> Function:
    function, name = item.function, item.name

    def call(*arguments: object) -> object:
        try:
            return function(*arguments)
        except BaseException as error:  # noqa: BLE001  nothing may be thrown into the library
            note_failure(f"{name} failed: {describe(error)}")
            return None if item.returns in (None, POINTER) else 0

    return call
