"""What a user says about placement - by options, config entries and a TOML file - put together.

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

The config entries are `session.placement`, `.placement_profile`, `.placement_order`, `.placement_fall_through`, `.placement_file`
and `session.place`, which lists placements as `partition/placement.py` writes them; lists are separated by semicolons. The file
counts least, what was said by `SessionOptions.place` most.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.partition.placement import Pins, find_provider, parse_pins
from sardonyx.session.options import SessionOptions, config_flag
from sardonyx.session.placement.layer_assignment import read_layer_assignment
from sardonyx.session.providers import REFERENCE, ProviderRequest, Wanted, get_available_providers, requested

__all__ = ["PlacementChoice", "ask_in_order", "read_placement", "wanted_providers"]

_MODES = ("priority", "measured")
_TABLES = ("operators", "nodes", "indices", "annotations", "memory")


@dataclasses.dataclass(frozen=True, slots=True)
class PlacementChoice:
    """How nodes get their providers."""

    measured: bool = False
    """Whether a profile decides what the user leaves open; else the order of the providers does."""
    profile: str = ""
    """The profile's file."""
    order: tuple[str, ...] = ()
    """Providers in the order in which they are asked; empty for the session's own."""
    pins: Pins = dataclasses.field(default_factory=Pins)
    """What is placed by hand."""
    memory_limits: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Provider -> "KIB" or "KIB,FILE": how much memory it may take, and a file of what nodes need; from the file."""


def read_placement(options: SessionOptions, providers: Sequence[str] = ()) -> PlacementChoice:
    """Put together what `options` say, with the file that they name.

    Args:
        options: the session's.
        providers: the session's, which devices are looked for among.

    Raises:
        NoSuchFile: there is no such file.
        InvalidArgument: the file or an option is malformed; the message names it.
    """
    entries = options.session_config_entries
    path = options.placement_file or entries.get("session.placement_file", "")
    facts = _read_file(path) if path else {}
    mode = options.placement or entries.get("session.placement") or facts.get("placement") or "priority"
    if mode not in _MODES:
        raise InvalidArgument(f"placement is one of {', '.join(_MODES)}, got {mode!r}{_hint(mode, _MODES)}")
    profile = options.placement_profile or entries.get("session.placement_profile") or facts.get("profile") or ""
    if mode == "measured" and not profile:
        raise InvalidArgument(
            'placement = "measured" needs a profile: make one by `sardonyx profile --placement MODEL -o FILE` and name it in '
            "SessionOptions.placement_profile"
        )
    pins = read_layer_assignment(entries, providers).joined(_pins_of_file(facts))
    pins = pins.joined(parse_pins(_split(entries.get("session.place", "")))).joined(parse_pins(options.placements))
    falls = options.placement_fall_through or config_flag(options, "session.placement_fall_through")
    order = [_full_name(name) for name in _split(entries.get("session.placement_order", "")) or facts.get("order", ())]
    pins = dataclasses.replace(pins, fall_through=pins.fall_through or falls)
    return PlacementChoice(mode == "measured", profile, tuple(order), pins, facts.get("memory", {}))


def wanted_providers(
    providers: Sequence[ProviderRequest] | None, provider_options: Sequence[Mapping[str, Any]] | None, options: SessionOptions
) -> list[Wanted]:
    """Return the providers of a session in the order in which they are asked.

    Args:
        providers: the session's argument; None for those of the options, else those of the order, else the built-in ones.
        provider_options: options for each of `providers` (Any: by what the provider takes).
        options: the session's options.

    Raises:
        InvalidArgument: a request is malformed, or a name is unknown.
    """
    order = read_placement(options).order
    is_named = providers is not None or options.has_providers() or not order
    requests = requested(providers if is_named else order, provider_options, options.providers)
    return ask_in_order(requests, order) if is_named else requests


def ask_in_order(wanted: Sequence[Wanted], order: Sequence[str]) -> list[Wanted]:
    """`wanted` with the providers of `order` first; raises InvalidArgument for one that is not among them."""
    names = [name for name, _, _ in wanted]
    known = names if REFERENCE in names else [*names, REFERENCE]
    first = [find_provider(name, known, "the order of placement") for name in order]
    rank = {name: place for place, name in enumerate(dict.fromkeys([*first, *names]))}
    return sorted(wanted, key=lambda item: rank[item[0]])


def _full_name(name: str) -> str:
    longer = f"{name}ExecutionProvider"
    available = get_available_providers()
    return longer if name not in available and longer in available else name


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def _read_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The facts of a TOML file, each checked for its type; Any because a file may hold anything."""
    place = Path(path)
    if not place.is_file():
        raise NoSuchFile(f"there is no placement file {str(place)!r}")
    try:
        facts = tomllib.loads(place.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"placement file {place.name}: it is not valid TOML: {error}") from error
    for key, value in facts.items():
        if key not in _CHECKS:
            raise InvalidArgument(f"placement file {place.name}: there is no key {key!r}{_hint(key, list(_CHECKS))}")
        expected, fits = _CHECKS[key]
        if not fits(value):
            raise InvalidArgument(f"placement file {place.name}: {key} must be {expected}, got {value!r}")
    if "profile" in facts:
        facts["profile"] = str(place.parent / facts["profile"])
    return facts


def _pins_of_file(facts: Mapping[str, Any]) -> Pins:
    for text in facts.get("indices", {}):
        if not text.isdigit():
            raise InvalidArgument(f"placement file: an index is a number of at least 0, got {text!r}; names belong to [nodes]")
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


def _hint(text: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(text, known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"
