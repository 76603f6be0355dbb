"""Files that only this user can have written: a folder is trusted as far as nobody else can change what a path leads to.

    /home       root's, closed to others           each folder on the way belongs to this user or to the system, and others can
    /home/me    this user's, closed to others      write into none of them, unless it is sticky, as /tmp is; so does each link
    …/sardonyx  this user's own, closed to others  the last folder, and each file in it that is read

The owner of the root folder counts as the system: in a container it need not be user 0. Where the operating system has no user
numbers, every folder is private.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from sardonyx.forks import without_fork

__all__ = ["PrivateFolder", "folder_problem", "make_private", "open_private", "read_private"]

_MOST_LINKS = 40
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_FLAGS |= getattr(os, "O_BINARY", 0)
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_ADVICE = "set SARDONYX_CACHE_DIR to a folder that only you can write, below folders that only you and the system can write"


def folder_problem(folder: Path) -> str:
    """Return who else can put files into `folder` or another folder in its place, "" where nobody can.

    Raises:
        OSError: the folder is not there, is no folder, or cannot be read.
    """
    if not hasattr(os, "geteuid"):
        folder.stat()
        return ""
    return _problem_behind(folder, list(_way(folder)))


def _problem_behind(folder: Path, way: Sequence[tuple[str, os.stat_result]]) -> str:
    """Return what `folder_problem` does, with the way to the folder at hand."""
    problem = _problem_of(way)
    if problem:
        return problem
    status = os.stat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{folder} is no folder")
    if status.st_uid != os.geteuid():
        return f"{folder} belongs to user {status.st_uid}, and this is user {os.geteuid()}; {_ADVICE}"
    if status.st_mode & _WRITABLE:
        return f"{folder} can be written by others (mode {stat.S_IMODE(status.st_mode):o}); {_ADVICE}"
    return ""


class PrivateFolder:
    """A folder that is looked at again and again: while nothing on the way to it changes, it stays as private as it was."""

    def __init__(self, folder: Path) -> None:
        """Have looked at nothing yet."""
        self._folder = folder
        self._known: list[tuple[str, tuple[int, ...]]] = []

    def problem(self) -> str:
        """Return what `folder_problem` does; raises OSError as it does."""
        if self._known and all(_mark(os.lstat(place)) == mark for place, mark in self._known):
            return ""
        self._known = []
        if not hasattr(os, "geteuid"):
            return folder_problem(self._folder)
        way = list(_way(self._folder))
        problem = _problem_behind(self._folder, way)
        if not problem:
            self._known = [(place, _mark(status)) for place, status in way]
        return problem


def _mark(status: os.stat_result) -> tuple[int, ...]:
    """Return what of a folder or link decides who may change it, and which it is."""
    return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid


def make_private(folder: Path) -> str:
    """Make `folder`, and what is missing above it, for this user alone; return what `folder_problem` does.

    Nothing is made below a folder that others can change.

    Raises:
        OSError: it cannot be made, or is there as something else.
    """
    missing = []
    for place in (folder, *folder.parents):
        if os.path.lexists(place):
            break
        missing.append(place)
    if missing and hasattr(os, "geteuid"):
        problem = _way_problem(missing[-1].parent)
        if problem:
            return problem
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
    return folder_problem(folder)


def read_private(path: Path, *, secret: bool = False) -> bytes | str:
    """Return the bytes of a regular file of this user in a folder that `folder_problem` found private, or why it is not read.

    Args:
        path: the file; a symbolic link is not followed.
        secret: whether others must not even be able to read it.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    with open_private(path, secret=secret) as opened:
        return opened if isinstance(opened, str) else opened.read()


@contextlib.contextmanager
def open_private(path: str | Path, *, secret: bool = False) -> Iterator[IO[bytes] | str]:
    """Provide such a file, open for reading without a buffer, or why it is not read.

    Arguments and errors are those of `read_private`.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        problem = _file_problem(path, os.fstat(descriptor), secret=secret)
        if problem:
            yield problem
        else:
            with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
                yield stream
    finally:
        os.close(descriptor)


def _file_problem(path: str | Path, status: os.stat_result, *, secret: bool) -> str:
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is no regular file; remove it"
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_uid != os.geteuid():
        return f"{path} belongs to user {status.st_uid}, and this is user {os.geteuid()}; remove it"
    if mode & (0o077 if secret else _WRITABLE):
        return f"{path} can be {'read or ' if secret else ''}written by others (mode {mode:o}); remove it"
    return ""


def _way_problem(folder: Path) -> str:
    """Return which folder or link on the way to `folder`, itself among them, others can change, or ""."""
    return _problem_of(_way(folder))


def _problem_of(way: Iterable[tuple[str, os.stat_result]]) -> str:
    trusted = {0, os.geteuid(), os.stat("/").st_uid}
    for place, status in way:
        if status.st_uid not in trusted:
            return f"{place} belongs to user {status.st_uid}, who can put another folder there; {_ADVICE}"
        is_open = stat.S_ISDIR(status.st_mode) and status.st_mode & _WRITABLE and not status.st_mode & stat.S_ISVTX
        if is_open and not _is_group_of_one(status):
            return f"{place} can be written by others (mode {stat.S_IMODE(status.st_mode):o}); {_ADVICE}"
    return ""


def _way(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each folder that leads to `folder`, and each link that is followed, from the root on.

    Raises OSError where one is missing.
    """
    place, links = "", 0  # without a slash at the end, so that of the root it is empty
    yield "/", os.lstat("/")
    rest = _parts(os.path.join(os.getcwd(), folder))
    while rest:
        name = rest.pop()
        if name == "..":
            place = place.rpartition("/")[0]
            continue
        status = os.lstat(f"{place}/{name}")
        yield f"{place}/{name}", status
        if not stat.S_ISLNK(status.st_mode):
            place = f"{place}/{name}"
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(f"{folder} leads through more than {_MOST_LINKS} links")
        target = os.readlink(f"{place}/{name}")
        place = "" if target.startswith("/") else place
        rest += _parts(target)


def _parts(path: str) -> list[str]:
    """Return the names on a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _is_group_of_one(status: os.stat_result) -> bool:
    """Return whether no class but the group may write, and that is this user's own group, in which nobody else is.

    Systems that give each user such a group let it write into new folders by default.
    """
    if status.st_mode & stat.S_IWOTH or status.st_gid != os.getegid():
        return False
    with without_fork():
        import grp
        import pwd

    try:
        group, user = grp.getgrgid(status.st_gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and user.pw_gid == status.st_gid and set(group.gr_mem) <= {user.pw_name}
