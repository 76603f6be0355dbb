"""What options of sessions and of runs have in common: named texts, and checked properties."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.arguments import as_text
from sardonyx.errors import InvalidArgument
from sardonyx.session.option_types import typed
from sardonyx.spelling import nearest

__all__ = ["ConfigEntries"]


class ConfigEntries:
    """Named text options; attributes that a class does not have cannot be set, as in onnxruntime."""

    __slots__ = ("__weakref__", "_entries")

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def __setattr__(self, name: str, value: object) -> None:
        owner = type(self).__name__
        try:
            object.__setattr__(self, name, typed(owner, name, value))
        except AttributeError as error:
            known = [attribute for attribute in dir(self) if not attribute.startswith("_")]
            close = "" if name in known else nearest(name, known)
            hint = f"; did you mean {close!r}?" if close else ""
            raise AttributeError(f"{error}{hint}", name=name, obj=self) from None

    def _add(self, key: str, value: str, check: Callable[[str, str], None]) -> None:
        if not all(isinstance(text, str) for text in (key, value)):
            raise TypeError(f"the key and the value of a config entry are texts, got {key!r:.100} and {value!r:.100}")
        if not key or len(key) > 1024:
            raise InvalidArgument(f"a config entry needs a key of 1 to 1024 characters, got {key!r:.100}")
        check(key, value)
        self._entries[key] = value

    def _get(self, key: str) -> str:
        if as_text("key", key) not in self._entries:
            known = ", ".join(sorted(self._entries)) or "none"
            raise InvalidArgument(f"{type(self).__name__} does not have configuration with key: {key}; added so far: {known}")
        return self._entries[key]
