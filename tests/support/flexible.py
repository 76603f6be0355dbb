"""Writes FlexBuffer maps, as custom operators have their options."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_INT, _FLOAT, _MAP, _INTS = 1, 3, 9, 11
_WIDTH = 3
"""Each value takes 1 << 3 bytes."""


def flexible(fields: Mapping[str, float | Sequence[int]]) -> bytes:
    """Return a map of names to numbers and lists of whole numbers."""
    data, places, lists = bytearray(), {}, {}
    for name in sorted(fields):
        places[name] = len(data)
        data += name.encode() + b"\0"
    data += b"\0" * (-len(data) % 8)
    for name, value in fields.items():
        if isinstance(value, Sequence):
            data += struct.pack("<q", len(value))
            lists[name] = len(data)
            data += struct.pack(f"<{len(value)}q", *value)
    data += struct.pack("<q", len(fields))
    keys = len(data)
    for name in sorted(fields):
        data += struct.pack("<q", len(data) - places[name])
    data += struct.pack("<qqq", len(data) - keys, 1 << _WIDTH, len(fields))
    root, kinds = len(data), bytearray()
    for name in sorted(fields):
        value = fields[name]
        if isinstance(value, Sequence):
            data += struct.pack("<q", len(data) - lists[name])
            kinds.append(_INTS << 2 | _WIDTH)
        elif isinstance(value, float):
            data += struct.pack("<d", value)
            kinds.append(_FLOAT << 2 | _WIDTH)
        else:
            data += struct.pack("<q", value)
            kinds.append(_INT << 2 | _WIDTH)
    data += kinds
    return bytes(data + struct.pack("<HBB", len(data) - root, _MAP << 2 | _WIDTH, 2))
