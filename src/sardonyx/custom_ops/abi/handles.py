"""Objects behind the opaque pointers that a library holds.

A handle is a number that no address of ours has, looked up in a table: a library that uses one after its release gets an error
status, never freed memory. Values of tensors are the exception (`values.py`), as libraries read them by the million.
"""

from __future__ import annotations

import itertools
from typing import TypeVar

from sardonyx.errors import InvalidArgument

__all__ = ["FIXED_BELOW", "drop", "find", "keep", "keep_fixed"]

_Kind = TypeVar("_Kind")

FIXED_BELOW = 0x1000
"""The numbers below are those of `keep_fixed`."""
_OBJECTS: dict[int, object] = {}
_NUMBERS = itertools.count(FIXED_BELOW, 16)


def keep(thing: object) -> int:
    """Return a new handle of `thing`, which lives until `drop`."""
    handle = next(_NUMBERS)
    _OBJECTS[handle] = thing
    return handle


def keep_fixed(handle: int, thing: object) -> None:
    """Let a number that machine code gives stand for `thing` until the process ends."""
    _OBJECTS[handle] = thing


def find(handle: int | None, kind: type[_Kind]) -> _Kind:
    """Return the object of a handle; raises InvalidArgument where there is none of this kind."""
    thing = _OBJECTS.get(handle or 0)
    if not isinstance(thing, kind):
        found = "NULL" if not handle else f"{handle:#x}, which is {'released or none' if thing is None else type(thing).__name__}"
        raise InvalidArgument(f"the library gave the handle {found}; expected {kind.__name__}")
    return thing


def drop(handle: int | None) -> None:
    """Forget a handle; one that is fixed, unknown or NULL is passed over."""
    if handle is not None and handle >= FIXED_BELOW:
        _OBJECTS.pop(handle, None)
