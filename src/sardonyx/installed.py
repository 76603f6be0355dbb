"""Packages that are installed beside this one, and what they name as entry points.

    installed_points("sardonyx.formats", search_path())

Programs put `pathlib.Path`, None and other things into `sys.path`, which imports pass over; so does what is here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sardonyx.forks import without_fork

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["installed_points", "installed_version", "points_in", "recorded_version", "search_path"]


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
    if not _may_name(group, path):
        return ()
    with without_fork():
        from importlib.metadata import distributions, entry_points  # a quarter of the time of `import sardonyx`

        if len(path) == len(sys.path):
            found = tuple(entry_points(group=group))
        else:
            found = tuple(
                point for package in distributions(path=list(path)) for point in package.entry_points if point.group == group
            )
    return tuple(sorted(found, key=lambda point: point.name))


def _may_name(group: str, path: tuple[str, ...]) -> bool:
    """Return whether a package may have entry points of a group: no record in the folders of `path` has its name.

    Packages in archives and those that somebody's finder finds are left to `importlib.metadata`, which reads them.
    """
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    try:
        found = [points_in(folder) for folder in path if os.path.exists(folder or ".")]
    except OSError:
        return True
    return any(points is None or group.encode() in points for points in found)


def points_in(folder: str) -> bytes | None:
    """Return what the records of packages in a folder of the `search_path` say of entry points; None for an archive or an egg.

    They are read once until the folder changes. Raises OSError where the folder cannot be read.
    """
    place = os.path.abspath(folder)
    return _points_in(place, os.stat(place).st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _points_in(folder: str, _changed_ns: int) -> bytes | None:
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else [".egg"]
    if any(name.endswith(".egg") for name in names):
        return None
    found = []
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            with contextlib.suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                found.append(file.read())
    return b"\n[]\n".join(found)


def installed_version(package: str) -> str | None:
    """Return the version of a package of modules of the same name; None where no record of its installation is found.

    The record's folder, such as `onnx-1.22.0.dist-info`, lies beside the package and tells the version in its name; reading the
    record itself, by `importlib.metadata`, takes 20 ms and 2 MiB more.
    """
    try:
        spec = find_spec(package)
    except ValueError:  # a module that was put into sys.modules without a spec
        spec = None
    folders = [Path(folder).parent for folder in (spec and spec.submodule_search_locations) or ()]
    records = [record for folder in folders for record in folder.glob(f"{package}-*.dist-info")]
    if len(records) == 1:
        return records[0].name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return recorded_version(package)


def recorded_version(package: str) -> str | None:
    """Return the version that the record of an installation tells; None where there is none on the `search_path`."""
    with without_fork():
        from importlib.metadata import PackageNotFoundError, distributions, version

        path = search_path()
        try:
            if len(path) == len(sys.path):
                return version(package)
            return next((record.version for record in distributions(name=package, path=list(path))), None)
        except PackageNotFoundError:
            return None
