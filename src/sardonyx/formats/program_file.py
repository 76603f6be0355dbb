"""A compiled partition in bytes: what it is for, a graph in text form, arrays and objects.

    objects | arrays | header (JSON) | digest (32 bytes) | length of the header (8) | "SXPROGRAM 2"

The header says where everything lies, counted from the first byte, so that programs that follow one another in a file may have
parts in common (`program_archive`). Each object and array begins at a multiple of 64 bytes, so that those of a mapped file need not
be copied. The digest is the SHA-256 of header and objects: all that may be run, and all that says where arrays lie and how large
they are. The elements of arrays are not in it, as those of a model's weights are in no digest: the time to load does not depend on
them.

An array may lie elsewhere, in the model that was compiled: the header then has its name there, and the CRC-32 of its elements. In
that model it may have another shape, or a narrower type, from which it is converted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import EPFail, SardonyxError
from sardonyx.ir import Graph, Value
from sardonyx.ir.text import parse_graph, print_graph

__all__ = [
    "ALIGNMENT",
    "Place",
    "ProgramFile",
    "bytes_of",
    "digest_of",
    "is_program",
    "placed_anew",
    "read_program",
    "weight_names",
    "write_program",
]

ALIGNMENT = 64
"""What each block begins at a multiple of."""

_MAGIC = b"SXPROGRAM 2"
_TAIL_BYTES = 32 + 8 + len(_MAGIC)

Place = Callable[[memoryview, bool], list[Any]]
"""Where a block goes, which is an array or not: [where it begins, its length], or [its name in the model, its CRC-32]."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramFile:
    """What such bytes hold."""

    about: dict[str, Any]
    """What the program is for; JSON's types, hence Any."""
    graph: Graph
    """The partition's nodes and the types of its values; constants are inputs."""
    arrays: tuple[Array, ...]
    """Arrays in order; one that is absent is a zero of its shape, without memory."""
    absent: frozenset[int]
    """Which of the arrays are absent."""
    objects: Mapping[str, memoryview]
    """Machine code, or whatever else a provider compiles to, by name."""


def write_program(
    about: Mapping[str, Any],
    graph: Graph,
    arrays: Sequence[Array] = (),
    absent: Sequence[int] = (),
    objects: Mapping[str, bytes] | None = None,
) -> bytes:
    """The bytes that `read_program` reads; of arrays that are `absent` only types and shapes are kept."""
    blocks = _Blocks()
    held = objects or {}
    placed = {name: blocks.add(content) for name, content in held.items()}
    places = [[] if index in absent else blocks.add(bytes_of(array)) for index, array in enumerate(arrays)]
    kinds = [[str(DataType.from_numpy(array.dtype)), list(array.shape)] for array in arrays]
    header = {
        "about": dict(about),
        "graph": print_graph(graph, max_elements=None),
        "objects": placed,
        "arrays": [[*kind, *place] for kind, place in zip(kinds, places, strict=True)],
    }
    return b"".join((*blocks.contents, _head(header, held.values())))


def is_program(content: memoryview) -> bool:
    """Whether `content` ends as what `write_program` writes."""
    return len(content) >= _TAIL_BYTES and bytes(content[-len(_MAGIC) :]) == _MAGIC


def placed_anew(content: memoryview, place: Place) -> bytes | None:
    """All of a program but its blocks, which lie where `place` puts them; None where `content` is no program.

    Raises:
        EPFail: the program is damaged.
    """
    if not is_program(content):
        return None
    header = _header(content)
    objects = {name: _block(content, *entry) for name, entry in header["objects"].items()}
    header["objects"] = {name: place(block, False) for name, block in objects.items()}
    header["arrays"] = [_array_anew(content, entry, place) for entry in header["arrays"]]
    return _head(header, objects.values())


def digest_of(content: memoryview) -> bytes:
    """The digest that saved bytes carry, which `read_program` checks; of bytes of another kind that of all of them."""
    if not is_program(content):
        return hashlib.sha256(content).digest()
    return bytes(content[-_TAIL_BYTES:][:32])


