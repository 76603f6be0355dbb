"""Files as bytes: opened so that nothing but a regular file can be read, and read piece by piece when the pieces are needed.

    content = open_content(path, "model file")
    content.read(offset, size_bytes)        a copy in memory of this process's own: nothing that happens to the file changes it

A file that changes while it is open is an error at the next read: what was read before would not go with what comes. With
`SARDONYX_MAP_WEIGHTS=1` large files are mapped instead, and must stay as they are.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from sardonyx import config
from sardonyx.cancellation import check_cancelled
from sardonyx.errors import Fail, InvalidArgument, NoSuchFile, SardonyxError
from sardonyx.forks import new_lock

__all__ = [
    "Content",
    "FileContent",
    "FileStamp",
    "MemoryContent",
    "map_file",
    "new_buffer",
    "open_content",
    "read_file",
    "replaced",
    "stamp_of",
]

_SMALL_BYTES = 4 << 20
"""Smaller files are read as a whole."""
_MAPPED_BUFFER_BYTES = 1 << 20
"""Larger buffers are mappings of their own, which go back to the system when they are freed."""
_HUGE_PAGE_BYTES = 4 << 20
"""Larger buffers may be in huge pages: they take a page fault for 2 MiB, not for 4 KiB."""
_MOST_READ_BYTES = 4 << 20
"""How much is read at a time: a load can only be ended, and signals are only heard, in between."""
_NOTED_BYTES = 1 << 18
"""How much is read at a time where somebody looks at each piece: it is in the processor's cache then."""
_SEEKING = new_lock()
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

FileStamp = tuple[int, int, int, int]
"""What shows that a file was written to or replaced: size in bytes, time of its last change in nanoseconds, inode and device."""


class Content(Protocol):
    """Bytes of known number that are had by pieces."""

    def __len__(self) -> int:
        """Return the number of bytes."""

    def read(self, offset: int, size_bytes: int) -> memoryview:
        """Return the bytes [offset, offset + size_bytes), read-only and all within the content; raises Fail where they changed."""


class MemoryContent:
    """Bytes that are in memory; what is read are views of them."""

    def __init__(self, view: memoryview, *, is_copy: bool = False) -> None:
        """Take `view`, of single bytes; `is_copy` says that they were read from a file, so that nobody else keeps them."""
        self._view, self.is_copy = view, is_copy

    def __len__(self) -> int:
        return len(self._view)

    def read(self, offset: int, size_bytes: int) -> memoryview:
        """Return the view of [offset, offset + size_bytes)."""
        return self._view[offset : offset + size_bytes]


class FileContent:
    """Bytes of an open file, which is closed when nobody refers to it any more. May be used from many threads."""

    def __init__(self, descriptor: int, stamp: FileStamp, name: str, *, may_grow: bool = False) -> None:
        """Take over `descriptor`, of a file that had `stamp` when it was opened.

        Args:
            descriptor: of the file.
            stamp: what the file was then.
            name: what messages call it.
            may_grow: whether others may write behind its end.
        """
        self._descriptor, self._stamp, self._name, self._may_grow = descriptor, stamp, name, may_grow

    def __len__(self) -> int:
        return self._stamp[0]

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # modules may be gone when the interpreter ends
        close(self._descriptor)

    def read(self, offset: int, size_bytes: int, note: Callable[[memoryview], None] | None = None) -> memoryview:
        """Return a copy of [offset, offset + size_bytes); `obj` of the view is the buffer, which can be referred to weakly.

        Args:
            offset: where to begin.
            size_bytes: how much to read.
            note: called with each piece as soon as it is there.

        Raises:
            Fail: the file was written to since it was opened, or the system cannot read it.
        """
        buffer = new_buffer(size_bytes)
        try:
            filled = _fill(self._descriptor, offset, memoryview(buffer), note)
            status = os.fstat(self._descriptor)
        except SardonyxError:  # the load was ended
            raise
        except OSError as error:
            raise Fail(f"{self._name} cannot be read: {error.strerror or error}") from error
        has_grown = self._may_grow and status.st_size > self._stamp[0]
        if filled != size_bytes or not (has_grown or stamp_of(status) == self._stamp):
            raise Fail(
                f"{self._name} was written to while it was being loaded: it had {self._stamp[0]} bytes when it was opened, and has "
                f"{status.st_size} now; write a new file beside it, rename that over the old one (os.replace), and load again"
            )
        return memoryview(buffer).toreadonly()


def stamp_of(status: os.stat_result) -> FileStamp:
    """Return the stamp of the file that has `status`."""
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev


