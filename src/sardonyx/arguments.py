"""Arguments of public functions, checked: a wrong type is a TypeError that names the argument."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any, SupportsIndex, TypeVar

from sardonyx.errors import InvalidArgument

__all__ = ["as_buffer", "as_flag", "as_index", "as_list", "as_mapping", "as_pairs", "as_path", "as_text", "instance"]

_Item = TypeVar("_Item")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def as_index(name: str, value: SupportsIndex) -> int:
    """Return an integer; raises TypeError for what is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise _wrong(name, "an integer", value) from None


def as_flag(name: str, value: object) -> bool:
    """Return the truth of a value, None included; raises TypeError for texts and collections, whose length is no truth."""
    if value is not None and not hasattr(type(value), "__bool__"):
        raise _wrong(name, "a bool", value)
    return bool(value)


def as_text(name: str, value: str) -> str:
    """Return a text; raises TypeError for what is none."""
    return instance(name, value, str, "a text")


def as_path(name: str, value: str | os.PathLike[str]) -> str:
    """Return a path as text; raises TypeError for what is none, and for one with a null character."""
    try:
        path: object = os.fspath(value)  # bytes are paths too, which nothing here takes
    except TypeError:
        raise _wrong(name, "a path", value) from None
    if not isinstance(path, str) or "\0" in path:
        raise _wrong(name, "a path", value)
    return path


def as_buffer(name: str, value: Any) -> memoryview:
    """Return a view of an object with a buffer, which typing has no name for; raises TypeError for what has none."""
    try:
        return memoryview(value)
    except TypeError:
        raise _wrong(name, "an object with a buffer", value) from None


def as_list(name: str, value: Iterable[_Item]) -> list[_Item]:
    """Return the items of a list, or of anything else that has items; raises TypeError for a text and for what has none."""
    if isinstance(value, (str, bytes)):
        raise _wrong(name, "a list", value)
    try:
        return list(value)
    except TypeError:
        raise _wrong(name, "a list", value) from None


def as_pairs(names: str, first: Iterable[_Key], values: str, second: Iterable[_Value]) -> list[tuple[_Key, _Value]]:
    """Return the pairs of two lists; raises InvalidArgument where one is longer, TypeError as `as_list`."""
    one, other = as_list(names, first), as_list(values, second)
    if len(one) != len(other):
        raise InvalidArgument(f"{names} has {len(one)} entries and {values} has {len(other)}; expected as many of each")
    return list(zip(one, other, strict=True))


def as_mapping(name: str, value: Mapping[_Key, _Value]) -> Mapping[_Key, _Value]:
    """Return a mapping; raises TypeError for what is none."""
    if not isinstance(value, Mapping):
        raise _wrong(name, "a dictionary", value)
    return value


def instance(name: str, value: _Item, kind: type, words: str = "") -> _Item:
    """Return a value of a class; raises TypeError for others, with `words` for the class."""
    if not isinstance(value, kind):
        raise _wrong(name, words or f"an object of {kind.__name__}", value)
    return value


def _wrong(name: str, words: str, value: object) -> TypeError:
    return TypeError(f"{name} is {words}, got {value!r:.100}")
