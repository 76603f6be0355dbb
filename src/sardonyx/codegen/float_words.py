"""Numbers as the words that kernels get: apart from what writes kernels, which runs of known ones do without."""

from __future__ import annotations

import struct

__all__ = ["float_word"]


def float_word(number: float) -> int:
    """Return the 64 bits of a float64 as an integer, for `Kernel.param_float`."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])
