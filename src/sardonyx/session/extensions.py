"""Rewrite rules and passes of other packages, by entry point.

    [project.entry-points."sardonyx.rules"]           [project.entry-points."sardonyx.passes"]
    ours = "our_package.rules:RULES"                  ours = "our_package.passes:MERGE_THINGS"

An entry point of rules names a Rule or several; one of passes names a pass or several. They take part in every session; each can
be disabled by its name.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sardonyx.errors import OptimizationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["installed_passes", "installed_rules"]

OnError = Callable[[str], None]
"""Told what is wrong with an entry point; it may raise."""

_RULES, _PASSES = "sardonyx.rules", "sardonyx.passes"


def installed_rules(on_error: OnError) -> tuple[Any, ...]:
    """The rules of installed packages; Any, as `optimize` is not imported before a session is made."""
    return _installed(_RULES, on_error)


def installed_passes(on_error: OnError) -> tuple[Any, ...]:
    """The passes of installed packages."""
    return _installed(_PASSES, on_error)


def _installed(group: str, on_error: OnError) -> tuple[Any, ...]:
    items, errors = _loaded(group, tuple(sys.path))
    for message in errors:
        on_error(message)
    return items


@functools.lru_cache(maxsize=8)
def _loaded(group: str, path: tuple[str, ...]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """What the packages on `path`, which is sys.path, name in a group, and what is wrong; a change of the path is a new search."""
    from importlib.metadata import entry_points

    items: list[Any] = []
    errors: list[str] = []
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            items += _load(group, point)
        except OptimizationError as error:
            errors.append(str(error))
    return tuple(items), tuple(errors)


def _load(group: str, point: EntryPoint) -> list[Any]:
    package = point.dist.name if point.dist is not None else "an installed package"
    named = f"{point.value}, which {package} names as {point.name!r} of {group}"
    try:
        loaded = point.load()
    except Exception as error:
        text = f"{named}, cannot be loaded: {type(error).__name__}: {error}; repair or uninstall the package"
        raise OptimizationError(text) from error
    items = list(loaded) if isinstance(loaded, (list, tuple)) else [loaded]
    for item in items:
        if not isinstance(getattr(item, "name", None), str) or not hasattr(item, "replace" if group == _RULES else "run"):
            raise OptimizationError(f"{named}, holds {item!r}, which is none; repair or uninstall the package")
    return items
