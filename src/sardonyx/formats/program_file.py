"""A compiled partition in bytes: what it is for, a graph in text form, arrays and objects.

    objects | arrays | header (JSON) | digest (32 bytes) | length of the header (8) | "SXPROGRAM 4"

The header says where everything lies, counted from the first byte, so that programs that follow one another in a file may have
parts in common (`program_archive`). Each object and array begins at a multiple of 64 bytes, so that those of a mapped file need not
be copied.

The digest is the SHA-256 of header, objects and all arrays but weights: of all that may be run, and all that may decide an
address, such as indices, axes, pads and sizes. Weights, which are arrays of floats or narrow integers of at least 1 KiB, decide
numbers only. They have codes of their own in the header: a SHA-256 of all elements, one of sums of them, which takes a twentieth
of the time, and one of samples, whose time does not depend on the size; who checks which is `program_copy`'s matter.

A weight may lie elsewhere, in the model that was compiled: the header then has its name there, and the CRC-32 of its elements, or
null where they are known to be right. In that model it may have another shape, or a narrower type, from which it is converted.

    [kind, shape]                           absent      [kind, shape, begin, size]                               under the digest
    [kind, shape, name, CRC-32 or null]     elsewhere   [kind, shape, begin, size, SHA-256, of sums, of samples] a weight
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.digests import sha256
from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.errors import EPFail, SardonyxError
from sardonyx.formats.page_sums import code_of_sums
from sardonyx.ir import Graph, Value
from sardonyx.ir.text import parse_graph, print_graph

__all__ = [
    "ALIGNMENT",
    "BlockLocator",
    "Blocks",
    "Json",
    "Opened",
    "ProgramFile",
    "aligned",
    "array_at",
    "block_at",
    "bytes_of",
    "damaged",
    "digest_of",
    "head_of",
    "is_program",
    "open_program",
    "placed_anew",
    "read_program",
    "sample_of",
    "write_program",
]

ALIGNMENT = 64
"""What each block begins at a multiple of."""

_MAGIC = b"SXPROGRAM 4"
_TAIL_BYTES = 32 + 8 + len(_MAGIC)
_WEIGHT_BYTES = 1024
_NARROW = (DataType.INT8, DataType.UINT8, DataType.INT4, DataType.UINT4, DataType.INT2, DataType.UINT2)
_SAMPLES, _SAMPLE_BYTES = 4, 2048

Json: TypeAlias = Any
"""What JSON holds: numbers, texts, truth values, None, and lists and mappings of these; a file may hold any of them anywhere."""

BlockLocator = Callable[[memoryview, str], list[Json]]
"""Where a block goes, given with the SHA-256 in hexadecimal of a weight, "" for other blocks: [where it begins, its length], or,
for a weight, [its name in the model, its CRC-32 or None]."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramFile:
    """What such bytes hold."""

    about: dict[str, Json]
    """What the program is for."""
    graph: Graph
    """The partition's nodes and the types of its values; constants are inputs."""
    arrays: tuple[Array, ...]
    """Arrays in order; one that is absent is a zero of its shape, without memory."""
    absent: frozenset[int]
    """Which of the arrays are absent."""
    objects: Mapping[str, memoryview]
    """Machine code, or whatever else a provider compiles to, by name."""