def open_content(path: Path, what: str, *, follow_links: bool = True) -> tuple[Content, FileStamp]:
    """Return the bytes of `path`, and the stamp that the file has now. Opening never blocks, whatever `path` is.

    Args:
        path: the file.
        what: how messages call it, such as "model file".
        follow_links: whether `path` itself may be a symbolic link.

    Raises:
        NoSuchFile: nothing is there.
        InvalidArgument: it is a folder, a pipe, a device or a link that may not be followed.
        Fail: the system does not let us read it, or it is written to at the same time.
    """
    descriptor, status = _opened(path, what, follow_links)
    content = FileContent(descriptor, stamp_of(status), f"{what} {str(path)!r}")
    if status.st_size >= _SMALL_BYTES:
        return (MemoryContent(map_file(path, what, follow_links=follow_links)) if config.maps_weights() else content), stamp_of(
            status
        )
    return MemoryContent(memoryview(bytes(content.read(0, len(content)))), is_copy=True), stamp_of(status)


def read_file(path: Path, what: str, note: Callable[[memoryview], None] | None = None) -> memoryview:
    """Return a copy of the bytes of `path`, which may be no link, and behind whose end others may write meanwhile.

    With `SARDONYX_MAP_WEIGHTS=1` it is `map_file`, and nothing is noted. `note` is that of `FileContent.read`; other arguments, and
    errors, are those of `open_content`.
    """
    if config.maps_weights():
        return map_file(path, what, follow_links=False)
    descriptor, status = _opened(path, what, follow_links=False)
    content = FileContent(descriptor, stamp_of(status), f"{what} {str(path)!r}", may_grow=True)
    return content.read(0, len(content), note)


def map_file(path: Path, what: str, *, follow_links: bool = True) -> memoryview:
    """Return the bytes of `path`, read-only, shared with all who map it; the file must not be written to while a view lives.

    Arguments and errors are those of `open_content`.
    """
    descriptor, status = _opened(path, what, follow_links)
    try:
        if status.st_size < _SMALL_BYTES:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return memoryview(file.read())
        return memoryview(_mapped(descriptor, status.st_size, path, what))
    except OSError as error:
        raise _open_error(error, path, what) from error
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Provide a new file that takes the place of `path` when the block succeeds, and vanishes when it fails."""
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _opened(path: Path, what: str, follow_links: bool) -> tuple[int, os.stat_result]:
    try:
        descriptor = os.open(path, _FLAGS | (0 if follow_links else getattr(os, "O_NOFOLLOW", 0)))
    except (OSError, ValueError) as error:
        raise _open_error(error, path, what) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise InvalidArgument(f"{what} {str(path)!r} is {_kind(status.st_mode)}; expected a regular file")
    return descriptor, status


def new_buffer(size_bytes: int, *, huge_from_bytes: int = _HUGE_PAGE_BYTES) -> Any:  # typing has no name for what has a buffer
    """Return new memory of single bytes, in huge pages where it is as large as said; raises MemoryError where there is none."""
    if size_bytes < _MAPPED_BUFFER_BYTES or not hasattr(mmap, "MAP_PRIVATE"):
        return np.empty(size_bytes, np.uint8)
    try:
        buffer = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size_bytes} bytes of a model's weights") from error
    if size_bytes >= huge_from_bytes and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            buffer.madvise(mmap.MADV_HUGEPAGE)
    return buffer


def _fill(descriptor: int, offset: int, view: memoryview, note: Callable[[memoryview], None] | None = None) -> int:
    """Read from `offset` on until `view` is full or the file ends; returns how many bytes were read."""
    filled, most = 0, _MOST_READ_BYTES if note is None else _NOTED_BYTES
    while filled < len(view):
        check_cancelled()
        count = _read_at(descriptor, offset + filled, view[filled : filled + most])
        if count == 0:
            break
        if note is not None:
            note(view[filled : filled + count])
        filled += count
    return filled


def _read_at(descriptor: int, offset: int, view: memoryview) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [view], offset)
    with _SEEKING:  # one position for all threads
        os.lseek(descriptor, offset, os.SEEK_SET)
        data = os.read(descriptor, len(view))
    view[: len(data)] = data
    return len(data)


def _mapped(descriptor: int, size_bytes: int, path: Path, what: str) -> mmap.mmap:
    try:
        return mmap.mmap(descriptor, size_bytes, access=mmap.ACCESS_READ)
    except ValueError as error:  # the file has become shorter since its size was asked for
        raise Fail(f"{what} {str(path)!r} changes while it is read: {error}") from error


def _open_error(error: OSError | ValueError, path: Path, what: str) -> Exception:
    if isinstance(error, ValueError):
        return InvalidArgument(f"{what} {str(path)!r} is no file name: {error}")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        is_url = path.parts[:1] in (("http:",), ("https:",), ("s3:",), ("gs:",))
        here = f"check the path, relative ones start at {str(Path.cwd())!r}"
        return NoSuchFile(f"{what} {str(path)!r} does not exist; {'nothing is fetched by URL, download it' if is_url else here}")
    if error.errno == errno.ELOOP:
        return InvalidArgument(f"{what} {str(path)!r} is a symbolic link that may not be followed")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Fail(f"{what} {str(path)!r} may not be read ({error.strerror}); grant read permission on it and its folders")
    return Fail(f"{what} {str(path)!r} cannot be read: {error.strerror}")


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((name for test, name in kinds if test(mode)), "no regular file")
