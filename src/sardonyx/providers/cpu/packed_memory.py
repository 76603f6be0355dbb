"""Where packed weights lie: beside one another in huge pages, which kernels stream at the speed of memory.

In pages of 4 KiB they come at 17 GB/s on a processor that reads 29 GB/s from pages of 2 MiB: the processor fetches nothing
beyond the end of a page ahead of time, and looks its address up.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.formats.files import new_buffer

__all__ = ["PackedMemory"]

_PAGE_BYTES = 2 << 20
_BLOCK_BYTES = 64 << 20
"""Of address space that is taken at a time; memory is taken by the page, when it is written."""
_LEAST_BYTES, _MOST_BYTES = 32 << 10, 32 << 20
"""Smaller arrays are not streamed; NumPy has huge pages for larger ones itself, which are not worth a copy."""
_LEAST_WEIGHTS_BYTES = 4 << 20
"""Fewer stay where they are: the caches of the processor hold them, and the memory of small models is not rounded up to pages."""
_ALIGNMENT = 64


class PackedMemory:
    """The weights of one program. What it gives keeps the memory; nothing is freed before all of a block is unused."""

    def __init__(self, weights_bytes: int) -> None:
        """Hold nothing of the program's weights, of which there are about so many bytes."""
        self._pays = weights_bytes >= _LEAST_WEIGHTS_BYTES
        self._block: Array = np.empty(0, np.uint8)

    def place(self, array: Array) -> Array:
        """Return the elements of an array, copied to where weights lie, or the array itself where that does not pay."""
        is_streamed = _LEAST_BYTES <= array.nbytes <= _MOST_BYTES and array.flags.c_contiguous and not array.dtype.hasobject
        if not (self._pays and is_streamed):
            return array
        size_bytes = -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        if size_bytes > len(self._block):
            self._block = _new_block()
        placed: Array = self._block[: array.nbytes].view(array.dtype).reshape(array.shape)
        self._block = self._block[size_bytes:]
        placed[...] = array
        return placed


def _new_block() -> Array:
    """Return bytes that begin at a huge page."""
    block = np.frombuffer(new_buffer(_BLOCK_BYTES + _PAGE_BYTES), np.uint8)
    begin = -block.__array_interface__["data"][0] % _PAGE_BYTES
    return block[begin : begin + _BLOCK_BYTES]
