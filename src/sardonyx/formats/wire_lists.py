"""Long lists of numbers and texts in the protobuf wire format, read by whole arrays.

    ints     40 number 40 number …     or 42 size number number …
    floats   3d xxxx 3d xxxx …         or 3a size xxxx xxxx …
    strings  4a size text 4a size text …

These are the fields of an AttributeProto. Bytes that are anything else are not read: protobuf then judges them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import ArrayAttribute, AttributeKind

__all__ = ["LISTS", "read_list"]

_INT, _INTS, _FLOAT, _FLOATS, _STRING = 0x40, 0x42, 0x3D, 0x3A, 0x4A
_MOST_TEXTS = 256
"""How many different texts a list may have: it is split by the tag, which no text may then contain."""
_MOST_VARINT_BYTES = 10


def read_list(kind: int, body: memoryview) -> ArrayAttribute | None:
    """Return the attribute that fields with a list make, None where they are anything else; `kind` is one of LISTS."""
    return LISTS[kind](body) if len(body) else None


def _read_ints(body: memoryview) -> ArrayAttribute | None:
    data = np.frombuffer(body, np.uint8)
    if data[0] == _INTS:
        inner = _packed(body)
        return None if inner is None else _varints(np.frombuffer(inner, np.uint8), None)
    return _varints(data, _INT)


def _varints(data: Array, tag: int | None) -> ArrayAttribute | None:
    """Return numbers of 7 bits in a byte, the last byte of each below 128; each with a tag of one byte in front, or without."""
    if tag is not None and len(data) % 2 == 0 and bool(((data[::2] == tag) & (data[1::2] < 0x80)).all()):
        return ArrayAttribute(AttributeKind.INTS, data[1::2].astype(np.int64))
    ends = np.flatnonzero(data < 0x80)
    if not len(ends) or ends[-1] != len(data) - 1:
        return None
    if tag is None:
        starts = np.concatenate([[0], ends[:-1] + 1])
    else:
        tags, ends = ends[0::2], ends[1::2]
        if len(tags) != len(ends) or tags[0] != 0 or bool((data[tags] != tag).any() or (tags[1:] != ends[:-1] + 1).any()):
            return None
        starts = tags + 1
    lengths = ends - starts + 1
    if lengths.max() > _MOST_VARINT_BYTES:
        return None
    numbers = (data[starts] & 0x7F).astype(np.uint64)
    for place in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        numbers[longer] |= (data[starts[longer] + place] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * place)
    return ArrayAttribute(AttributeKind.INTS, numbers.view(np.int64))


def _read_floats(body: memoryview) -> ArrayAttribute | None:
    if body[0] == _FLOATS:
        inner = _packed(body)
        return None if inner is None or len(inner) % 4 else _of_floats(np.frombuffer(inner, "<f4"))
    if len(body) % 5:
        return None
    rows = np.frombuffer(body, np.uint8).reshape(-1, 5)
    if bool((rows[:, 0] != _FLOAT).any()):
        return None
    return _of_floats(np.ascontiguousarray(rows[:, 1:]).view("<f4").reshape(-1))


def _of_floats(numbers: Array) -> ArrayAttribute:
    return ArrayAttribute(AttributeKind.FLOATS, numbers.astype(np.float32))


def _packed(body: memoryview) -> memoryview | None:
    """Return what one field with a length holds, None where it is not the whole body."""
    size = place = 0
    for place, byte in enumerate(body[1 : 1 + _MOST_VARINT_BYTES]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    inner = body[2 + place :]
    return inner if len(inner) == size and size else None


def _read_texts(body: memoryview) -> ArrayAttribute | None:
    first, *pieces = bytes(body).split(bytes([_STRING]))
    distinct = set(pieces)
    if first or len(distinct) > _MOST_TEXTS or any(not piece or piece[0] != len(piece) - 1 for piece in distinct):
        return None
    places = {piece: place for place, piece in enumerate(distinct)}
    texts = [piece[1:].decode("utf-8", "surrogateescape") for piece in distinct]
    return ArrayAttribute(AttributeKind.STRINGS, np.fromiter(map(places.__getitem__, pieces), np.int64, len(pieces)), texts)


LISTS: Mapping[int, Callable[[memoryview], ArrayAttribute | None]] = {6: _read_floats, 7: _read_ints, 8: _read_texts}
"""The kind of an attribute, as AttributeProto numbers it -> what reads its list."""
