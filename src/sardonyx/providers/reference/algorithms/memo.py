"""Remember what a kernel derives from a node's attributes, so that it is derived once and not on every call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["remembered"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_ENTRIES = 256
"""How many results each remembered function keeps: the least recently used goes first."""


class _Identity:
    """A dictionary key equal to itself and to keys of the very same object; holds the object, so its id stays taken."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value


def remembered(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Cache a pure function of attribute values by the identity of its tuples and arrays, by the value of scalars.

    Attribute tuples are long and live as long as their node: comparing them element by element on every call would cost more
    than many kernels do. Thread-safe; two threads that meet a new key may both compute it.
    """
    anyhow: Callable[..., _Result] = function

    @functools.lru_cache(maxsize=_ENTRIES)
    def compute(args: tuple[object, ...], kwargs: tuple[tuple[str, object], ...]) -> _Result:
        plain = [_unwrapped(value) for value in args]
        return anyhow(*plain, **{name: _unwrapped(value) for name, value in kwargs})

    @functools.wraps(function)
    def wrapper(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        return compute(tuple(map(_wrapped, args)), tuple((name, _wrapped(value)) for name, value in kwargs.items()))

    return wrapper


def _wrapped(value: object) -> object:
    return value if value is None or isinstance(value, (int, float, str)) else _Identity(value)


def _unwrapped(value: object) -> object:
    return value.value if isinstance(value, _Identity) else value
