"""Long lists in the wire format, read by whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto

from sardonyx.formats.wire_lists import read_list
from sardonyx.ir import AttributeKind

FLOATS, INTS, STRINGS = 6, 7, 8
LISTS = {
    INTS: [[0], [127] * 5, [0, 128, -1, 1 << 62, -(1 << 63), 300, 7, 16383, 16384, 0x40, 0x4040], list(range(-40, 40))],
    FLOATS: [[0.5], [1.0, -0.0, float("inf"), 2.0**-149, 2.25]],
    STRINGS: [["LEAF"], ["LEAF", "BRANCH_LEQ", "", "é", "LEAF"]],
}


def _fields(kind: int, items: list[Any]) -> bytes:
    field = {FLOATS: "floats", INTS: "ints", STRINGS: "strings"}[kind]
    return AttributeProto(**{field: [item.encode() if isinstance(item, str) else item for item in items]}).SerializeToString()


@pytest.mark.parametrize(("kind", "items"), [(kind, items) for kind, lists in LISTS.items() for items in lists])
def test_lists_are_read_as_protobuf_writes_them(kind: int, items: list[Any]) -> None:
    """Numbers of any length, texts of UTF-8."""
    found = read_list(kind, memoryview(_fields(kind, items)))
    assert found is not None
    assert found.kind is AttributeKind(kind)
    assert found.value == tuple(items)
    assert [str(item) for item in found.value] == [str(item) for item in items]


def test_packed_lists_are_read() -> None:
    """One field with a length for all numbers."""
    numbers = np.arange(200, dtype=np.float32)
    found = read_list(FLOATS, memoryview(b"\x3a\xa0\x06" + numbers.tobytes()))
    assert found is not None
    np.testing.assert_array_equal(found.array, numbers)
    found = read_list(INTS, memoryview(b"\x42\x04\x05\x80\x01\x07"))
    assert found is not None
    assert found.value == (5, 128, 7)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (INTS, b""),
        (INTS, b"\x40"),
        (INTS, b"\x40\x80"),
        (INTS, b"\x41\x05"),
        (INTS, b"\x40\x05\x05\x40"),
        (INTS, b"\x40" + b"\x80" * 10 + b"\x01"),
        (INTS, b"\x40\x85\x01\x39\x01\x02"),
        (INTS, b"\x42\x09\x05"),
        (INTS, b"\x42\x00"),
        (FLOATS, b"\x3d\x00\x00\x00"),
        (FLOATS, b"\x3d\x00\x00\x00\x00\x3e\x00\x00\x00\x00"),
        (FLOATS, b"\x3a\x03\x00\x00\x00"),
        (STRINGS, b"\x4a\x05LEAF"),
        (STRINGS, b"\x4a\x01J"),
        (STRINGS, b"x\x4a\x04LEAF"),
        (STRINGS, b"".join(b"\x4a\x03%03d" % number for number in range(300))),
    ],
)
def test_anything_else_is_left_to_protobuf(kind: int, body: bytes) -> None:
    """Other fields, cut lists, texts with the letter of the tag, many different texts."""
    assert read_list(kind, memoryview(body)) is None
