"""FlexBuffers: values that say their own types, as custom operators of TensorFlow Lite have their options.

    options(data)    {"max_detections": 10, "anchors": [1.0, 2.0], "name": "x"}

A value has a type and a width of 1, 2, 4 or 8 bytes. Vectors, maps and texts lie at an offset that is subtracted from where it
stands, so offsets lead backward; their length stands before their first element. A map is a vector whose keys are a vector of their
own. Nothing of the bytes is believed: each read is compared with their end, and together they may be no more than a multiple of
their number.

Source: the FlatBuffers documents on FlexBuffers.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

__all__ = ["FlexValue", "NotFlexible", "options"]

FlexValue: TypeAlias = "int | float | bool | str | bytes | list[FlexValue] | dict[str, FlexValue] | None"
"""A value."""

_MOST_DEPTH = 16
_INTEGERS = {1: "b", 2: "h", 4: "i", 8: "q"}
_REALS = {2: "e", 4: "f", 8: "d"}
_KEY, _STRING, _MAP, _VECTOR, _BLOB, _BOOL, _BOOLS = 4, 5, 9, 10, 25, 26, 36
_NUMBERS = {1: "int", 2: "uint", 3: "float", _BOOL: "bool"}
_INDIRECT = {6: "int", 7: "uint", 8: "float"}
_TYPED = {11: 1, 12: 2, 13: 3, 14: _KEY, _BOOLS: _BOOL}
_FIRST_FIXED, _LAST_FIXED = 16, 24


class NotFlexible(ValueError):
    """The bytes are no FlexBuffer, or contradict themselves."""


def options(data: bytes) -> dict[str, FlexValue]:
    """Return the map that `data` holds; raises NotFlexible where it is none."""
    if len(data) < 3:
        raise NotFlexible(f"{len(data)} bytes are too few")
    width = data[-1]
    found = _Reader(data).value(len(data) - 2 - width, data[-2], width, 0)
    if not isinstance(found, dict):
        raise NotFlexible(f"they hold {type(found).__name__}, no map")
    return found


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = 16 * len(data) + 1024

    def value(self, place: int, packed: int, width: int, depth: int) -> FlexValue:
        """Return the value whose slot of `width` bytes is at `place`."""
        kind, inner = packed >> 2, 1 << (packed & 3)
        self._left -= 1
        if self._left < 0 or depth > _MOST_DEPTH:
            raise NotFlexible("values are nested too deep, or shared too often")
        if kind == 0:
            return None
        if kind in _NUMBERS:
            return self._number(place, width, _NUMBERS[kind])
        start = place - int(self._number(place, width, "uint"))
        if kind in _INDIRECT:
            return self._number(start, inner, _INDIRECT[kind])
        if kind == _KEY:
            return self._key(start)
        return self._sequence(start, kind, inner, depth)

    def _sequence(self, start: int, kind: int, width: int, depth: int) -> FlexValue:
        if _FIRST_FIXED <= kind <= _LAST_FIXED:
            count = 2 + (kind - _FIRST_FIXED) // 3
            return self._numbers(start, count, 1 + (kind - _FIRST_FIXED) % 3, width)
        count = int(self._number(start - width, width, "uint"))
        if kind in (_STRING, _BLOB):
            data = self._bytes(start, count)
            return data if kind == _BLOB else _text(data)
        if kind in _TYPED:
            return self._numbers(start, count, _TYPED[kind], width)
        if kind not in (_VECTOR, _MAP):
            raise NotFlexible(f"there is no type {kind}")
        types = self._bytes(start + count * width, count)
        values = [self.value(start + index * width, types[index], width, depth + 1) for index in range(count)]
        if kind == _VECTOR:
            return values
        keys = start - 3 * width - int(self._number(start - 3 * width, width, "uint"))
        key_width = int(self._number(start - 2 * width, width, "uint"))
        places = range(keys, keys + count * key_width, max(key_width, 1))
        names = [self._key(place - int(self._number(place, key_width, "uint"))) for place in places]
        return dict(zip(names, values, strict=False))

    def _numbers(self, start: int, count: int, kind: int, width: int) -> list[FlexValue]:
        self._bytes(start, count * width)
        self._left -= count
        if self._left < 0:
            raise NotFlexible("values are shared too often")
        places = range(start, start + count * width, width)
        if kind == _KEY:
            return [self._key(place - int(self._number(place, width, "uint"))) for place in places]
        return [self._number(place, width, _NUMBERS[kind]) for place in places]

    def _number(self, place: int, width: int, kind: str) -> int | float | bool:
        data = self._bytes(place, width)
        table = _REALS if kind == "float" else _INTEGERS
        if width not in table:
            raise NotFlexible(f"a number of {width} bytes")
        code = table[width].upper() if kind in ("uint", "bool") else table[width]
        (found,) = struct.unpack(f"<{code}", data)
        return bool(found) if kind == "bool" else found

    def _key(self, start: int) -> str:
        end = self._data.find(b"\0", max(start, 0))
        if start < 0 or end < 0:
            raise NotFlexible(f"the key at byte {start} has no end")
        self._left -= (end - start) // 8
        return _text(self._data[start:end])

    def _bytes(self, start: int, size_bytes: int) -> bytes:
        if start < 0 or size_bytes < 0 or start + size_bytes > len(self._data):
            raise NotFlexible(f"{size_bytes} bytes at byte {start} are not within its {len(self._data)} bytes")
        return self._data[start : start + size_bytes]


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotFlexible(f"a text is no UTF-8 ({error.reason})") from error
