"""Writes FlatBuffers from Python dictionaries, by the schema that the reader reads them with.

    data = write(SCHEMA, {"version": 3, "buffers": [{"data": weights}], "options": ("PoolOptions", {"padding": "SAME"})})

A table is a mapping from fields to values; an enumeration's value is its name or number; a union a pair of a table's name and its
fields; a vector of numbers anything that NumPy makes an array of, or bytes; a vector of structs a list of tuples. Fields that are
None, and numbers that are the default, are left out, as other writers do.

The file is written from front to back: first a table, then what its offsets lead to. Equal vtables are stored once.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from sardonyx.errors import InvalidArgument
from sardonyx.formats.flat.schema import Field, Kind, Schema

__all__ = ["Fields", "write"]

Fields: TypeAlias = Mapping[str, Any]
"""A table's fields by name; Any, since fields are of all kinds."""

_MOST_BYTES = 2**31 - 1


def write(schema: Schema, root: Fields) -> bytes:
    """Return the bytes of a file whose root table has the fields `root`.

    Raises:
        InvalidArgument: a field or an enumerator that the schema lacks, or more than 2 GiB.
    """
    writer = _Writer(schema)
    writer.table(0, schema.root, root)
    return writer.finished()


class _Writer:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._content = bytearray(bytes(4) + schema.identifier)
        self._vtables: dict[bytes, int] = {}

    def finished(self) -> bytes:
        if len(self._content) > _MOST_BYTES:
            raise InvalidArgument(f"a file of {self._schema.name} would take {len(self._content)} bytes, more than 2 GiB")
        return bytes(self._content)

    def table(self, place: int, name: str, values: Fields) -> None:
        """Write a table to which the offset at `place` leads, and all below it."""
        fields = self._schema.fields(name)
        unknown = [field for field in values if field not in fields]
        if unknown:
            raise InvalidArgument(f"{name} of {self._schema.name} has no field {unknown[0]!r}; it has {', '.join(fields)}")
        items = [item for field in fields.values() for item in self._inline(name, field, values.get(field.name))]
        items.sort(key=lambda item: -len(item[1]))
        start = self._place_table(items)
        self._point(place, start)
        position = start + 4
        for _, data, field, value in items:
            if field is not None:
                self._below(position, field, value)
            position += len(data)

    def _inline(self, table: str, field: Field, value: Any) -> list[tuple[int, bytes, Field | None, Any]]:
        """Return slot, bytes in the table, and what has to be written below it, of each entry that a field takes."""
        if value is None:
            if field.required:
                raise InvalidArgument(f"{table}.{field.name} of {self._schema.name} is required")
            return []
        if field.kind is Kind.NUMBER:
            number = self._number(field, value)
            return [] if number == field.default else [(field.slot, struct.pack(field.format, number), None, None)]
        if field.kind is Kind.STRUCT:
            return [(field.slot, np.array(tuple(value), field.dtype).tobytes(), None, None)]
        if field.kind is not Kind.UNION:
            return [(field.slot, bytes(4), field, value)]
        name, fields = value
        code = self._schema.codes(field.target).get(name)
        if code is None:
            raise InvalidArgument(f"{name!r} is no table of the union {field.target} of {self._schema.name}")
        return [(field.slot, bytes([code]), None, None), (field.slot + 1, bytes(4), field, (name, fields))]

    def _number(self, field: Field, value: Any) -> float:
        if not isinstance(value, str):
            number: float = value
            return number
        codes = self._schema.codes(field.target)
        if value not in codes:
            raise InvalidArgument(f"{value!r} is no {field.target} of {self._schema.name}; there are {', '.join(codes)}")
        return codes[value]

    def _place_table(self, items: Sequence[tuple[int, bytes, Field | None, Any]]) -> int:
        """Write the vtable, where there is no equal one, and the fields that lie in the table; return where it begins."""
        offsets = [0] * (max((item[0] for item in items), default=-1) + 1)
        inline_bytes = 4
        for slot, data, _, _ in items:
            offsets[slot] = inline_bytes
            inline_bytes += len(data)
        vtable = struct.pack(f"<{2 + len(offsets)}H", 4 + 2 * len(offsets), inline_bytes, *offsets)
        self._align(2)
        vtable_place = self._vtables.setdefault(vtable, len(self._content))
        if vtable_place == len(self._content):
            self._content += vtable
        largest = max((len(item[1]) for item in items), default=4)
        self._content += bytes(-(len(self._content) + 4) % max(largest & -largest, 4))
        start = len(self._content)
        self._content += struct.pack("<i", start - vtable_place) + b"".join(item[1] for item in items)
        return start

    def _below(self, place: int, field: Field, value: Any) -> None:
        """Write what the offset at `place` leads to."""
        if field.kind is Kind.TEXT:
            self._text(place, value)
        elif field.kind is Kind.TABLE:
            self.table(place, field.target, value)
        elif field.kind is Kind.UNION:
            self.table(place, *value)
        elif field.kind is Kind.TEXTS:
            for position, text in zip(self._offsets(place, len(value)), value, strict=True):
                self._text(position, text)
        elif field.kind is Kind.TABLES:
            for position, fields in zip(self._offsets(place, len(value)), value, strict=True):
                self.table(position, field.target, fields)
        else:
            self._elements(place, field, value)

    def _text(self, place: int, value: str | bytes) -> None:
        data = value.encode("utf-8") if isinstance(value, str) else value
        self._vector(place, len(data), data + b"\0", 4)

    def _offsets(self, place: int, count: int) -> range:
        """Write a vector of offsets that lead nowhere yet; return where each stands."""
        start = self._vector(place, count, bytes(4 * count), 4)
        return range(start, start + 4 * count, 4)

    def _elements(self, place: int, field: Field, value: Any) -> None:
        if isinstance(value, (bytes, bytearray, memoryview)):
            view = memoryview(value).cast("B")
            self._vector(place, len(view) // field.dtype.itemsize, view, field.alignment)
            return
        if field.kind is Kind.STRUCTS:
            array = np.array([tuple(record) for record in value], field.dtype)
        elif field.target:
            array = np.array([self._number(field, item) for item in value], field.dtype)
        else:
            array = np.asarray(value, field.dtype).reshape(-1)
        self._vector(place, len(array), array.tobytes(), field.alignment)

    def _vector(self, place: int, count: int, data: bytes | memoryview, alignment: int) -> int:
        """Write a vector to which the offset at `place` leads, its elements aligned; return where they begin."""
        self._content += bytes(-(len(self._content) + 4) % max(alignment, 4))
        self._point(place, len(self._content))
        self._content += struct.pack("<I", count)
        start = len(self._content)
        self._content += data
        return start

    def _point(self, place: int, target: int) -> None:
        if target > _MOST_BYTES:
            raise InvalidArgument(f"a file of {self._schema.name} would take more than 2 GiB")
        struct.pack_into("<I", self._content, place, target - place)

    def _align(self, alignment: int) -> None:
        self._content += bytes(-len(self._content) % alignment)
