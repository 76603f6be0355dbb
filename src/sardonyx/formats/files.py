"""Files as memory: opened so that nothing but a regular file can be read, and mapped, not copied."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from pathlib import Path

from sardonyx.errors import Fail, InvalidArgument, NoSuchFile

__all__ = ["map_file"]

_MAP_BYTES = 4 << 20
"""Smaller files are read: that costs less than page faults, and a file that shrinks later cannot hurt."""
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def map_file(path: Path, what: str, *, follow_links: bool = True) -> memoryview:
    """The bytes of `path`, read-only; the mapping lives as long as a view of it.

    Opening never blocks, whatever `path` is.

    Args:
        path: the file.
        what: how messages call it, such as "model file".
        follow_links: whether `path` itself may be a symbolic link.

    Raises:
        NoSuchFile: nothing is there.
        InvalidArgument: it is a folder, a pipe, a device or a link that may not be followed.
        Fail: the system does not let us read it.
    """
    try:
        descriptor = os.open(path, _FLAGS | (0 if follow_links else getattr(os, "O_NOFOLLOW", 0)))
    except (OSError, ValueError) as error:
        raise _open_error(error, path, what) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgument(f"{what} {str(path)!r} is {_kind(status.st_mode)}; expected a regular file")
        if status.st_size < _MAP_BYTES:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return memoryview(file.read())
        return memoryview(_mapped(descriptor, status.st_size, path, what))
    except OSError as error:
        raise _open_error(error, path, what) from error
    finally:
        os.close(descriptor)


def _mapped(descriptor: int, size_bytes: int, path: Path, what: str) -> mmap.mmap:
    try:
        return mmap.mmap(descriptor, size_bytes, access=mmap.ACCESS_READ)
    except ValueError as error:  # the file has become shorter since its size was asked for
        raise Fail(f"{what} {str(path)!r} changes while it is read: {error}") from error


def _open_error(error: OSError | ValueError, path: Path, what: str) -> Exception:
    if isinstance(error, ValueError):
        return InvalidArgument(f"{what} {str(path)!r} is no file name: {error}")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NoSuchFile(f"{what} {str(path)!r} does not exist; check the path, relative ones start at {str(Path.cwd())!r}")
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
