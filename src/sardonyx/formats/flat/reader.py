"""Reads FlatBuffers, of which nothing is believed: every offset is compared with the file before it is followed.

    model = read_root(content, SCHEMA, "model.tflite")
    model.integer("version")
    [tensor.numbers("shape") for graph in model.tables("subgraphs") for tensor in graph.tables("tensors")]

    content    root offset | identifier | …
    table      distance to its vtable | fields
    vtable     its size | the table's size | offset of each field in the table, 0 for an absent one
    vector     count | elements; of texts, tables and vectors: offsets, counted from where they stand

Fields are checked when they are read. What tables, lists and texts may take altogether is bounded by a multiple of the file's size,
so that a few bytes to which many offsets lead cannot cost time without end. Offsets are positive and must stay within the file:
they lead forward only, so tables cannot form cycles. Blobs (the data of tensors) are places in the content, of which nothing is
copied.

Source: the FlatBuffers documents on its binary format.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NoReturn, cast

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidFlatBuffer
from sardonyx.formats.files import Content
from sardonyx.formats.flat.schema import Field, Kind, Schema

__all__ = ["Table", "read_root"]

_MOST_DEPTH = 64
_MOST_SHARING = 16
"""How many bytes may be read for each byte of the file: what several offsets lead to is read several times."""
_FREE_BYTES = 64 << 10
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_HEADER_BYTES = 8


def read_root(content: Content, schema: Schema, label: str) -> Table:
    """Return the root table of a file.

    Args:
        content: the bytes of the file.
        schema: what its tables hold.
        label: what messages call the file.

    Raises:
        InvalidFlatBuffer: it is no file of this schema.
    """
    size_bytes = len(content)
    if size_bytes < _HEADER_BYTES:
        raise InvalidFlatBuffer(f"{label}: it has {size_bytes} bytes, too few for a file of {schema.name}")
    found = bytes(content.read(4, 4))
    if found != schema.identifier:
        raise InvalidFlatBuffer(f"{label}: bytes 4 to 8 are {found!r}, but a file of {schema.name} has {schema.identifier!r} there")
    file = _File(content, schema, label)
    place = file.follow(0, schema.root, "root")
    return Table(file, schema.root, place, schema.root, None)


class _File:
    """The content, and how much of it was read."""

    def __init__(self, content: Content, schema: Schema, label: str) -> None:
        self.content, self.schema, self.label = content, schema, label
        self.size_bytes = len(content)
        self._left_bytes = _MOST_SHARING * self.size_bytes + _FREE_BYTES

    def u32(self, place: int, path: str, field: str) -> int:
        if not 0 <= place <= self.size_bytes - 4:
            self.refuse(path, field, f"an offset leads to byte {place}, out of the file of {self.size_bytes} bytes")
        return int(_U32.unpack(self.content.read(place, 4))[0])

    def follow(self, place: int, path: str, field: str) -> int:
        """Return where the offset at `place` leads."""
        distance = self.u32(place, path, field)
        target = place + distance
        if distance == 0 or target > self.size_bytes - 4:
            self.refuse(path, field, f"the offset {distance} at byte {place} leads out of the file of {self.size_bytes} bytes")
        return target

    def vector(self, place: int, item_bytes: int, path: str, field: str) -> tuple[int, int]:
        """Return where the elements of the vector begin that the offset at `place` leads to, and how many there are."""
        start = self.follow(place, path, field)
        count = self.u32(start, path, field)
        if start + 4 + count * item_bytes > self.size_bytes:
            self.refuse(
                path,
                field,
                f"a vector of {count} elements of {item_bytes} bytes at byte {start} ends behind the file",
            )
        return start + 4, count

    def charge(self, size_bytes: int, path: str, field: str) -> None:
        """Note that so many bytes are read, and refuse the file where it makes us read far more than it has."""
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            self.refuse(
                path, field, "so many offsets lead to the same bytes that reading them would take far more than the file has"
            )

    def refuse(self, path: str, field: str, reason: str) -> NoReturn:
        raise InvalidFlatBuffer(f"{self.label}: {path}{'.' if field else ''}{field}: {reason}")


class Table:
    """A table of the file. A field that is absent is its default, None, or empty."""

    __slots__ = ("_depth", "_fields", "_file", "_found", "_inline_bytes", "_offsets", "_place", "name", "path")

    def __init__(self, file: _File, name: str, place: int, path: str, parent: Table | None) -> None:
        """Read the vtable of the table at `place`.

        Args:
            file: the file.
            name: the table's name in the schema.
            place: where it begins.
            path: how messages name it, such as Model.subgraphs[0].
            parent: the table that leads to it.

        Raises:
            InvalidFlatBuffer: it is not within the file, or nested too deep.
        """
        self.name, self.path = name, path
        self._file, self._place = file, place
        self._depth: int = 0 if parent is None else parent._depth + 1
        self._found: dict[str, object] = {}
        self._fields: Mapping[str, Field] = file.schema.fields(name)
        if self._depth > _MOST_DEPTH:
            self.refuse("", f"tables are nested deeper than {_MOST_DEPTH}")
        vtable = place - _I32.unpack(file.content.read(place, 4))[0]
        if not 0 <= vtable <= file.size_bytes - 4:
            self.refuse("", f"its vtable would be at byte {vtable}, out of the file of {file.size_bytes} bytes")
        size_bytes, self._inline_bytes = struct.unpack("<HH", file.content.read(vtable, 4))
        if size_bytes < 4 or size_bytes % 2 or vtable + size_bytes > file.size_bytes:
            self.refuse("", f"its vtable at byte {vtable} has a size of {size_bytes} bytes")
        if self._inline_bytes < 4 or place + self._inline_bytes > file.size_bytes:
            self.refuse("", f"it has {self._inline_bytes} bytes at byte {place} of a file of {file.size_bytes}")
        file.charge(size_bytes + self._inline_bytes, path, "")
        self._offsets = struct.unpack(f"<{size_bytes // 2 - 2}H", file.content.read(vtable + 4, size_bytes - 4))

    @property
    def schema(self) -> Schema:
        """The schema of the file."""
        return self._file.schema

    @property
    def known(self) -> Mapping[str, Field]:
        """The fields that the schema gives the table."""
        return self._fields

    def __contains__(self, field: str) -> bool:
        """Return whether the file has the field."""
        return self._at(self._fields[field], 0) is not None

    def integer(self, field: str) -> int:
        """Return a field that is an integer, or an enumeration as its number."""
        return int(self._number(field))

    def real(self, field: str) -> float:
        """Return a field that is a floating-point number."""
        return float(self._number(field))

    def flag(self, field: str) -> bool:
        """Return a field that is a truth value."""
        return bool(self._number(field))

    def choice(self, field: str) -> str:
        """Return the name that a field's number has in its enumeration; raises InvalidFlatBuffer where it has none."""
        number = self.integer(field)
        target = self._fields[field].target
        name = self._file.schema.enum(target).get(number)
        if name is None:
            self.refuse(field, f"{number} is no {target} of {self._file.schema.name}")
        return name

    def text(self, field: str) -> str:
        """Return a text; empty where it is absent. Raises InvalidFlatBuffer where it is no UTF-8."""
        return cast(str, self._once(field, Kind.TEXT))

    def octets(self, field: str) -> bytes:
        """Return the bytes of a text, which may be no UTF-8; empty where it is absent."""
        place = self._at(self._expect(field, Kind.TEXT), 4)
        return b"" if place is None else self._octets_at(place, field)

    def octet_list(self, field: str) -> list[bytes]:
        """Return the bytes of each text of a vector, which may be no UTF-8."""
        start, count = self._list(self._expect(field, Kind.TEXTS))
        return [self._octets_at(start + 4 * index, f"{field}[{index}]") for index in range(count)]

    def table(self, field: str) -> Table | None:
        """Return the table that a field leads to; None where it is absent."""
        return cast("Table | None", self._once(field, Kind.TABLE))

    def union(self, field: str) -> Table | None:
        """Return the table that a union leads to, whose `name` says which it is; None where it is absent."""
        return cast("Table | None", self._once(field, Kind.UNION))

    def tables(self, field: str) -> list[Table]:
        """Return the tables of a vector."""
        return cast("list[Table]", self._once(field, Kind.TABLES))

    def texts(self, field: str) -> list[str]:
        """Return the texts of a vector."""
        return cast("list[str]", self._once(field, Kind.TEXTS))

    def numbers(self, field: str) -> Array:
        """Return a vector of numbers as a read-only view of the content, with the element type of the schema."""
        return cast(Array, self._once(field, Kind.NUMBERS))

    def structs(self, field: str) -> Array:
        """Return a vector of structs as a structured array, a read-only view of the content."""
        return cast(Array, self._once(field, Kind.STRUCTS))

    def struct(self, field: str) -> tuple[float, ...] | None:
        """Return the numbers of a struct; None where it is absent."""
        found = self._expect(field, Kind.STRUCT)
        place = self._at(found, found.dtype.itemsize)
        if place is None:
            return None
        record = np.frombuffer(self._file.content.read(place, found.dtype.itemsize), found.dtype)[0]
        return cast("tuple[float, ...]", record.item())

    def blob(self, field: str) -> tuple[int, int]:
        """Return where in the content the elements of a vector of numbers begin, and how many bytes they are; (0, 0) if absent."""
        found = self._expect(field, Kind.NUMBERS)
        place = self._at(found, 4)
        if place is None:
            return 0, 0
        start, count = self._file.vector(place, found.dtype.itemsize, self.path, field)
        return start, count * found.dtype.itemsize

    def refuse(self, field: str, reason: str) -> NoReturn:
        """Raise InvalidFlatBuffer with the file, this table, `field` (empty for the table itself) and `reason`."""
        self._file.refuse(self.path, field, reason)

    def _number(self, field: str) -> float:
        found = self._expect(field, Kind.NUMBER)
        place = self._at(found, found.dtype.itemsize)
        if place is None:
            return found.default
        return cast(float, struct.unpack(found.format, self._file.content.read(place, found.dtype.itemsize))[0])

    def _once(self, field: str, kind: Kind) -> object:
        """Return what a field holds, read when it is first asked for."""
        if field not in self._found:
            self._found[field] = _READERS[kind](self, self._expect(field, kind))
        return self._found[field]

    def _expect(self, field: str, kind: Kind) -> Field:
        found = self._fields[field]
        assert found.kind is kind, f"{self.name}.{field} is a {found.kind.value}, not a {kind.value}"
        return found

    def _at(self, field: Field, inline_bytes: int, slot: int = 0) -> int | None:
        """Return where a field stands; None where the file does not have it."""
        index = field.slot + slot
        offset = self._offsets[index] if index < len(self._offsets) else 0
        if offset == 0:
            if field.required:
                self.refuse(field.name, "it is absent, but required")
            return None
        if offset < 4 or offset + inline_bytes > self._inline_bytes:
            self.refuse(field.name, f"it would be at byte {offset} of a table of {self._inline_bytes} bytes")
        return self._place + offset

    def _text(self, field: Field) -> str:
        place = self._at(field, 4)
        return "" if place is None else self._text_at(place, field.name)

    def _octets_at(self, place: int, label: str) -> bytes:
        start, count = self._file.vector(place, 1, self.path, label)
        self._file.charge(count, self.path, label)
        return bytes(self._file.content.read(start, count))

    def _text_at(self, place: int, label: str) -> str:
        start, count = self._file.vector(place, 1, self.path, label)
        self._file.charge(count, self.path, label)
        try:
            return str(self._file.content.read(start, count), "utf-8")
        except UnicodeDecodeError as error:
            self.refuse(label, f"the text at byte {start} is no UTF-8 ({error.reason})")

    def _texts(self, field: Field) -> list[str]:
        start, count = self._list(field)
        return [self._text_at(start + 4 * index, f"{field.name}[{index}]") for index in range(count)]

    def _table(self, field: Field) -> Table | None:
        place = self._at(field, 4)
        return None if place is None else self._child(place, field.target, field.name)

    def _tables(self, field: Field) -> list[Table]:
        start, count = self._list(field)
        return [self._child(start + 4 * index, field.target, f"{field.name}[{index}]") for index in range(count)]

    def _union(self, field: Field) -> Table | None:
        code_place, place = self._at(field, 1), self._at(field, 4, slot=1)
        code = 0 if code_place is None else self._file.content.read(code_place, 1)[0]
        if code == 0 or place is None:
            return None
        name = self._file.schema.union(field.target).get(code)
        if name is None:
            self.refuse(field.name, f"{code} is no table of the union {field.target} of {self._file.schema.name}")
        return self._child(place, name, field.name)

    def _numbers(self, field: Field) -> Array:
        place = self._at(field, 4)
        if place is None:
            return np.empty(0, field.dtype)
        item_bytes = field.dtype.itemsize
        start, count = self._file.vector(place, item_bytes, self.path, field.name)
        self._file.charge(count * item_bytes, self.path, field.name)
        stored = np.dtype(np.uint8) if field.dtype.kind == "b" else field.dtype
        found = np.frombuffer(self._file.content.read(start, count * item_bytes), stored)
        return found != 0 if field.dtype.kind == "b" else found

    def _list(self, field: Field) -> tuple[int, int]:
        """Return where the offsets of a vector begin, and how many there are."""
        place = self._at(field, 4)
        if place is None:
            return 0, 0
        start, count = self._file.vector(place, 4, self.path, field.name)
        self._file.charge(4 * count, self.path, field.name)
        return start, count

    def _child(self, place: int, name: str, label: str) -> Table:
        return Table(self._file, name, self._file.follow(place, self.path, label), f"{self.path}.{label}", self)


_READERS = {
    Kind.TEXT: Table._text,
    Kind.TEXTS: Table._texts,
    Kind.TABLE: Table._table,
    Kind.TABLES: Table._tables,
    Kind.UNION: Table._union,
    Kind.NUMBERS: Table._numbers,
    Kind.STRUCTS: Table._numbers,
}
