"""Rewrite rules and passes of other packages, by entry point.

    [project.entry-points."sardonyx.rules"]           [project.entry-points."sardonyx.passes"]
    ours = "our_package.rules:RULES"                  ours = "our_package.passes:MERGE_THINGS"

An entry point of rules names a Rule or several; one of passes names a pass or several. They take part in every session; each can
be disabled by its name.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from sardonyx.errors import OptimizationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["installed_passes", "installed_rules"]

_RULES, _PASSES = "sardonyx.rules", "sardonyx.passes"


def installed_rules() -> tuple[Any, ...]:
    """The rules of installed packages; Any, as `optimize` is not imported before a session is made."""
    return _loaded(_RULES, tuple(sys.path))


def installed_passes() -> tuple[Any, ...]:
    """The passes of installed packages."""
    return _loaded(_PASSES, tuple(sys.path))


@functools.lru_cache(maxsize=8)
def _loaded(group: str, path: tuple[str, ...]) -> tuple[Any, ...]:
    """What the packages on `path`, which is sys.path, name in a group: a change of it is a new search."""
    from importlib.metadata import entry_points

    found: list[Any] = []
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        loaded = _load(group, point)
        found.extend(loaded if isinstance(loaded, (list, tuple)) else [loaded])
    return tuple(found)


def _load(group: str, point: EntryPoint) -> Any:
    try:
        loaded = point.load()
    except Exception as error:
        package = point.dist.name if point.dist is not None else "an installed package"
        raise OptimizationError(
            f"{point.value}, which {package} names as {point.name!r} of {group}, cannot be loaded: "
            f"{type(error).__name__}: {error}; repair or uninstall the package"
        ) from error
    for item in loaded if isinstance(loaded, (list, tuple)) else [loaded]:
        if not isinstance(getattr(item, "name", None), str) or not hasattr(item, "replace" if group == _RULES else "run"):
            raise OptimizationError(f"{point.value}, named as {point.name!r} of {group}, holds {item!r}, which is none of these")
    return loaded