def write_program(
    about: Mapping[str, Json],
    graph: Graph,
    arrays: Sequence[Array] = (),
    absent: Sequence[int] = (),
    objects: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return the bytes that `read_program` reads; of arrays that are `absent` only types and shapes are kept."""
    blocks = Blocks()
    held = objects or {}
    placed = {name: blocks.add(content) for name, content in held.items()}
    entries = [_entry(array, None if index in absent else blocks) for index, array in enumerate(arrays)]
    header = {"about": dict(about), "graph": print_graph(graph, max_elements=None), "objects": placed, "arrays": entries}
    sealed = (bytes_of(array) for array, entry in zip(arrays, entries, strict=True) if len(entry) == 4)
    return b"".join((*blocks.contents, head_of(header, (*held.values(), *sealed))))


def is_program(content: memoryview) -> bool:
    """Return whether `content` ends as what `write_program` writes."""
    return len(content) >= _TAIL_BYTES and bytes(content[-len(_MAGIC) :]) == _MAGIC


def placed_anew(content: memoryview, place: BlockLocator) -> bytes | None:
    """Return all of a program but its blocks, which lie where `place` puts them; None where `content` is no program.

    Raises:
        EPFail: the program is damaged.
    """
    if not is_program(content):
        return None
    header, sealed, _ = open_program(content)
    header["objects"] = {name: place(block_at(content, *entry), "") for name, entry in header["objects"].items()}
    header["arrays"] = [_array_anew(content, entry, place) for entry in header["arrays"]]
    return head_of(header, sealed)


def digest_of(content: memoryview) -> bytes:
    """Return the digest that saved bytes carry, which `read_program` checks; of bytes of another kind that of all of them."""
    if not is_program(content):
        return sha256(content).digest()
    return bytes(content[-_TAIL_BYTES:][:32])


def read_program(content: memoryview, weights: Iterable[Value] = ()) -> ProgramFile:
    """Read what `write_program` wrote; arrays and objects are views of `content` where that is aligned.

    Args:
        content: the bytes.
        weights: constants by the names of the arrays that lie in the model that was compiled.

    Raises:
        EPFail: the bytes are damaged, incomplete, or something else, or a weight is missing or another than it was.
    """
    if not is_program(content):
        raise EPFail(
            f"the {len(content)} bytes of a compiled partition do not end as one: they were cut short, written by another version, "
            "or are something else; make the context anew"
        )
    header = open_program(content).header
    given = {value.name: value.constant.numpy() for value in weights if value.constant is not None}
    try:
        objects = {name: block_at(content, *entry) for name, entry in header["objects"].items()}
        arrays = tuple(_array_of(content, given, *entry) for entry in header["arrays"])
        absent = frozenset(index for index, entry in enumerate(header["arrays"]) if len(entry) == 2)
        return ProgramFile(header["about"], parse_graph(header["graph"]), arrays, absent, objects)
    except EPFail:
        raise
    except (KeyError, TypeError, ValueError, SardonyxError) as error:
        raise damaged(error) from error


def bytes_of(array: Array) -> memoryview:
    """Return the elements of an array, in order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def sample_of(block: memoryview) -> str:
    """Return the SHA-256 of 8 KiB of a weight, in 4 parts from its beginning to its end, or of all where it is no larger."""
    spare, digest = len(block) - _SAMPLE_BYTES, sha256()
    for number in range(_SAMPLES):
        begin = spare * number // (_SAMPLES - 1) if spare > _SAMPLE_BYTES * (_SAMPLES - 1) else _SAMPLE_BYTES * number
        digest.update(block[begin : begin + _SAMPLE_BYTES])
    return digest.hexdigest()


class Opened(NamedTuple):
    """The parts of a program that are under the digest, which was compared."""

    header: dict[str, Json]
    """The header."""
    sealed: Sequence[bytes | memoryview]
    """Objects, then arrays that are no weights, in the header's order."""
    digest: bytes
    """The digest."""


def open_program(content: memoryview, *, copies: bool = False) -> Opened:
    """Return the header of a program and all blocks that are as they were written.

    Args:
        content: the program.
        copies: whether blocks are copied before the digest is compared, since others may be changing `content`.

    Raises:
        EPFail: the program is damaged.
    """
    tail, end = bytes(content[-_TAIL_BYTES:]), len(content) - _TAIL_BYTES
    length = int.from_bytes(tail[32 : -len(_MAGIC)], "little")
    try:
        if length > end:
            raise ValueError(f"its header has {length} bytes, but {end} are there")
        text = bytes(content[end - length : end])
        header: dict[str, Json] = json.loads(text)
        views = [block_at(content, *entry) for entry in _sealed(header)]
        sealed = [bytes(view) for view in views] if copies else views
        if _digest(text, sealed) != tail[:32]:
            raise ValueError("some of its bytes changed")
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise damaged(error) from error
    return Opened(header, sealed, tail[:32])


def block_at(content: memoryview, begin: int, size: int) -> memoryview:
    """Return `size` bytes from `begin` on; raises ValueError where they are not there."""
    if not 0 <= begin <= begin + size <= len(content):
        raise ValueError(f"{size} bytes from {begin} on lie outside of its {len(content)} bytes")
    return content[begin : begin + size]


def array_at(content: memoryview, kind: str, shape: list[int], begin: int, size: int) -> Array:
    """Return an array that lies in a program, as a view where that is aligned; raises ValueError where it does not fit."""
    dtype = DataType[kind.upper()].numpy
    if size != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of {kind}{shape} has {size} bytes")
    found = np.frombuffer(block_at(content, begin, size), np.uint8).view(dtype).reshape(shape)
    return found if found.ctypes.data % ALIGNMENT == 0 else aligned(found)


class Blocks:
    """Blocks one after another, each padded to the alignment."""

    def __init__(self) -> None:
        self.contents: list[bytes | memoryview] = []
        self._size_bytes = 0

    def add(self, content: bytes | memoryview) -> list[int]:
        """Put `content` last; returns where it begins, and its length."""
        begin, padding = self._size_bytes, -len(content) % ALIGNMENT
        self.contents += [content, bytes(padding)]
        self._size_bytes += len(content) + padding
        return [begin, len(content)]


def _entry(array: Array, blocks: Blocks | None) -> list[Json]:
    """Return the header's entry of an array, which is absent where there are no `blocks`."""
    dtype = DataType.from_numpy(array.dtype)
    entry = [str(dtype), list(array.shape)]
    if blocks is None:
        return entry
    content = bytes_of(array)
    place = blocks.add(content)
    if not _is_weight(dtype, len(content)):
        return [*entry, *place]
    return [*entry, *place, sha256(content).hexdigest(), code_of_sums(content, place[0]), sample_of(content)]


def _is_weight(dtype: DataType, size_bytes: int) -> bool:
    """Return whether elements of an array decide numbers only: wide integers may be indices, and few floats may be scales."""
    return size_bytes >= _WEIGHT_BYTES and (is_float(dtype) or dtype in _NARROW)


def _sealed(header: Mapping[str, Json]) -> list[list[int]]:
    """Return where the blocks lie that are under the digest; raises ValueError where one is not that should be."""
    sealed = list(header["objects"].values())
    for kind, shape, *where in header["arrays"]:
        if len(where) == 2 and not isinstance(where[0], str):
            sealed.append(where)
        elif where:
            dtype, form = DataType[kind.upper()], (2 if isinstance(where[0], str) else 5)
            if len(where) != form or not _is_weight(dtype, math.prod(shape) * dtype.numpy.itemsize):
                raise ValueError(f"an array of {kind}{shape} is not under the digest")
    return sealed


def head_of(header: Mapping[str, Json], sealed: Iterable[bytes | memoryview]) -> bytes:
    """Return all of a program that follows its blocks, of which `sealed` are under the digest."""
    text = json.dumps(header).encode()
    return text + _digest(text, sealed) + len(text).to_bytes(8, "little") + _MAGIC


def _digest(text: bytes, sealed: Iterable[bytes | memoryview]) -> bytes:
    parts = list(sealed)
    digest = sha256(text, more_bytes=sum(map(len, parts)))
    for content in parts:
        digest.update(content)
    return digest.digest()


def damaged(error: Exception) -> EPFail:
    """Return the error for a program in which `error` was met."""
    return EPFail(f"a compiled partition is damaged ({type(error).__name__}: {error}); make the context anew")


def _array_anew(content: memoryview, entry: list[Json], place: BlockLocator) -> list[Json]:
    kind, shape, *where = entry
    if not where or isinstance(where[0], str):
        return entry
    begin, size, *codes = where
    block = block_at(content, begin, size)
    placed = place(block, codes[0] if codes else "")
    if not codes or not isinstance(placed[0], int):
        return [kind, shape, *placed]
    return [kind, shape, *placed, codes[0], code_of_sums(block, placed[0]), codes[2]]


def _array_of(
    content: memoryview, weights: Mapping[str, Array], kind: str, shape: list[int], begin: int | str | None = None, *more: Json
) -> Array:
    dtype = np.dtype(DataType[kind.upper()].numpy)
    if begin is None:
        return np.broadcast_to(np.zeros((), dtype), shape)
    if isinstance(begin, str):
        return _weight(weights, begin, dtype, tuple(shape), *more)
    return array_at(content, kind, shape, begin, more[0])


def _weight(
    weights: Mapping[str, Array], name: str, dtype: np.dtype[np.generic], shape: tuple[int, ...], code: int | None
) -> Array:
    """Return a weight of the model, whose elements may be known by another shape there, or in a narrower type."""
    found = weights.get(name)
    if found is None:
        raise EPFail(f"a compiled partition needs the weight {name!r} of the model that it was made from, which is not given")
    is_narrower = found.size == math.prod(shape) and found.itemsize < dtype.itemsize
    content = bytes_of(found.astype(dtype) if is_narrower else found)
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise EPFail(
            f"the weight {name!r} is {found.dtype}{list(found.shape)}, but {dtype}{list(shape)} was compiled; give the model that "
            "the context was made from, or make the context anew"
        )
    if code is not None and zlib.crc32(content) != code:
        raise EPFail(
            f"the weight {name!r} has other elements than when it was compiled; give the model that the context was made from, or "
            "make the context anew"
        )
    return np.frombuffer(content, np.uint8).view(dtype).reshape(shape)


def aligned(array: Array) -> Array:
    """Return a copy that begins at a multiple of the alignment."""
    raw = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % ALIGNMENT
    copy = raw[skip : skip + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
