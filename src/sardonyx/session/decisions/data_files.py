"""Files beside a model's own that hold elements of its tensors: what tells each from a file that takes its place.

A file that somebody wrote to or replaced differs in its size, inode, device or times, of which programs cannot set that of the last
change of its entry; a link that leads elsewhere leads to another file. What changed less than two seconds before the session began
is not told from later changes (`known_files.py`), so nothing of it is kept or shared but decisions, which read it again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import SardonyxError
from sardonyx.forks import without_fork
from sardonyx.formats.files import FileStamp
from sardonyx.session.decisions.known_files import SettledFile, settled_file

if TYPE_CHECKING:
    from sardonyx.formats.external_data import ExternalData

__all__ = ["DataFile", "are_as_before", "data_files", "data_files_again", "data_paths", "locations_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class DataFile:
    """A file beside a model, as it was before the model was read."""

    location: str
    """How tensors of the model name it."""
    place: str
    """Where it was looked for: an absolute path, in which links are not followed."""
    file: SettledFile
    """The file that was found there."""


def locations_of(places: Iterable[object]) -> list[str]:
    """Return the locations among the places of tensors: numbers, or a location, an offset and a length."""
    return sorted({place[0] for place in places if isinstance(place, tuple)})


def data_files(
    locations: Sequence[str], path: Path | None, folder: str | None, stamps: Mapping[Path, FileStamp], began_ns: int
) -> tuple[DataFile, ...] | None:
    """Return the files of a model that was read; None where one of them may have changed since, or where there are others.

    Args:
        locations: by which tensors name them.
        path: the model's own file.
        folder: where they are; None for beside the model.
        stamps: what all files were that the model was read from.
        began_ns: when it was begun to be read.
    """
    if set(stamps) <= {path}:
        return ()
    found = _found(locations, path, folder, began_ns)
    known = None if found is None else {Path(item.file[0]): item.file[1] for item in found}
    return found if known == {own: stamp for own, stamp in stamps.items() if own != path} else None


def data_paths(locations: Sequence[str], path: Path | None, folder: str | None) -> list[Path]:
    """Return the files that a model names by `locations`, links followed, as far as it may have them."""
    found: list[Path] = []
    if not locations:
        return found
    external = _external(path, folder)
    for location in locations:
        with contextlib.suppress(SardonyxError):
            found.append(external.path(location))
    return found


def data_files_again(locations: Sequence[str], path: Path | None, folder: str | None) -> tuple[DataFile, ...] | None:
    """Return the files that a model names by `locations` now; None where one has changed just now, or may not be read."""
    return _found(locations, path, folder, None)


def are_as_before(files: Iterable[DataFile]) -> bool:
    """Return whether all files are what they were, in the same places."""
    return all(settled_file(os.path.realpath(item.place)) == item.file for item in files)


def _found(locations: Sequence[str], path: Path | None, folder: str | None, began_ns: int | None) -> tuple[DataFile, ...] | None:
    external, found = _external(path, folder), []
    own = folder if folder is not None or path is None else path.parent
    for location in locations:
        try:
            file = settled_file(external.path(location), began_ns)
        except SardonyxError:  # whoever reads the model says what is wrong
            return None
        if file is None or own is None:
            return None
        found.append(DataFile(location, os.path.abspath(os.path.join(own, location)), file))
    return tuple(found)


def _external(path: Path | None, folder: str | None) -> ExternalData:
    with without_fork():
        from sardonyx.formats.external_data import ExternalData  # which few models need

    return ExternalData.beside(path, folder)
