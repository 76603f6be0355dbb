"""A compiled partition in bytes: what it is for, a graph in text form, arrays and objects.

    "SXPROGRAM 1" | digest (32 bytes) | length of the header (8) | header (JSON) | objects | arrays

Each object and array begins at a multiple of 64 bytes, so that those of a mapped file need not be copied. The digest is the
SHA-256 of what lies between it and the arrays: all that may be run, and all that says where arrays lie and how large they are. The
elements of arrays are not in it, as those of a model's weights are in no digest: the time to load does not depend on them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import EPFail, SardonyxError
from sardonyx.ir import Graph
from sardonyx.ir.text import parse_graph, print_graph

__all__ = ["ProgramFile", "digest_of", "read_program", "write_program"]

_MAGIC = b"SXPROGRAM 1"
_ALIGNMENT = 64
_FIXED = len(_MAGIC) + 32 + 8


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


def write_program(about: Mapping[str, Any], graph: Graph, arrays: Sequence[Array] = (), absent: Sequence[int] = (),
                  objects: Mapping[str, bytes] | None = None) -> bytes:  # fmt: skip
    """The bytes that `read_program` reads; of arrays that are `absent` only types and shapes are kept."""
    blocks = _Blocks()
    placed = {name: blocks.add(content) for name, content in (objects or {}).items()}
    checked = blocks.size_bytes
    places = [[] if index in absent else blocks.add(_bytes_of(array)) for index, array in enumerate(arrays)]
    kinds = [[str(DataType.from_numpy(array.dtype)), list(array.shape)] for array in arrays]
    header = {
        "about": dict(about),
        "graph": print_graph(graph, max_elements=None),
        "objects": placed,
        "arrays": [[*kind, *place] for kind, place in zip(kinds, places, strict=True)],
        "checked": checked,
        "bytes": blocks.size_bytes,
    }
    text = json.dumps(header).encode()
    text += b" " * (-(_FIXED + len(text)) % _ALIGNMENT)
    digest = hashlib.sha256(len(text).to_bytes(8, "little") + text)
    for content in blocks.until(checked):
        digest.update(content)
    return b"".join((_MAGIC, digest.digest(), len(text).to_bytes(8, "little"), text, *blocks.contents))


class _Blocks:
    """Blocks one after another, each padded to the alignment."""

    def __init__(self) -> None:
        self.contents: list[bytes | memoryview] = []
        self.size_bytes = 0

    def add(self, content: bytes | memoryview) -> list[int]:
        """Put `content` last; returns where it begins, and its length."""
        begin, padding = self.size_bytes, -len(content) % _ALIGNMENT
        self.contents += [content, bytes(padding)]
        self.size_bytes += len(content) + padding
        return [begin, len(content)]

    def until(self, position: int) -> Iterator[bytes | memoryview]:
        """The contents before `position`."""
        passed = 0
        for content in self.contents:
            if passed >= position:
                return
            yield content
            passed += len(content)


def digest_of(content: memoryview) -> bytes:
    """The digest that saved bytes carry, which `read_program` checks; of bytes of another kind that of all of them."""
    if bytes(content[: len(_MAGIC)]) != _MAGIC:
        return hashlib.sha256(content).digest()
    return bytes(content[len(_MAGIC) : len(_MAGIC) + 32])


def read_program(content: memoryview) -> ProgramFile:
    """Read what `write_program` wrote; arrays and objects are views of `content` where that is aligned.

    Raises:
        EPFail: the bytes are damaged, incomplete, or something else.
    """
    if bytes(content[: len(_MAGIC)]) != _MAGIC:
        raise EPFail(f"the {len(content)} bytes of a compiled partition do not begin as one; make the context anew")
    length = int.from_bytes(content[_FIXED - 8 : _FIXED], "little")
    try:
        header = json.loads(bytes(content[_FIXED : _FIXED + length]))
        blocks = content[_FIXED + length :]
        checked = content[len(_MAGIC) + 32 : _FIXED + length + int(header["checked"])]
        if len(blocks) != header["bytes"] or hashlib.sha256(checked).digest() != digest_of(content):
            raise ValueError(f"it has {len(blocks)} bytes of data, {header['bytes']} were written, or some of them changed")
        arrays = tuple(_array_of(blocks, *entry) for entry in header["arrays"])
        absent = frozenset(index for index, entry in enumerate(header["arrays"]) if len(entry) == 2)
        objects = {name: blocks[begin : begin + size] for name, (begin, size) in header["objects"].items()}
        return ProgramFile(header["about"], parse_graph(header["graph"]), arrays, absent, objects)
    except (KeyError, TypeError, ValueError, SardonyxError) as error:
        raise EPFail(f"a compiled partition is damaged ({type(error).__name__}: {error}); make the context anew") from error


def _bytes_of(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _array_of(blocks: memoryview, kind: str, shape: list[int], begin: int | None = None, size: int = 0) -> Array:
    dtype = DataType[kind.upper()].numpy
    if begin is None:
        return np.broadcast_to(np.zeros((), dtype), shape)
    if size != math.prod(shape) * dtype.itemsize or begin + size > len(blocks):
        raise ValueError(f"an array of {kind}{shape} has {size} bytes")
    found = np.frombuffer(blocks[begin : begin + size], np.uint8).view(dtype).reshape(shape)
    return found if found.ctypes.data % _ALIGNMENT == 0 else _aligned(found)


def _aligned(array: Array) -> Array:
    raw = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % _ALIGNMENT
    copy = raw[skip : skip + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
