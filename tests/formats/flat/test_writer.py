"""The writer of FlatBuffers."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from formats.flat.test_schema import SCHEMA

from sardonyx.errors import InvalidArgument
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.flat.reader import Table, read_root
from sardonyx.formats.flat.writer import Fields, write


def _read(fields: Fields) -> Table:
    return read_root(MemoryContent(memoryview(write(SCHEMA, fields))), SCHEMA, "test")


def test_what_is_written_is_read() -> None:
    """Every kind of field."""
    root = _read(
        {
            "version": 7,
            "color": "DARK",
            "rate": 0.25,
            "name": "grün",
            "any": ("First", {"x": -5}),
            "parts": [{"name": "a"}, {"name": "b", "parts": [{"name": "c"}]}],
            "data": b"\1\2\3",
            "pairs": [(1, -2), (3, 1 << 40)],
            "pair": (9, 10),
        }
    )
    assert (root.integer("version"), root.choice("color"), root.real("rate"), root.text("name")) == (7, "DARK", 0.25, "grün")
    union = root.union("any")
    assert union is not None
    assert (union.name, union.integer("x")) == ("First", -5)
    assert [part.text("name") for part in root.tables("parts")] == ["a", "b"]
    assert root.tables("parts")[1].tables("parts")[0].text("name") == "c"
    assert root.numbers("data").tolist() == [1, 2, 3]
    assert root.structs("pairs").tolist() == [(1, -2), (3, 1 << 40)]
    assert root.struct("pair") == (9, 10)


def test_defaults_and_none_take_no_place() -> None:
    """Nor does a number that is what an absent one means."""
    assert write(SCHEMA, {"name": "", "version": 3, "data": None}) == write(SCHEMA, {"name": ""})


def test_elements_are_aligned_as_the_schema_says() -> None:
    """To 16 bytes here, wherever the file has come to."""
    data = b"abcdefghijklmnop"
    for length in range(16):
        content = write(SCHEMA, {"name": "x" * length, "data": data})
        assert content.index(data) % 16 == 0


def test_numbers_of_8_bytes_are_aligned() -> None:
    """In a struct in a table."""
    content = write(SCHEMA, {"name": "x", "pair": (1, 0x0102030405060708)})
    assert content.index(struct.pack("<q", 0x0102030405060708)) % 8 == 0


def test_equal_vtables_are_stored_once() -> None:
    """Many small tables take little more than their fields."""
    sizes = [len(write(SCHEMA, {"name": "", "parts": [{"name": ""}] * count})) for count in (10, 20)]
    assert sizes[1] - sizes[0] == 10 * (4 + 8 + 8)


def test_arrays_are_written_in_the_type_of_the_field() -> None:
    """Whatever type they have."""
    assert _read({"name": "", "data": np.array([1, 255], np.int64)}).numbers("data").tolist() == [1, 255]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "", "nome": 1}, "no field 'nome'"),
        ({}, "Root.name of Test is required"),
        ({"name": "", "color": "PINK"}, "'PINK' is no Color"),
        ({"name": "", "any": ("Third", {})}, "'Third' is no table of the union Any"),
    ],
)
def test_what_the_schema_lacks_is_refused(fields: Fields, message: str) -> None:
    """With the names that it has."""
    with pytest.raises(InvalidArgument, match=message):
        write(SCHEMA, fields)
