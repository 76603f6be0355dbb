"""What takes long to make, on disk: compiled kernels, so that a session that was compiled once runs no LLVM again.

One file per object, `<key>.sxo`, in a folder that only its owner may change (`private_files`):

    "SARDONYX" | sha256 of the rest (32 bytes) | key (64 bytes) | object

An object with much data beside it has another form (`cached_blocks`).

Files are written under another name and renamed, so readers see all or nothing and the last of several writers wins. A read
marks its file as used; when the folder outgrows its bound (`config.cache_limit_bytes`), the files used longest ago go first.
Nothing that happens to the folder is an error: whatever cannot be read or written is compiled, and the event is reported, once
where it is the folder's fault.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Protocol, TypeVar

from sardonyx import config
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cached_blocks import Allocate, pieces_of, read_blocks
from sardonyx.digests import sha256
from sardonyx.private_files import PrivateFolder, folder_problem, make_private, open_private
from sardonyx.trace import event

__all__ = ["Cache", "DiskCache", "Report", "Survey", "shared_cache"]

Report = Callable[[str, str], None]
"""A callback for events: takes a name, such as `disk_cache.corrupt`, and details."""

_MAGIC = b"SARDONYX"
_MOST_FILES = 1 << 14
"""More are not kept, however small: each process reads the names of all when it first writes."""
_LARGE_BYTES = 1 << 22
"""No kernel is so large."""
_HEADER_BYTES = len(_MAGIC) + 32 + 64
_SUFFIX, _DRAFT_SUFFIX = ".sxo", ".tmp"
_PART_WITH_BLOCKS = 8
"""An object with data beside it may take one in so many of the bytes that all may: a few large models leave space for kernels."""

_T = TypeVar("_T")


def _silent(event: str, detail: str) -> None:
    """Tell nobody."""


class Cache(Protocol):
    """Where compiled objects are looked up and kept."""

    def load(self, key: str) -> bytes | None:
        """Return the object kept under `key`, or None if there is none that can be trusted."""

    def store(self, key: str, content: bytes) -> None:
        """Keep an object under `key`, where that is possible."""


@dataclasses.dataclass(frozen=True, slots=True)
class Survey:
    """What a folder of compiled objects holds."""

    problem: str
    """Why it is not used, or not written; "" where it is."""
    files: int
    """How many objects there are."""
    size_bytes: int
    """How large they are together, with what other writers have not finished."""
    damaged: int | None
    """How many cannot be used; None where their content was not looked at."""


class DiskCache:
    """A folder of compiled objects. May be used from many threads and processes at once."""

    def __init__(self, folder: Path, *, limit_bytes: int = config.DEFAULT_CACHE_BYTES, report: Report = _silent) -> None:
        """Use `folder`, which is made on the first write.

        Args:
            folder: where the files are; it is not used unless it is private, as `private_files` has it.
            limit_bytes: the size of all files together that a write keeps to.
            report: is called with hits, misses and everything that went wrong.
        """
        self.folder, self._prefix = folder, os.path.join(folder, "")
        self._limit_bytes = limit_bytes
        self._report = report
        self._total_bytes: int | None = None
        self._private = PrivateFolder(folder)
        self._known: set[tuple[str, str]] = set()

    def load(self, key: str) -> bytes | None:
        """Return the object kept under `key`, or None if there is none that can be trusted."""
        return self._load(key, lambda stream: _unpack(key, stream.read()))

    def load_blocks(self, key: str, allocate: Allocate) -> tuple[bytes, memoryview] | None:
        """Return what `store_blocks` kept under `key`, its blocks one behind the other in memory that `allocate` makes, or None.

        Raises MemoryError where there is no memory for them.
        """
        return self._load(key, lambda stream: read_blocks(stream, key, allocate))

    def store(self, key: str, content: bytes) -> None:
        """Keep an object under `key`; if that is not possible, report it and go on."""
        packed = _pack(key, content)
        self._store(key, [packed], len(packed), self._limit_bytes)

    def store_blocks(self, key: str, head: bytes, blocks: Sequence[memoryview]) -> None:
        """Keep an object with data beside it, which is written as it is; see `keeps_blocks` for how much that may be."""
        size_bytes = len(head) + sum(map(len, blocks))
        self._store(key, pieces_of(key, head, blocks), size_bytes, self._limit_bytes // _PART_WITH_BLOCKS)

    def keeps_blocks(self, size_bytes: int) -> bool:
        """Return whether so many bytes would be kept beside an object."""
        return size_bytes <= self._limit_bytes // _PART_WITH_BLOCKS

    def size_bytes(self, key: str) -> int:
        """Return how many bytes the file of `key` has, 0 where there is none."""
        try:
            return os.stat(self._path(key)).st_size
        except OSError:
            return 0

    def _load(self, key: str, read: Callable[[IO[bytes]], _T | None]) -> _T | None:
        path = self._path(key)
        try:
            if not self._is_private(self._private.problem()):
                return None
            with open_private(path) as stream:
                if isinstance(stream, str):
                    self._report("disk_cache.not_private", stream)
                    return None
                found = read(stream)
        except FileNotFoundError:
            self._report("disk_cache.miss", key)
            return None
        except OSError as error:
            self._report_once("disk_cache.unreadable", str(error))
            return None
        if found is None:
            self._report("disk_cache.corrupt", path)
            self._remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        self._report("disk_cache.hit", key)
        return found

    def _store(self, key: str, pieces: Iterable[bytes | memoryview], size_bytes: int, most_bytes: int) -> None:
        if size_bytes > most_bytes:
            self._report("disk_cache.too_large", f"{size_bytes} of {most_bytes} bytes")
            return
        try:
            if not self._is_private(make_private(self.folder)):
                return
            self._write(self._path(key), pieces)
            self._account(size_bytes)
        except OSError as error:
            self._report_once("disk_cache.unwritable", error.strerror or str(error))

    def survey(self, *, check: bool = False) -> Survey:
        """Return what the folder holds; with `check` every object is read."""
        try:
            problem = folder_problem(self.folder)
        except FileNotFoundError:
            return Survey(self._problem_above(), 0, 0, 0)
        except OSError as error:
            return Survey(str(error), 0, 0, None)
        problem = problem or self._write_problem()
        found = self._files()
        objects = [Path(path) for _, _, path in found if path.endswith(_SUFFIX)]
        damaged = sum(not _is_whole(path) for path in objects) if check else None
        return Survey(problem, len(objects), sum(size for _, size, _ in found), damaged)

    def clear(self) -> tuple[int, int]:
        """Delete all objects and drafts, and nothing else that lies there; return how many were deleted, and their bytes."""
        try:
            if not self._is_private(folder_problem(self.folder)):
                return 0, 0
            files = self._files()
        except OSError:
            return 0, 0
        for _, _, path in files:
            self._remove(path)
        gone = [size for _, size, path in files if not os.path.exists(path)]
        self._total_bytes = None
        return len(gone), sum(gone)

    def _write_problem(self) -> str:
        """Return why no file can be made in the folder; "" where one was made, and deleted again."""
        draft = self._new_draft()
        try:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            return f"{self.folder} cannot be written: {error.strerror}"
        self._remove(draft)
        return ""

    def _problem_above(self) -> str:
        """Return why a folder that is not there could not be made; "" where it could."""
        above = next((folder for folder in self.folder.parents if folder.exists()), None)
        if above is None or not os.access(above, os.W_OK | os.X_OK):
            return f"{self.folder} is not there, and cannot be made in {above}"
        return ""

    def _path(self, key: str) -> str:
        return f"{self._prefix}{key}{_SUFFIX}"

    def _is_private(self, problem: str) -> bool:
        if problem:
            self._report_once("disk_cache.not_private", problem)
        return not problem

    def _report_once(self, event: str, detail: str) -> None:
        """Report what is wrong with the folder itself, and holds for every object, once."""
        if (event, detail) not in self._known:
            self._known.add((event, detail))
            self._report(event, detail)

    def _new_draft(self) -> str:
        return f"{self._prefix}.{os.urandom(8).hex()}{_DRAFT_SUFFIX}"

    def _write(self, path: str, pieces: Iterable[bytes | memoryview]) -> None:
        draft = self._new_draft()
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(handle, "wb") as file:
                file.writelines(pieces)
            os.replace(draft, path)
        except BaseException:
            self._remove(draft)
            raise

    def _account(self, written_bytes: int) -> None:
        """Add up what this process wrote to what was there; look into the folder only at first and where the sum is too much."""
        if self._total_bytes is not None:
            self._total_bytes += written_bytes
        if self._total_bytes is None or self._total_bytes > self._limit_bytes:
            self._total_bytes = self._trim()

    def _trim(self) -> int:
        """Delete the files used longest ago, drafts of dead writers too, where there are too many; return the size of the rest.

        Large ones go first: they are weights, packed in a moment, which would else drive out many kernels. An eighth of the bound
        is made free then: else each write that follows would read the whole folder. Whatever else lies in the folder, such as
        the key of compiled contexts, is left alone.
        """
        files = self._files()
        total, count = sum(size for _, size, _ in files), len(files)
        if total <= self._limit_bytes and count <= _MOST_FILES:
            return total
        newest = max(files)  # which fits by itself
        for _, size, path in sorted(filter(newest.__ne__, files), key=lambda file: (file[1] < _LARGE_BYTES, file)):
            if total <= self._limit_bytes - self._limit_bytes // 8 and count <= _MOST_FILES - _MOST_FILES // 8:
                break
            self._remove(path)
            total, count = total - size, count - 1
        return total

    def _files(self) -> list[tuple[int, int, str]]:
        """Return for each object and draft when it was used, its bytes and its path."""
        files = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if not entry.name.endswith((_SUFFIX, _DRAFT_SUFFIX)):
                    continue
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    files.append((status.st_mtime_ns, status.st_size, entry.path))
        return files

    def _remove(self, path: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(path)


@functools.cache
def shared_cache() -> DiskCache | None:
    """Return the process's cache, which reports to `trace`; None where it is switched off."""
    folder = config.cache_dir()
    if folder is None:
        event(
            "disk_cache.off", detail="SARDONYX_CACHE_DIR is empty, or this user has no home; kernels are compiled in each process"
        )
        return None
    return DiskCache(folder, limit_bytes=config.cache_limit_bytes(), report=lambda name, detail: event(name, detail=detail))


def _is_whole(path: Path) -> bool:
    key = path.stem
    readers: tuple[Callable[[IO[bytes]], object], ...] = (
        lambda stream: _unpack(key, stream.read()),
        lambda stream: read_blocks(stream, key, lambda size_bytes: memoryview(bytearray(size_bytes))),
    )
    for read in readers:
        with contextlib.suppress(OSError), open_private(path) as stream:
            if not isinstance(stream, str) and read(stream) is not None:
                return True
    return False


def _pack(key: str, content: bytes) -> bytes:
    rest = key.encode() + content
    return _MAGIC + sha256(rest).digest() + rest


def _unpack(key: str, content: bytes) -> bytes | None:
    rest = content[len(_MAGIC) + 32 :]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : len(_MAGIC) + 32] != sha256(rest).digest():
        return None
    return content[_HEADER_BYTES:] if rest[:64] == key.encode() else None