def weight_names(content: memoryview) -> list[str]:
    """The arrays of a program that lie in the model that was compiled; raises EPFail where the program is damaged."""
    if not is_program(content):
        return []
    return [entry[2] for entry in _header(content)["arrays"] if len(entry) == 4 and isinstance(entry[2], str)]


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
    header = _header(content)
    given = {value.name: value.constant.numpy() for value in weights if value.constant is not None}
    try:
        objects = {name: _block(content, *entry) for name, entry in header["objects"].items()}
        arrays = tuple(_array_of(content, given, *entry) for entry in header["arrays"])
        absent = frozenset(index for index, entry in enumerate(header["arrays"]) if len(entry) == 2)
        return ProgramFile(header["about"], parse_graph(header["graph"]), arrays, absent, objects)
    except EPFail:
        raise
    except (KeyError, TypeError, ValueError, SardonyxError) as error:
        raise _damaged(error) from error


def bytes_of(array: Array) -> memoryview:
    """The elements of an array, in order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


class _Blocks:
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


def _head(header: Mapping[str, Any], objects: Iterable[bytes | memoryview]) -> bytes:
    text = json.dumps(header).encode()
    return text + _digest(text, objects) + len(text).to_bytes(8, "little") + _MAGIC


def _digest(text: bytes, objects: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256(text)
    for content in objects:
        digest.update(content)
    return digest.digest()


def _header(content: memoryview) -> dict[str, Any]:
    """The header, which with the objects is as it was written."""
    length = int.from_bytes(content[-_TAIL_BYTES + 32 : -len(_MAGIC)], "little")
    end = len(content) - _TAIL_BYTES
    try:
        if length > end:
            raise ValueError(f"its header has {length} bytes, but {end} are there")
        text = bytes(content[end - length : end])
        header: dict[str, Any] = json.loads(text)
        if _digest(text, (_block(content, *entry) for entry in header["objects"].values())) != digest_of(content):
            raise ValueError("some of its bytes changed")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise _damaged(error) from error
    return header


def _damaged(error: Exception) -> EPFail:
    return EPFail(f"a compiled partition is damaged ({type(error).__name__}: {error}); make the context anew")


def _block(content: memoryview, begin: int, size: int) -> memoryview:
    if not 0 <= begin <= begin + size <= len(content):
        raise ValueError(f"{size} bytes from {begin} on lie outside of its {len(content)} bytes")
    return content[begin : begin + size]


def _array_anew(content: memoryview, entry: list[Any], place: Place) -> list[Any]:
    kind, shape, *where = entry
    return [kind, shape, *place(_block(content, *where), True)] if where else entry


def _array_of(
    content: memoryview, weights: Mapping[str, Array], kind: str, shape: list[int], begin: int | str | None = None, size: int = 0
) -> Array:
    dtype = DataType[kind.upper()].numpy
    if begin is None:
        return np.broadcast_to(np.zeros((), dtype), shape)
    if isinstance(begin, str):
        return _weight(weights, begin, np.dtype(dtype), tuple(shape), size)
    if size != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of {kind}{shape} has {size} bytes")
    found = np.frombuffer(_block(content, begin, size), np.uint8).view(dtype).reshape(shape)
    return found if found.ctypes.data % ALIGNMENT == 0 else _aligned(found)


def _weight(weights: Mapping[str, Array], name: str, dtype: np.dtype[Any], shape: tuple[int, ...], code: int) -> Array:
    """A weight of the model, whose elements may be known by another shape there, or in a narrower type."""
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
    if zlib.crc32(content) != code:
        raise EPFail(
            f"the weight {name!r} has other elements than when it was compiled; give the model that the context was made from, or "
            "make the context anew"
        )
    return np.frombuffer(content, np.uint8).view(dtype).reshape(shape)


def _aligned(array: Array) -> Array:
    raw = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % ALIGNMENT
    copy = raw[skip : skip + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
