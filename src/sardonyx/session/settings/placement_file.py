"""The TOML file that says where operators run.

placement = "measured"                      or "priority", which is the default
profile = "profile.json"                    what `sardonyx profile --placement` wrote; relative to the file
order = ["CPUExecutionProvider"]            the order in which providers are asked, and which, where the session names none
fall_through = true                         a placed node that its provider declines goes to the others

[operators]
Conv = "CPUExecutionProvider"
[nodes]
"/encoder/Add" = "ReferenceExecutionProvider"
[indices]
7 = "ReferenceExecutionProvider"
[annotations]
encoder = "CPUExecutionProvider"
[memory]
MyExecutionProvider = "65536"               KiB that it may take; see `session/memory/limits.py`
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.forks import without_fork
from sardonyx.partition.pins import Pins
from sardonyx.session.settings.grammar import Limit, read_limit

__all__ = ["MODES", "PlacementFile", "hint", "read_placement_file"]

MODES = ("priority", "measured")
_TABLES = ("operators", "nodes", "indices", "annotations", "memory")


@dataclasses.dataclass(frozen=True, slots=True)
class PlacementFile:
    """What such a file says."""

    mode: str = ""
    """One of MODES; "" where it does not say."""
    profile: str = ""
    """The path of a profile, or ""."""
    order: tuple[str, ...] = ()
    """Names of providers."""
    pins: Pins = dataclasses.field(default_factory=Pins)
    """What is placed by hand."""
    limits: tuple[tuple[str, Limit], ...] = ()
    """Provider and how much memory it may take."""


def read_placement_file(path: str | os.PathLike[str]) -> PlacementFile:
    """Return what the file says.

    Raises:
        NoSuchFile: there is no such file.
        InvalidArgument: it is malformed; the message names the file and the key.
    """
    with without_fork():
        import tomllib  # which few sessions need

    place = Path(path)
    if not place.is_file():
        raise NoSuchFile(f"there is no placement file {str(place)!r}")
    try:
        facts = tomllib.loads(place.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"placement file {place.name}: it is not valid TOML: {error}") from error
    for key, value in facts.items():
        _check(place.name, key, value)
    return PlacementFile(
        mode=facts.get("placement", ""),
        profile=str(place.parent / facts["profile"]) if "profile" in facts else "",
        order=tuple(facts.get("order", ())),
        pins=_pins(place.name, facts),
        limits=tuple(
            (name, read_limit(f"placement file {place.name}: the memory limit of {name}", text))
            for name, text in facts.get("memory", {}).items()
        ),
    )


def hint(text: str, known: Sequence[str]) -> str:
    """Return the end of a message about a misspelt name: the nearest known one, or all."""
    with without_fork():
        import difflib  # which only messages need

    close = difflib.get_close_matches(text, known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"


def _check(file: str, key: str, value: object) -> None:
    if key not in _CHECKS:
        raise InvalidArgument(f"placement file {file}: there is no key {key!r}{hint(key, list(_CHECKS))}")
    expected, fits = _CHECKS[key]
    if not fits(value):
        raise InvalidArgument(f"placement file {file}: {key} must be {expected}, got {value!r}")


def _pins(file: str, facts: Mapping[str, Any]) -> Pins:
    for text in facts.get("indices", {}):
        if not text.isdigit():
            raise InvalidArgument(
                f"placement file {file}: an index is a number of at least 0, got {text!r}; names belong to [nodes]"
            )
    return Pins(
        operators=facts.get("operators", {}),
        nodes=facts.get("nodes", {}),
        indices={int(text): provider for text, provider in facts.get("indices", {}).items()},
        annotations=facts.get("annotations", {}),
        fall_through=facts.get("fall_through", False),
    )


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


_CHECKS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "placement": ("a text", lambda value: isinstance(value, str)),
    "profile": ("a path", lambda value: isinstance(value, str)),
    "order": ("a list of texts", lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value)),
    "fall_through": ("true or false", lambda value: isinstance(value, bool)),
    **dict.fromkeys(_TABLES, ("a table of texts", _is_table)),
}
"""Key -> what it must be, and whether a value is."""
