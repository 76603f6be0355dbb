"""Remember what a kernel derives from a node's attributes, so that it is derived once and not on every call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeAlias, TypeVar

from sardonyx.forks import new_lock

__all__ = ["remembered"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Key: TypeAlias = "tuple[object, ...]"

_ENTRIES = 256
"""How many results each remembered function keeps: the oldest goes first."""
_SCALARS = frozenset((int, float, str, bool))


def remembered(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Cache a pure function of attribute values by the identity of its tuples and arrays, by the value of scalars.

    Attribute tuples are long and live as long as their node: comparing them element by element on every call would cost more
    than many kernels do. An entry keeps its arguments, so that no other object has their identity. Thread-safe; two threads that
    meet a new key may both compute it.
    """
    known: dict[_Key, tuple[_Result, object]] = {}
    lock = new_lock()

    @functools.wraps(function)
    def wrapper(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        key = _key(args) if not kwargs else (*_key(args), *kwargs, *_key(tuple(kwargs.values())))
        found = known.get(key)
        if found is not None:
            return found[0]
        result = function(*args, **kwargs)
        with lock:
            while len(known) >= _ENTRIES:
                known.pop(next(iter(known)), None)
            known[key] = result, (args, kwargs)
        return result

    return wrapper


def _key(values: tuple[object, ...]) -> _Key:
    """Return for each scalar a tuple of it, so that it equals no identity, and for each other object its identity."""
    return tuple([(value,) if type(value) in _SCALARS else id(value) for value in values])
