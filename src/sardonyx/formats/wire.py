"""A scanner for the protobuf wire format that takes large tensor data out of a model without reading it.

Protobuf copies every byte that it parses. `strip` walks the messages of a serialised ModelProto only so far that it finds the large
`raw_data`, `float_data` and `double_data` of its tensors, and returns the model with each of them replaced by a short
key in `raw_data`, and where the data lies:

    ModelProto ─ graph ─┬─ initializer ─ raw_data  1.2 GB   ->   raw_data  24 bytes: key       blobs[key] = (offset, size, field)
                        └─ node ─ attribute ─ t ─ raw_data      likewise

Long lists of numbers and texts among the attributes are taken out too, and read by whole arrays (`wire_lists`).
Keys begin with random bytes drawn per call, so that no file can contain one. What the scanner does not expect (a group, a length
that leaves its message, two payloads in one tensor) makes it return None: the caller then lets protobuf judge the whole.

Field numbers are those of onnx.proto; the wire format is https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import os

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.formats.files import Content, MemoryContent
from sardonyx.formats.wire_lists import LISTS, read_list
from sardonyx.ir import ArrayAttribute

__all__ = ["DOUBLE_DATA", "FLOAT_DATA", "RAW_DATA", "Blob", "Stripped", "strip"]

BLOB_BYTES = 1024
"""Data of fewer bytes stays in the message."""
FLOAT_DATA, RAW_DATA, DOUBLE_DATA = 4, 9, 10
"""The fields of TensorProto whose payload is the elements themselves, little-endian."""

_PAYLOADS = (FLOAT_DATA, 5, 6, 7, RAW_DATA, DOUBLE_DATA, 11)
_RAW_DATA_TAG = b"\x4a"
_TYPE_TAG = b"\xa0\x01"
_NAME_TAG, _S_TAG = 0x0A, b"\x22"
_LIST_BYTES = 1 << 14
"""Shorter lists of an attribute stay in the message."""
_MAX_DEPTH = 100
_WINDOW_BYTES = 16 << 10
"""How much of a file is read at a time."""
_HEADER_BYTES = 20
"""The longest tag and length: two numbers of 64 bits, 7 in a byte."""
_TENSOR, _SPARSE, _ATTRIBUTE, _NODE, _GRAPH, _FUNCTION, _MODEL = range(7)
_CHILDREN: tuple[dict[int, int], ...] = (
    {},
    {1: _TENSOR, 2: _TENSOR},
    {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE},
    {5: _ATTRIBUTE},
    {1: _NODE, 5: _TENSOR, 15: _SPARSE},
    {7: _NODE, 11: _ATTRIBUTE},
    {7: _GRAPH, 25: _FUNCTION},
)
"""Message -> number of a field that may hold large tensors -> message in that field."""


@dataclasses.dataclass(frozen=True, slots=True)
class Blob:
    """Where the data of one tensor lies."""

    offset: int
    """Its first byte, from the start of the model."""
    size_bytes: int
    """Its length."""
    field: int
    """The field of TensorProto that it was taken from."""


@dataclasses.dataclass(frozen=True, slots=True)
class Stripped:
    """A serialised model without its large data."""

    data: bytes
    """The model; protobuf can parse it."""
    blobs: dict[bytes, Blob]
    """What stands in `raw_data` of a tensor -> where its data lies."""
    lists: dict[bytes, ArrayAttribute] = dataclasses.field(default_factory=dict)
    """What stands in `s` of an attribute -> the attribute with its list, which was taken out."""


def strip(content: Content) -> Stripped | None:
    """Take the large tensor data out of a serialised ModelProto; None where anything about it is unexpected.

    Args:
        content: the bytes of the model; only those between the large data are read.

    Raises:
        Fail: the content changes.
    """
    scanner = _Scanner(content)
    try:
        stripped = scanner.message(_MODEL, 0, len(content), 0)
    except (_UnexpectedError, IndexError):
        return None
    return Stripped(bytes(content.read(0, len(content))) if stripped is None else stripped, scanner.blobs, scanner.lists)


class _UnexpectedError(Exception):
    """The bytes are not what a plain ModelProto looks like."""


class _Scanner:
    """Sees the content through a window, which moves on where a field begins too near to its end, or behind it."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._window, self._start, self._last = memoryview(b""), 0, -1
        self._move(0)
        self.blobs: dict[bytes, Blob] = {}
        self.lists: dict[bytes, ArrayAttribute] = {}
        self._nonce = os.urandom(16)

    def message(self, kind: int, start: int, end: int, depth: int) -> bytes | None:
        """Return the message in [start, end) without large data, or None where it has none."""
        if depth > _MAX_DEPTH:
            raise _UnexpectedError
        children = _CHILDREN[kind]
        pieces: list[bytes | memoryview] = []
        copied = position = start
        window, first, last = self._window, self._start, self._last
        while position < end:
            if position > last:
                self._move(position)
                window, first, last = self._window, self._start, self._last
            field_start = position
            tag = window[position - first]
            position += 1
            if tag >= 0x80:
                tag, position = self._varint(field_start)
            wire_type = tag & 7
            if wire_type != 2:
                position = self._skip(wire_type, position)
                continue
            size = window[position - first]
            position += 1
            if size >= 0x80:
                size, position = self._varint(position - 1)
            body = position
            position += size
            if size < BLOB_BYTES or position > end:
                continue
            child = children.get(tag >> 3)
            if child is None:
                continue
            kind_of_list = self._kind_of_list(position) if child == _ATTRIBUTE else None
            if kind_of_list is not None:
                replaced = self._list(kind_of_list, body, position) if size >= _LIST_BYTES else None
            else:
                replaced = self._tensor(body, position) if child == _TENSOR else self.message(child, body, position, depth + 1)
            window, first, last = self._window, self._start, self._last
            if replaced is not None:
                pieces += (self._bytes(copied, field_start), _encode(tag), _encode(len(replaced)), replaced)
                copied = position
        if position != end:
            raise _UnexpectedError
        return b"".join([*pieces, self._bytes(copied, end)]) if pieces else None

    def _kind_of_list(self, end: int) -> int | None:
        """Return the type of an attribute whose last field it is, and says that it is a list of numbers or texts, else None.

        Such an attribute is not searched for tensors: one that these bytes are a part of stays in the message, which is right too.
        """
        kind = bytes(self._bytes(end - len(_TYPE_TAG) - 1, end))
        return kind[-1] if kind.startswith(_TYPE_TAG) and kind[-1] in LISTS else None

    def _list(self, kind: int, start: int, end: int) -> bytes | None:
        """Return an attribute with a key, in `s`, in place of its list; None where it has more than a name, a list and a type."""
        data = memoryview(self._bytes(start, end))
        first = 2 + data[1]
        if data[0] != _NAME_TAG or data[1] >= 0x80:
            return None
        found = read_list(kind, data[first : -len(_TYPE_TAG) - 1])
        if found is None:
            return None
        key = self._key()
        self.lists[key] = found
        return b"".join((data[:first], _S_TAG, _encode(len(key)), key, data[-len(_TYPE_TAG) - 1 :]))

    def _key(self) -> bytes:
        return self._nonce + (len(self.blobs) + len(self.lists)).to_bytes(8, "little")

    def _tensor(self, start: int, end: int) -> bytes | None:
        position = start
        payloads: list[tuple[int, int, int, int]] = []
        while position < end:
            if position > self._last:
                self._move(position)
            field_start = position
            tag, position = self._varint(position)
            if tag & 7 == 2:
                size, body = self._varint(position)
                position = body + size
            else:
                body = position
                position = self._skip(tag & 7, position)
            if tag >> 3 in _PAYLOADS:
                payloads.append((tag, field_start, body, position))
        if position != end:
            raise _UnexpectedError
        if not payloads or payloads[0][3] - payloads[0][2] < BLOB_BYTES:
            return None
        tag, field_start, body, after = payloads[0]
        if tag >> 3 not in (FLOAT_DATA, RAW_DATA, DOUBLE_DATA):
            return None
        if len(payloads) > 1 or tag & 7 != 2:
            raise _UnexpectedError
        key = self._key()
        self.blobs[key] = Blob(body, after - body, tag >> 3)
        return b"".join((self._bytes(start, field_start), _RAW_DATA_TAG, _encode(len(key)), key, self._bytes(after, end)))

    def _move(self, position: int) -> None:
        """Look at what is from `position` on; fields that begin at `_last` at most have their tag and length in the window."""
        total = len(self._content)
        whole = isinstance(self._content, MemoryContent)
        self._start = 0 if whole else position
        end = total if whole else min(position + _WINDOW_BYTES, total)
        self._window = self._content.read(self._start, end - self._start)
        self._last = total if end == total else end - _HEADER_BYTES

    def _bytes(self, start: int, end: int) -> bytes | memoryview:
        """Return the bytes [start, end), which may lie before the window."""
        first = self._start
        if first <= start and end <= first + len(self._window):
            return self._window[start - first : end - first]
        return self._content.read(start, end - start)

    def _skip(self, wire_type: int, position: int) -> int:
        if wire_type == 0:
            return self._varint(position)[1]
        if wire_type == 1:
            return position + 8
        if wire_type == 5:
            return position + 4
        raise _UnexpectedError

    def _varint(self, position: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._window[position - self._start]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
        raise _UnexpectedError


def _encode(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
