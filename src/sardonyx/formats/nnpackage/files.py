"""The files of an NN package, in a folder or a ZIP archive. Nothing outside can be named.

    files = package_files(file)
    files.read("metadata/MANIFEST")
    files.model_file("model.tflite")          as a format reads it

A name is a path below the package, of parts that are separated by slashes; no part is "..", and no link leads out. Members of an
archive that are stored as they are are read in place; others are inflated, to a bounded multiple of the archive's size.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from pathlib import Path, PureWindowsPath
from typing import Protocol

from sardonyx.cancellation import check_cancelled
from sardonyx.errors import Fail, InvalidArgument, NoSuchFile
from sardonyx.formats.external_data import InMemory
from sardonyx.formats.files import Content, FileStamp, MemoryContent, open_content
from sardonyx.formats.model_format import ModelFile

__all__ = ["PackageFiles", "checked_name", "package_files"]

_MOST_RATIO = 100
_FREE_BYTES = 64 << 20
_MOST_MEMBERS = 1 << 16
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ENCRYPTED = 1


class PackageFiles(Protocol):
    """The files of a package."""

    def read(self, name: str) -> bytes:
        """Return the content of a file; raises NoSuchFile, InvalidArgument or Fail."""

    def model_file(self, name: str) -> ModelFile:
        """Return a model in the package as its format reads it; raises NoSuchFile, InvalidArgument or Fail."""

    @property
    def stamps(self) -> dict[Path, FileStamp]:
        """The files that were read, as they were then."""


def package_files(file: ModelFile) -> PackageFiles:
    """Return the files of a package; raises Fail for an archive that is damaged."""
    return _Folder(file.path) if file.path is not None and file.is_folder else _Archive(file)


def checked_name(name: str) -> str:
    """Return the name of a file in a package, its parts separated by slashes; raises InvalidArgument where it leads out of it."""
    windows = PureWindowsPath(name)
    if not name or "\0" in name or windows.drive or windows.root or ".." in windows.parts:
        raise InvalidArgument(f"the package names {name!r:.200}, which is no file below it; expected a relative path without '..'")
    return "/".join(windows.parts)


class _Folder:
    """A package that is a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._root = folder, Path(os.path.realpath(folder))
        self.stamps: dict[Path, FileStamp] = {}

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        _, content, _ = self._opened(name)
        return bytes(content.read(0, len(content)))

    def model_file(self, name: str) -> ModelFile:
        """Return a model in the package."""
        path, content, stamp = self._opened(name)
        return ModelFile(path, content, stamp)

    def _opened(self, name: str) -> tuple[Path, Content, FileStamp]:
        path = Path(os.path.realpath(self._folder / checked_name(name)))
        if not path.is_relative_to(self._root):
            raise InvalidArgument(f"the package names {name!r}, which leads by a link to {str(path)!r}, outside of it")
        content, self.stamps[path] = open_content(path, "file of a package", follow_links=False)
        return path, content, self.stamps[path]


