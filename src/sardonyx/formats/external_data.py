"""Tensor data in files beside the model: opened once per file, and confined to the model's folder.

A tensor names its data by `location` (a path below the folder), `offset` and `length`. All of it is checked when the model is
loaded, so that a run can never meet a missing byte:

    location    relative, no "..", no link that leads out of the folder (or, where the model file is itself a link, out of
                the folder of its target), a regular file
    offset      a number of bytes, 0 where left out
    length      a number of bytes, the rest that the tensor needs where left out; must equal what dtype and shape ask for
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument, InvalidGraph
from sardonyx.formats.files import Content, FileStamp, MemoryContent, open_content, read_file
from sardonyx.formats.page_sums import PageSums

__all__ = ["ExternalData", "InMemory"]

_MAX_DIGITS = 19


@dataclasses.dataclass(frozen=True, slots=True)
class InMemory:
    """What the caller has in memory of a model's external data, so that no file is needed for it."""

    files: Mapping[str, memoryview] = dataclasses.field(default_factory=dict)
    """Location -> the content of that file, as single bytes."""
    tensors: Mapping[str, memoryview] = dataclasses.field(default_factory=dict)
    """Initializer -> its data, as single bytes."""


class ExternalData:
    """The data files of one model while it is loaded; what it gave out stays valid afterwards."""

    def __init__(self, folder: Path | None, model_path: Path | None = None, in_memory: InMemory | None = None) -> None:
        """Prepare to read data files, touching none yet.

        Args:
            folder: where data files are looked for; None if the model has no place, which makes external data an error.
            model_path: the model's file; if it is a link into another folder, data may lie there too.
            in_memory: what is taken from memory, not from files.
        """
        self._in_memory = InMemory() if in_memory is None else in_memory
        self._folder, self._model_path = folder, model_path
        self._files: dict[str, Content] = {name: MemoryContent(held) for name, held in self._in_memory.files.items()}
        self._wholes: dict[str, tuple[memoryview, Array]] = {}
        self.stamps: dict[Path, FileStamp] = {}
        """The files that were opened, as they were then."""
        self._roots: tuple[Path, ...] | None = None

    @classmethod
    def beside(
        cls, path: Path | None, folder: str | os.PathLike[str] | None = None, in_memory: InMemory | None = None
    ) -> ExternalData:
        """Return the data files of a model: in `folder`, or else beside the model's file `path`."""
        if folder is not None:
            return cls(Path(folder), None, in_memory)
        return cls(None if path is None else path.parent, path, in_memory)

    def find(self, entries: Mapping[str, str], expected_bytes: int, what: str, name: str = "") -> tuple[Content, int]:
        """Return the file that one tensor's bytes are in, opened, and where they begin.

        Args:
            entries: `external_data` of the tensor.
            expected_bytes: what its dtype and shape ask for.
            what: how messages call the tensor.
            name: the tensor's name, by which its data may be in memory.

        Raises:
            NoSuchFile: the data file is missing.
            InvalidArgument: no folder was given, or the location is no regular file inside it.
            InvalidGraph: the entries are malformed, or the file is too short.
        """
        given = self._in_memory.tensors.get(name) if name else None
        if given is not None and len(given) == expected_bytes:
            return MemoryContent(given), 0
        location = entries.get("location", "")
        offset = _number(entries, "offset", what)
        length = _number(entries, "length", what)
        if length is not None and length != expected_bytes:
            raise InvalidGraph(
                f"{what}: its external data in {location!r} has length {length}, but its type and shape need {expected_bytes} bytes"
            )
        data = self._files.get(location)
        if data is None:
            path, name = self._path(location, what)
            data, self.stamps[path] = open_content(path, name, follow_links=False)
            self._files[location] = data
        start = offset or 0
        if start + expected_bytes > len(data):
            raise InvalidGraph(
                f"{what}: its external data ends at byte {start + expected_bytes} of {location!r} (offset {start}, "
                f"{expected_bytes} bytes), but that file has {len(data)} bytes; it was cut short or belongs to another model"
            )
        return data, start

    def place(self, entries: Mapping[str, str], size_bytes: int) -> tuple[str, int, int] | None:
        """Return location, offset and length of data that `find` returned; None where the caller had it in memory."""
        location = entries.get("location", "")
        if self._in_memory.tensors or location in self._in_memory.files:
            return None
        return location, _number(entries, "offset", location) or 0, size_bytes

    def path(self, location: str) -> Path:
        """Return the file at `location`, links followed, which need not be there; raises what `find` raises for other places."""
        return self._path(location, "data")[0]

    def whole(self, location: str, what: str) -> tuple[memoryview, Array]:
        """Return the bytes of a whole file, and the sums of its pages as far as they are known; raises what `find` raises."""
        found = self._wholes.get(location)
        if found is None:
            (path, name), sums = self._path(location, what), PageSums()
            data = read_file(path, name, sums.note)
            found = self._wholes[location] = data, sums.pages()
        return found

    def check(self, location: str, what: str) -> None:
        """Raise what `find` raises for a file that is missing or lies elsewhere."""
        path, name = self._path(location, what)
        open_content(path, name, follow_links=False)

    def _path(self, location: str, what: str) -> tuple[Path, str]:
        """Return the file at `location`, and how messages call it."""
        if self._folder is None:
            raise InvalidArgument(
                f"{what}: its data is in the external file {location!r}, but the model was not loaded from a path; "
                f"give the model by its path, or name the folder that holds {location!r}: the session config entry "
                f"session.model_external_initializers_file_folder_path, or external_dir of sardonyx.formats.onnx.load"
            )
        _check_location(location, what)
        path = Path(os.path.realpath(self._folder / location))
        if not any(path.is_relative_to(root) for root in self._allowed(self._folder)):
            raise InvalidArgument(
                f"{what}: External data path validation failed: its external data {location!r} leads by a link to {str(path)!r}, "
                "outside the model's folder "
                f"{str(self._folder)!r}; put the file itself into that folder"
            )
        return path, f"{what}: external data file"

    def _allowed(self, folder: Path) -> tuple[Path, ...]:
        if self._roots is None:
            places = [folder] if self._model_path is None else [folder, Path(os.path.realpath(self._model_path)).parent]
            self._roots = tuple(Path(os.path.realpath(place)) for place in places)
        return self._roots


def _check_location(location: str, what: str) -> None:
    """Refuse a location that could mean anything but a file below the folder, on any operating system."""
    if not location or "\0" in location:
        raise InvalidGraph(f"{what}: its external data has the location {location!r}; expected a file in the model's folder")
    windows = PureWindowsPath(location)
    if PurePosixPath(location).is_absolute() or windows.drive or windows.root or ".." in windows.parts:
        raise InvalidArgument(
            f"{what}: its external data {location!r} lies outside the model's folder; "
            f"expected a relative path without '..' (save the model with its data beside it)"
        )


def _number(entries: Mapping[str, str], key: str, what: str) -> int | None:
    text = entries.get(key, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise InvalidGraph(f"{what}: its external data has {key} {text[:40]!r}; expected a number of bytes, 0 or more")
    return int(text)
