"""The reader of FlatBuffers, and files that are not what they should be."""

from __future__ import annotations

import random
import struct
import time

import numpy as np
import pytest
from formats.flat.test_schema import SCHEMA

from sardonyx.errors import InvalidFlatBuffer
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.flat.reader import Table, read_root
from sardonyx.formats.flat.writer import write


def _root(content: bytes) -> Table:
    return read_root(MemoryContent(memoryview(content)), SCHEMA, "x.bin")


def _table(offsets: list[int], fields: bytes) -> bytes:
    """Return a file whose root has these offsets in its vtable, behind it, and these bytes of fields."""
    start = 8
    vtable = start + 4 + len(fields)
    table = struct.pack("<i", start - vtable) + fields
    return (
        struct.pack("<I4s", start, b"TEST")
        + table
        + struct.pack(f"<{2 + len(offsets)}H", 4 + 2 * len(offsets), len(table), *offsets)
    )


def test_absent_fields_are_their_defaults() -> None:
    """Numbers what the schema says, vectors empty, tables None."""
    root = _root(write(SCHEMA, {"name": "n"}))
    assert (root.integer("version"), root.choice("color"), root.real("rate")) == (3, "GREEN", 0.5)
    assert root.union("any") is None
    assert root.struct("pair") is None
    assert (root.tables("parts"), root.numbers("data").size, root.structs("pairs").size, root.blob("data")) == ([], 0, 0, (0, 0))
    assert ("name" in root, "version" in root) == (True, False)


def test_large_vectors_are_views() -> None:
    """Nothing of the data is copied."""
    content = write(SCHEMA, {"name": "n", "data": bytes(1000)})
    whole = np.frombuffer(content, np.uint8)
    assert np.shares_memory(_root(content).numbers("data"), whole)
    start, size_bytes = _root(content).blob("data")
    assert (start % 16, size_bytes) == (0, 1000)


def test_a_field_that_an_older_writer_lacked_is_absent() -> None:
    """Its vtable ends before it."""
    root = _root(_table([4], struct.pack("<i", 8)))
    assert (root.integer("version"), root.real("rate"), root.numbers("data").size) == (8, 0.5, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has 0 bytes"),
        (b"\x08\0\0\0NOPE" + bytes(8), "bytes 4 to 8 are b'NOPE', but a file of Test has b'TEST'"),
        (struct.pack("<I4s", 1 << 31, b"TEST") + bytes(8), "the offset 2147483648 at byte 0 leads out of the file"),
        (struct.pack("<I4s", 0, b"TEST") + bytes(8), "the offset 0 at byte 0"),
        (struct.pack("<I4si", 8, b"TEST", 100), "its vtable would be at byte -92"),
        (struct.pack("<I4si", 8, b"TEST", -100), "its vtable would be at byte 108"),
        (struct.pack("<I4siHH", 8, b"TEST", -4, 5, 4), "a size of 5 bytes"),
        (struct.pack("<I4siHH", 8, b"TEST", -4, 2, 4), "a size of 2 bytes"),
        (struct.pack("<I4siHH", 8, b"TEST", -4, 400, 4), "a size of 400 bytes"),
        (struct.pack("<I4siHH", 8, b"TEST", -4, 4, 400), "it has 400 bytes at byte 8"),
    ],
)
def test_a_damaged_start_is_refused(content: bytes, message: str) -> None:
    """With the file, the table, and the numbers."""
    with pytest.raises(InvalidFlatBuffer, match=message) as caught:
        _root(content)
    assert str(caught.value).startswith("x.bin: ")


