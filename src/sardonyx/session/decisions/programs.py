"""The programs of a model, kept with packed weights for the next process that makes a session of the same file.

A record (`record.py`) says what was decided of a model, whatever its weights; programs hold what was made of weights too, so they
are found by the file besides. A file of some megabytes is known by all of its bytes, a larger one by what nobody changes without a
trace: its size, inode, device and times, and by samples of its bytes.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.digests import blake2b, sha256
from sardonyx.disk_cache import shared_cache
from sardonyx.dtypes import Array, DataType
from sardonyx.formats.files import new_buffer, stamp_of
from sardonyx.formats.opened import OpenedModel
from sardonyx.formats.page_sums import PAGE_BYTES, PageSums
from sardonyx.formats.plain_graph import KeptProgram, Plain
from sardonyx.held_memory import HeldKind, union_bytes
from sardonyx.provider import Program, Provider, ReportsMemory
from sardonyx.session.decisions.data_files import DataFile
from sardonyx.session.decisions.key import key_of
from sardonyx.session.decisions.known_files import SettledFile
from sardonyx.session.decisions.sharing import Identity
from sardonyx.session.settings.settings import Settings

__all__ = [
    "KeepsForProcesses",
    "KeptPrograms",
    "find_programs",
    "known_file_key",
    "load_known",
    "programs_key",
    "restored_programs",
    "sample",
    "sample_file",
    "store_known",
    "store_programs",
    "with_data",
]

_ALIGNMENT = 64
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_HUGE_PAGES_BYTES = 4 << 20
"""From how many bytes on constants are in huge pages: to clear one takes a quarter of the time of its 512 small ones."""
_SMALL_BYTES = 1 << 20
"""The most bytes of programs that lie twice: by the content of their model, and by its file."""
_SAMPLES, _SAMPLE_BYTES = 64, 256
_SUMMED_BYTES = 1 << 20
"""Up to how many bytes a file's sample is of all of it: to copy and sum them takes no longer than to ask for each piece."""
_PIECE_BYTES = 64 << 10
"""How much is summed at a time."""
_PIECES: list[memoryview] = []
"""Memory for a piece of a file, which the next file is read to: new memory takes longer than what is read to it."""
_LENGTH_BYTES = 8
_DTYPES = {int(dtype): dtype for dtype in DataType}


@runtime_checkable
class KeepsForProcesses(Protocol):
    """A provider of this package whose programs can be made again without their partitions."""

    def keep(self, program: Program) -> KeptProgram | None:
        """Return what a program is made of; None where that cannot be kept."""

    def restore(self, kept: KeptProgram) -> Program:
        """Return the program that was kept by a provider with the same `decision_key`; an error where it is damaged."""


@dataclasses.dataclass(frozen=True, slots=True)
class KeptPrograms:
    """The programs of a model, and what it is besides."""

    outline: Plain
    """What `outline_of` says of it."""
    facts: Sequence[tuple[str, tuple[str, ...]]]
    """For each provider that remembers claims its name, and its `decision_facts`."""
    programs: Sequence[tuple[str, KeptProgram]]
    """The programs in the order of the plan, each with the name of its provider."""
    size_bytes: int
    """How much memory they take, about."""


def restored_programs(kept: KeptPrograms, providers: Sequence[Provider]) -> list[Program]:
    """Return the programs of a model; raises LookupError, TypeError or ValueError where they do not go with these providers."""
    by_name: dict[str, Any] = {provider.name: provider for provider in providers}  # of whom some remember claims and some restore
    for name, facts in kept.facts:
        by_name[name].take_facts(facts)
    return [by_name[name].restore(program) for name, program in kept.programs]


