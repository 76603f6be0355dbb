"""The bindings of a program that were used last, by what a run knows of its inputs."""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from sardonyx.forks import new_lock

__all__ = ["LatestBindings"]

_MOST_BINDINGS = 64

_Key = TypeVar("_Key", bound=Hashable)
_Binding = TypeVar("_Binding")


class LatestBindings(Generic[_Key, _Binding]):
    """Keeps some bindings; any number of threads may ask at a time."""

    def __init__(self) -> None:
        """Hold none."""
        self._lock = new_lock()
        self._latest: tuple[_Key, _Binding] | None = None
        self._bindings: collections.OrderedDict[_Key, _Binding] = collections.OrderedDict()

    def of(self, key: _Key, make: Callable[[_Key], _Binding]) -> _Binding:
        """Return the binding for `key`, which `make` makes where there is none; the one used longest ago gives way to it."""
        latest = self._latest
        if latest is not None and latest[0] == key:
            return latest[1]
        with self._lock:
            found = self._bindings.pop(key, None)
            if found is not None:
                self._bindings[key] = found  # as the latest
        if found is None:
            found = make(key)
            with self._lock:
                self._bindings[key] = found
                if len(self._bindings) > _MOST_BINDINGS:
                    self._bindings.popitem(last=False)
        self._latest = key, found
        return found