@pytest.mark.parametrize(
    ("offsets", "fields", "read", "message"),
    [
        ([40], b"", lambda root: root.integer("version"), "Root.version: it would be at byte 40 of a table of 4 bytes"),
        ([2], b"", lambda root: root.integer("version"), "Root.version: it would be at byte 2"),
        ([6], bytes(4), lambda root: root.integer("version"), "Root.version: it would be at byte 6 of a table of 8 bytes"),
        ([0, 4], b"\x09", lambda root: root.choice("color"), "Root.color: 9 is no Color of Test"),
        ([0] * 7 + [4], struct.pack("<I", 1 << 30), lambda root: root.numbers("data"), "Root.data: the offset 1073741824"),
        (
            [0] * 7 + [4],
            struct.pack("<II", 4, 1 << 31),
            lambda root: root.numbers("data"),
            "Root.data: a vector of 2147483648 elements",
        ),
        (
            [0] * 7 + [4],
            struct.pack("<II", 4, 1 << 31),
            lambda root: root.blob("data"),
            "Root.data: a vector of 2147483648 elements",
        ),
        (
            [0] * 6 + [4],
            struct.pack("<II", 4, 1 << 31),
            lambda root: root.tables("parts"),
            "Root.parts: a vector of 2147483648 elements",
        ),
        ([0] * 6 + [4], struct.pack("<III", 4, 1, 99), lambda root: root.tables("parts"), r"Root.parts\[0\]: the offset 99"),
        ([0] * 5 + [4], struct.pack("<II", 4, 400), lambda root: root.text("name"), "Root.name: a vector of 400 elements"),
        (
            [0] * 5 + [4],
            struct.pack("<II2s", 4, 2, b"\xc3("),
            lambda root: root.text("name"),
            "Root.name: the text at byte 20 is no UTF-8",
        ),
        ([], b"", lambda root: root.text("name"), "Root.name: it is absent, but required"),
        ([0, 0, 0, 8, 4], struct.pack("<IB", 4, 77), lambda root: root.union("any"), "Root.any: 77 is no table of the union Any"),
    ],
)
def test_a_damaged_field_is_refused(offsets: list[int], fields: bytes, read: object, message: str) -> None:
    """When it is read, with its name."""
    root = _root(_table(offsets, fields))
    with pytest.raises(InvalidFlatBuffer, match=f"x.bin: {message}"):
        read(root)  # type: ignore[operator]  # as damaged files have it


def test_an_offset_that_would_lead_back_is_refused() -> None:
    """Offsets are positive: one that would make a cycle leads out of the file."""
    fields = struct.pack("<III", 4, 1, 2**32 - 8)
    with pytest.raises(InvalidFlatBuffer, match="leads out of the file"):
        _root(_table([0] * 6 + [4], fields)).tables("parts")


def test_many_offsets_to_the_same_bytes_are_refused() -> None:
    """A small file may not make us read gigabytes: here each of 16 levels refers to the next 64 times."""
    width, depth = 64, 16
    vtable = struct.pack("<9H", 18, 8, *[0] * 6, 4)
    content = bytearray(struct.pack("<I4s", 0, b"TEST") + vtable)
    content += bytes(-len(content) % 4)
    struct.pack_into("<I", content, 0, len(content))
    for level in range(depth):
        start = len(content)
        content += struct.pack("<iI", start - 8, 4)
        count = width if level + 1 < depth else 0
        content += struct.pack("<I", count)
        end = len(content) + 4 * count
        content += b"".join(struct.pack("<I", end - (len(content) + 4 * index)) for index in range(count))

    def walk(table: Table) -> int:
        return 1 + sum(walk(part) for part in table.tables("parts"))

    started = time.process_time()
    with pytest.raises(InvalidFlatBuffer, match="so many offsets lead to the same bytes"):
        walk(_root(bytes(content)))
    assert time.process_time() - started < 5


def test_tables_that_are_nested_too_deep_are_refused() -> None:
    """Before Python's own limit is met."""
    fields: dict[str, object] = {"name": ""}
    for _ in range(80):
        fields = {"name": "", "parts": [fields]}
    table = _root(write(SCHEMA, fields))
    for _ in range(64):
        [table] = table.tables("parts")
    with pytest.raises(InvalidFlatBuffer, match="nested deeper than 64"):
        table.tables("parts")


def test_changed_bytes_raise_nothing_else() -> None:
    """A file in which bytes were changed or cut is read or refused."""
    parts = [{"name": f"part {index}", "any": ("First", {"x": index}), "pairs": [(1, 2)]} for index in range(3)]
    good = write(SCHEMA, {"name": "n", "data": bytes(20), "parts": parts})
    rng = random.Random(1)
    for _ in range(3000):
        content = bytearray(good[: rng.choice([len(good), len(good), rng.randrange(len(good))])])
        for _ in range(rng.randrange(1, 4)):
            if content:
                content[rng.randrange(len(content))] = rng.choice([0, 1, 4, 127, 128, 255, rng.randrange(256)])
        try:
            _visit(_root(bytes(content)))
        except InvalidFlatBuffer:
            continue


def _visit(table: Table) -> None:
    if table.name != "Root":
        return
    table.integer("version"), table.choice("color"), table.text("name"), table.struct("pair"), table.structs("pairs")
    table.numbers("data"), table.blob("data"), table.union("any")
    for part in table.tables("parts"):
        _visit(part)