def programs_key(identity: Identity, opened: OpenedModel) -> str | None:
    """Return the key of a model's programs; None where nothing tells its file from another one that takes its place.

    Args:
        identity: by which sessions of a process share what is built.
        opened: the model's file.
    """
    key, _, stamp, content = identity
    if isinstance(content, bytes):
        about = content.hex()
    elif hasattr(os, "geteuid"):  # where the time of an entry's last change is one that programs cannot set
        about = f"{stamp} {content} {sample(opened.content.read, len(opened.content))}"
    else:
        return None
    return sha256(f"programs {key} {about}".encode()).hexdigest()


def with_data(key: str, data: Sequence[DataFile]) -> str | None:
    """Return the key of the programs of a model with these files beside its own; None where one of them cannot be read."""
    if not data:
        return key
    pieces = [sample_file(item.file) for item in data]
    if None in pieces or not hasattr(os, "geteuid"):
        return None
    about = [(item.location, *item.file[1:], piece) for item, piece in zip(data, pieces, strict=True)]
    return sha256(f"{key} with {about}".encode(errors="surrogatepass")).hexdigest()


def known_file_key(file: SettledFile, pieces: str, settings: Settings, providers: Sequence[Provider]) -> str | None:
    """Return the key of what is kept of a file; None where nothing tells it from another one that takes its place.

    Args:
        file: the file.
        pieces: the `sample` of it.
        settings: of the session.
        providers: of the session.
    """
    _, stamp, changed_ns = file
    return key_of(f"file {stamp} {changed_ns} {pieces}", settings, providers) if hasattr(os, "geteuid") else None


def find_programs(key: str) -> KeptPrograms | None:
    """Return the programs kept under `key`, their constants in memory of this process; None where there are none."""
    cache = shared_cache()
    found = None if cache is None else cache.load_blocks(key, _memory)
    return None if found is None else _programs_of(*found)


def _programs_of(head: bytes | memoryview, block: memoryview) -> KeptPrograms:
    data = np.frombuffer(block, np.uint8)
    outline, facts, programs = marshal.loads(head)
    made = [(name, KeptProgram(plain, _arrays(data, places))) for name, plain, places in programs]
    return KeptPrograms(outline, facts, made, len(head) + len(block))


def store_known(name: str, about: Plain, key: str | None) -> None:
    """Keep what is known of a file under `name`, with the programs of `key` where they are small: so one file is read."""
    cache = shared_cache()
    if cache is not None:
        found = None if key is None or cache.size_bytes(key) > _SMALL_BYTES else cache.load_blocks(key, _memory)
        head, block = (b"", memoryview(b"")) if found is None else found
        first = marshal.dumps(about)
        cache.store_blocks(name, len(first).to_bytes(_LENGTH_BYTES, "little") + first + (head or b""), [block])


def load_known(name: str) -> tuple[Plain, KeptPrograms | None] | None:
    """Return what `store_known` kept, and the programs that lie beside it; None where there is nothing.

    Raises:
        EOFError, TypeError, ValueError: it is not as it was written.
    """
    cache = shared_cache()
    found = None if cache is None else cache.load_blocks(name, _memory)
    if found is None:
        return None
    whole = memoryview(found[0])
    end = _LENGTH_BYTES + int.from_bytes(whole[:_LENGTH_BYTES], "little")
    about, head = marshal.loads(whole[_LENGTH_BYTES:end]), whole[end:]
    return about, _programs_of(head, found[1]) if head else None


def store_programs(
    key: str,
    outline: Callable[[], Plain],
    facts: Sequence[tuple[str, tuple[str, ...]]],
    programs: Sequence[tuple[Provider, Program]],
) -> bool:
    """Keep programs, with what `KeptPrograms` has besides; return whether all of them can be kept, and are small enough.

    The outline is made only then. What it raises is raised.
    """
    cache, kept = shared_cache(), []
    if cache is None:
        return False
    if not cache.keeps_blocks(sum(_constant_bytes(program) for _, program in programs)):
        return False
    size_bytes = 0
    for provider, program in programs:
        found = provider.keep(program) if isinstance(provider, KeepsForProcesses) else None
        size_bytes += 0 if found is None else sum(array.nbytes for array in found.arrays)
        if found is None or not cache.keeps_blocks(size_bytes):
            return False
        kept.append((provider.name, found))
    end, about = 0, []
    for name, item in kept:
        places = []
        for array in item.arrays:
            places.append((int(DataType.from_numpy(array.dtype)), tuple(map(int, array.shape)), end))
            end = _aligned(end + array.nbytes)
        about.append((name, item.plain, tuple(places)))
    try:
        head = marshal.dumps((outline(), tuple(facts), tuple(about)))
    except ValueError:  # a text or a number is of a type of somebody's own
        return False
    cache.store_blocks(key, head, [block for _, item in kept for array in item.arrays for block in _blocks(array)])
    return True


