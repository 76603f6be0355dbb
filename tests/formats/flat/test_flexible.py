"""FlexBuffers."""

from __future__ import annotations

import random

import pytest

from sardonyx.formats.flat.flexible import NotFlexible, options

# {"a": 7, "b": 1.5, "c": "xy", "d": [1, 2]}, laid out by hand: texts and keys, the typed vector, the keys, the map, its types, the root
KEYS = b"a\0b\0c\0d\0"
TEXT = b"\x02xy\0"
VECTOR = b"\x02\x01\x02"


def _map() -> bytes:
    data = bytearray(KEYS + TEXT + VECTOR)
    text, vector = len(KEYS) + 1, len(KEYS) + len(TEXT) + 1
    data += b"\0" * (-len(data) % 4)
    keys = len(data) + 4
    data += (4).to_bytes(4, "little")
    for index in range(4):
        data += (keys + 4 * index - 2 * index).to_bytes(4, "little")
    start = len(data) + 12
    data += (start - 12 - keys).to_bytes(4, "little") + (4).to_bytes(4, "little") + (4).to_bytes(4, "little")
    data += (
        (7).to_bytes(4, "little")
        + b"\0\0\xc0\x3f"
        + (start + 8 - text).to_bytes(4, "little")
        + (start + 12 - vector).to_bytes(4, "little")
    )
    data += bytes([1 << 2 | 2, 3 << 2 | 2, 5 << 2, 11 << 2])
    root = len(data)
    return bytes(data) + bytes([root - start, 9 << 2 | 2, 1])


def test_a_map_is_read() -> None:
    """Of a number, a real one, a text, and a list."""
    assert options(_map()) == {"a": 7, "b": 1.5, "c": "xy", "d": [1, 2]}


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x05\x04\x01", b"\xff\x24\x01", b"abcdefghijk", bytes(20)])
def test_what_is_none_is_refused(data: bytes) -> None:
    """By a typed error."""
    with pytest.raises(NotFlexible):
        options(data)


def test_changed_bytes_raise_nothing_else() -> None:
    """They are read or refused."""
    rng = random.Random(0)
    good = _map()
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            options(bytes(data))
        except NotFlexible:
            continue