class _Archive:
    """A package that is a ZIP archive."""

    def __init__(self, file: ModelFile) -> None:
        self._content = file.content
        self.stamps = dict(file.stamps)
        self._left_bytes = _MOST_RATIO * len(self._content) + _FREE_BYTES
        try:
            self._zip = zipfile.ZipFile(io.BufferedReader(_Stream(self._content)))
            members = self._zip.infolist()
        except _ERRORS as error:
            raise Fail(f"the package is a damaged ZIP archive: {error}") from error
        if len(members) > _MOST_MEMBERS:
            raise Fail(f"the package has {len(members)} files; at most {_MOST_MEMBERS} are allowed")
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in members:
            if member.orig_filename.endswith("/"):
                continue
            name = checked_name(member.orig_filename)
            if name in self._members:
                raise Fail(f"the package has two files {name!r}; expected different names")
            self._members[name] = member

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        content = self._member(name)
        return bytes(content.read(0, len(content)))

    def model_file(self, name: str) -> ModelFile:
        """Return a model in the package, with the files beside it in memory."""
        name = checked_name(name)
        folder = name.rpartition("/")[0]
        prefix = f"{folder}/" if folder else ""
        beside = {
            other[len(prefix) :]: self._member(other)
            for other in self._members
            if other != name
            and other.startswith(prefix)
            and not other.startswith("metadata/")
            and other.endswith((".data", ".bin"))
        }
        files = {other: content.read(0, len(content)) for other, content in beside.items()}
        return ModelFile(None, self._member(name), in_memory=InMemory(files=files))

    def _member(self, name: str) -> Content:
        member = self._members.get(checked_name(name))
        if member is None:
            raise NoSuchFile(f"the package has no file {name!r:.200}; it has {', '.join(sorted(self._members)[:20])}")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise InvalidArgument(f"the package has a link at {name!r}; expected a file")
        if member.flag_bits & _ENCRYPTED:
            raise Fail(f"the package's file {name!r} is encrypted")
        try:
            return self._stored(member) if member.compress_type == zipfile.ZIP_STORED else self._inflated(member)
        except _ERRORS as error:
            raise Fail(f"the package's file {name!r} is damaged: {error}") from error

    def _stored(self, member: zipfile.ZipInfo) -> Content:
        start = member.header_offset
        if not 0 <= start <= len(self._content) - _LOCAL_HEADER.size:
            raise zipfile.BadZipFile(f"its header would be at byte {start} of {len(self._content)}")
        signature, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(self._content.read(start, _LOCAL_HEADER.size))
        offset = start + _LOCAL_HEADER.size + name_bytes + extra_bytes
        if signature != b"PK\3\4" or member.compress_size != member.file_size or offset + member.file_size > len(self._content):
            raise zipfile.BadZipFile(f"its {member.file_size} bytes at byte {offset} are not in the archive")
        if isinstance(self._content, MemoryContent):
            return MemoryContent(self._content.read(offset, member.file_size), is_copy=self._content.is_copy)
        return _Slice(self._content, offset, member.file_size)

    def _inflated(self, member: zipfile.ZipInfo) -> Content:
        if member.file_size > self._left_bytes:
            raise Fail(
                f"the package's file {member.filename!r} would take {member.file_size} bytes, far more than the archive of "
                f"{len(self._content)}"
            )
        pieces, size_bytes = [], 0
        with self._zip.open(member) as stream:
            while piece := stream.read(1 << 20):
                check_cancelled()
                pieces.append(piece)
                size_bytes += len(piece)
                if size_bytes > member.file_size:
                    raise zipfile.BadZipFile("it is longer than the archive says")
        self._left_bytes -= size_bytes
        return MemoryContent(memoryview(b"".join(pieces)), is_copy=True)


_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a method of compression that zipfile lacks
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)
"""What Python's reader of archives raises for those that are damaged."""


class _Slice:
    """A part of a content."""

    def __init__(self, content: Content, offset: int, size_bytes: int) -> None:
        self._content, self._offset, self._size_bytes = content, offset, size_bytes

    def __len__(self) -> int:
        return self._size_bytes

    def read(self, offset: int, size_bytes: int) -> memoryview:
        """Return the bytes [offset, offset + size_bytes)."""
        return self._content.read(self._offset + offset, min(size_bytes, self._size_bytes - offset))


class _Stream(io.RawIOBase):
    """A content as a file that is open for reading."""

    def __init__(self, content: Content) -> None:
        super().__init__()
        self._content, self._position = content, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset from the start, from here or from the end."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._content)}[whence]
        if base + offset < 0:
            raise ValueError(f"seek to {base + offset}")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # RawIOBase takes any buffer; zipfile gives these two
        """Fill a buffer with what comes next; returns how many bytes."""
        count = max(min(len(buffer), len(self._content) - self._position), 0)
        buffer[:count] = self._content.read(self._position, count)
        self._position += count
        return count