def _constant_bytes(program: Program) -> int:
    """Return how many bytes of constants a program holds, as it says itself; large ones are not worth the work of keeping them."""
    held = program.memory_held() if isinstance(program, ReportsMemory) else ()
    return union_bytes(block for block in held if block.kind is not HeldKind.CODE)


def _memory(size_bytes: int) -> memoryview:
    """Return memory that begins at a cache line: vectors that cross lines are read at half the speed."""
    buffer = np.frombuffer(new_buffer(size_bytes + _ALIGNMENT, huge_from_bytes=_HUGE_PAGES_BYTES), np.uint8)
    begin = -buffer.__array_interface__["data"][0] % _ALIGNMENT
    return buffer[begin : begin + size_bytes].data


def _blocks(array: Array) -> Iterator[memoryview]:
    """Yield the bytes of an array, and what is missing to a multiple of the alignment."""
    if array.nbytes:
        yield array.reshape(-1).view(np.uint8).data
    yield memoryview(bytes(_aligned(array.nbytes) - array.nbytes))


def _arrays(data: Array, places: Sequence[tuple[int, tuple[int, ...], int]]) -> list[Array]:
    data.flags.writeable = False  # and so are parts of it
    dtypes = {number: _DTYPES[number].numpy for number in {number for number, _, _ in places}}
    return [np.ndarray(shape, dtypes[number], data, begin) for number, shape, begin in places]


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGNMENT) * _ALIGNMENT


def sample_file(file: SettledFile) -> str | None:
    """Return the `sample` of a file; None where it is no regular file, or cannot be read, or is another one by now."""
    path, stamp, _ = file
    if not hasattr(os, "pread"):
        return None
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or stamp_of(status) != stamp:
            return None
        if status.st_size > _SUMMED_BYTES or not hasattr(os, "preadv"):
            return sample(lambda place, size_bytes: os.pread(descriptor, size_bytes, place), status.st_size)
        with _piece() as piece:
            return sample(lambda place, count: piece[: os.preadv(descriptor, [piece[:count]], place)], status.st_size)
    except OSError:
        return None
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _piece() -> Iterator[memoryview]:
    try:
        piece = _PIECES.pop()
    except IndexError:
        piece = memoryview(bytearray(_PIECE_BYTES))
    yield piece
    _PIECES[:] = [piece]


def sample(read: Callable[[int, int], bytes | memoryview], size_bytes: int) -> str:
    """Return a digest of some pieces of a file, spread over all of it; of a small one, of the sums of its pages.

    Args:
        read: returns a number of bytes, the second, from a place, the first.
        size_bytes: how long the file is.
    """
    if size_bytes <= _SUMMED_BYTES:
        sums, piece = PageSums(), memoryview(b"")
        for begin in range(0, size_bytes, _PIECE_BYTES):
            piece = memoryview(read(begin, min(_PIECE_BYTES, size_bytes - begin)))
            sums.note(piece)
        return blake2b(bytes(sums.pages()) + bytes(piece[len(piece) - len(piece) % PAGE_BYTES :])).hexdigest()
    last = size_bytes - _SAMPLE_BYTES
    return blake2b(b"".join([read(last * number // (_SAMPLES - 1), _SAMPLE_BYTES) for number in range(_SAMPLES)])).hexdigest()
