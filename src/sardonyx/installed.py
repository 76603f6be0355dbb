"""Packages that are installed beside this one, and what they name as entry points.

    installed_points("sardonyx.formats", search_path())

Programs put `pathlib.Path`, None and other things into `sys.path`, which imports pass over; so does what is here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sardonyx.forks import without_fork

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["installed_points", "search_path"]


def search_path() -> tuple[str, ...]:
    """Return the folders of `sys.path` that imports search."""
    entries: list[object] = list(sys.path)
    return tuple(entry for entry in entries if isinstance(entry, str))


def installed_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, by name.

    Args:
        group: such as "sardonyx.providers".
        path: the `search_path`.
    """
    with without_fork():
        from importlib.metadata import distributions, entry_points  # a quarter of the time of `import sardonyx`

        if len(path) == len(sys.path):
            found = tuple(entry_points(group=group))
        else:
            found = tuple(
                point for package in distributions(path=list(path)) for point in package.entry_points if point.group == group
            )
    return tuple(sorted(found, key=lambda point: point.name))
