"""Schemas of FlatBuffers as Python tables, for the reader and the writer alike.

    SCHEMA = Schema(
        "TFLite", b"TFL3", "Model",
        enums={"Padding": "byte: SAME VALID", "TensorType": "byte: FLOAT32 FLOAT16 UINT4=-1"},
        unions={"Options": "PoolOptions ConvOptions RareOptions=250"},
        structs={"Pair": "first:uint second:int"},
        tables={"Model": "version:uint=3 name:string! padding:Padding data:[ubyte]@16 options:Options pairs:[Pair]"},
    )

An enumeration is its number type and its names, which count from 0; a union its tables, which count from 1; a number behind `=`
goes on from there. A field is `name:type`, where the type is a number type, an enumeration, `string`, a struct, a table, a union,
or `[…]` for a vector of one (not of unions); behind it `=` gives the default (0 without), `!` says that the field is required, `@`
how many bytes a vector is aligned to. The order of the fields is that of the slots; a union takes two. A table of a union that
is not listed has no fields.

Source: the FlatBuffers documents on its schema language and on its binary format.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses

__all__ = ["Field", "Kind", "Schema"]

_NUMBERS = {
    "bool": "?",
    "byte": "i1",
    "ubyte": "u1",
    "short": "<i2",
    "ushort": "<u2",
    "int": "<i4",
    "uint": "<u4",
    "long": "<i8",
    "ulong": "<u8",
    "float": "<f4",
    "double": "<f8",
}
_FORMATS = {np.dtype(text).str: f"<{code}" for text, code in zip(_NUMBERS.values(), "?bBhHiIqQfd", strict=True)}
_FIELD = re.compile(r"(\w+):(\[?)(\w+)\]?(?:=([-\w.]+))?(!?)(?:@(\d+))?$")


class Kind(enum.Enum):
    """How a field is stored."""

    NUMBER = "number"
    TEXT = "text"
    STRUCT = "struct"
    TABLE = "table"
    UNION = "union"
    NUMBERS = "vector of numbers"
    TEXTS = "vector of texts"
    STRUCTS = "vector of structs"
    TABLES = "vector of tables"


_VECTORS = {Kind.NUMBER: Kind.NUMBERS, Kind.TEXT: Kind.TEXTS, Kind.STRUCT: Kind.STRUCTS, Kind.TABLE: Kind.TABLES}


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A field of a table."""

    name: str
    """Its name."""
    kind: Kind
    """How it is stored."""
    slot: int
    """Its place in vtables, from 0; of a union that of its code, behind which its table follows."""
    dtype: np.dtype[Any]
    """Of numbers and structs: of one element. Of all else: of an offset."""
    format: str
    """The same as the `struct` module writes it; empty for structs."""
    target: str
    """The enumeration, struct, table or union that it is of; empty for plain numbers and texts."""
    default: float
    """What an absent number is."""
    required: bool
    """Whether a file without it is wrong."""
    alignment: int
    """To how many bytes the elements of a vector are aligned at least."""


class Schema:
    """The tables of a format; parsed when they are asked for."""

    def __init__(
        self,
        name: str,
        identifier: bytes,
        root: str,
        *,
        enums: Mapping[str, str],
        unions: Mapping[str, str],
        structs: Mapping[str, str],
        tables: Mapping[str, str],
    ) -> None:
        """Take the texts of a schema as this module describes them, its name for messages, and the root table of its files.

        Args:
            name: what messages call the format.
            identifier: the four bytes at offset 4 of a file.
            root: the table that a file holds.
            enums: number type and names of each enumeration.
            unions: tables of each union.
            structs: fields of each struct, all of them numbers.
            tables: fields of each table.
        """
        self.name, self.identifier, self.root = name, identifier, root
        self._enums, self._unions, self._structs, self._tables = enums, unions, structs, tables
        self._read_tables: dict[str, dict[str, Field]] = {}
        self._read_enums: dict[str, dict[int, str]] = {}
        self._read_unions: dict[str, dict[int, str]] = {}

    def extended(
        self,
        name: str,
        identifier: bytes,
        *,
        enums: Mapping[str, str],
        unions: Mapping[str, str],
        tables: Mapping[str, str],
    ) -> Schema:
        """Return a schema that has these definitions in the place of, or beside, those of the same names here."""
        return Schema(
            name,
            identifier,
            self.root,
            enums={**self._enums, **enums},
            unions={**self._unions, **unions},
            structs=self._structs,
            tables={**self._tables, **tables},
        )

    def text(self, name: str) -> str:
        """Return the text of an enumeration or of a union, for a schema that adds to it."""
        return self._enums[name] if name in self._enums else self._unions[name]

    def fields(self, table: str) -> Mapping[str, Field]:
        """Return the fields of a table by name, in the order of their slots."""
        found = self._read_tables.get(table)
        if found is None:
            found = self._read_tables[table] = self._parse(self._tables.get(table, ""))
        return found

    def enum(self, name: str) -> Mapping[int, str]:
        """Return number -> name of an enumeration."""
        found = self._read_enums.get(name)
        if found is None:
            found = self._read_enums[name] = _numbered(self._enums[name].split(":")[1], 0)
        return found

    def codes(self, name: str) -> Mapping[str, int]:
        """Return name -> number of an enumeration or of a union."""
        return {text: number for number, text in (self.enum(name) if name in self._enums else self.union(name)).items()}

    def union(self, name: str) -> Mapping[int, str]:
        """Return code -> table of a union."""
        found = self._read_unions.get(name)
        if found is None:
            found = self._read_unions[name] = _numbered(self._unions[name], 1)
        return found

    def _parse(self, text: str) -> dict[str, Field]:
        fields: dict[str, Field] = {}
        slot = 0
        for word in text.split():
            match = _FIELD.match(word)
            assert match is not None, f"schema of {self.name}: {word!r} is no field"
            name, bracket, kind_name, default, required, alignment = match.groups()
            kind, dtype, target = self._kind(kind_name)
            kind = _VECTORS[kind] if bracket else kind
            fields[name] = Field(
                name,
                kind,
                slot,
                dtype,
                "" if dtype.fields else _FORMATS[dtype.str],
                target,
                self._default(default, target),
                bool(required),
                int(alignment or dtype.alignment),
            )
            slot += 2 if kind is Kind.UNION else 1
        return fields

    def _kind(self, name: str) -> tuple[Kind, np.dtype[Any], str]:
        if name in _NUMBERS:
            return Kind.NUMBER, np.dtype(_NUMBERS[name]), ""
        if name in self._enums:
            return Kind.NUMBER, np.dtype(_NUMBERS[self._enums[name].split(":")[0]]), name
        if name in self._structs:
            return Kind.STRUCT, self._struct(name), name
        kind = Kind.TEXT if name == "string" else Kind.UNION if name in self._unions else Kind.TABLE
        return kind, np.dtype("<u4"), "" if kind is Kind.TEXT else name

    def _struct(self, name: str) -> np.dtype[Any]:
        pairs = [word.split(":") for word in self._structs[name].split()]
        return np.dtype([(field, _NUMBERS[kind]) for field, kind in pairs], align=True)

    def _default(self, text: str | None, target: str) -> float:
        if text is None:
            return 0
        if target and not text.lstrip("-").isdigit():
            return self.codes(target)[text]
        return float(text) if "." in text else int(text)


def _numbered(text: str, first: int) -> dict[int, str]:
    """Return number -> name of a list of names, each of which may give its number."""
    found = {}
    number = first
    for word in text.split():
        name, _, given = word.partition("=")
        number = int(given) if given else number
        found[number] = name
        number += 1
    return found
