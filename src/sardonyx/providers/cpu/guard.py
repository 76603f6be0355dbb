"""Memory in which a kernel that leaves its buffers is caught: with `SARDONYX_GUARD=1` the CPU provider's kernels run in it.

    | unmapped | canary ... block 0 | unmapped | canary ... block 1 | unmapped |

A block ends where an unmapped page begins, so that an access behind it stops the process there. What is before it, back to the
beginning of its page, holds a known byte and is compared afterwards. Blocks are filled with that byte at first: NaN as floats,
-1 as integers. They are not aligned to more than their elements are.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np

from sardonyx import errors
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import RuntimeException

__all__ = ["Block", "Fence", "place_fenced"]

_CANARY = 0xFF
_PAGE = mmap.PAGESIZE
_NO_ACCESS, _READ_ONLY = 0, 1
"""PROT_NONE and PROT_READ, which all systems with `mprotect` number so."""


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """A place in fenced memory, in bytes from its beginning."""

    page: int
    """Where its first page begins."""
    first: int
    """Where it begins itself."""
    last: int
    """Where it ends, and an unmapped page begins."""


def place_fenced(sizes_bytes: Sequence[int]) -> list[Block]:
    """Return the place of each block; the first page is unmapped, and the one behind each block."""
    blocks: list[Block] = []
    page = _PAGE
    for size in sizes_bytes:
        last = page + max(-(-size // _PAGE), 1) * _PAGE
        blocks.append(Block(page, last - size, last))
        page = last + _PAGE
    return blocks


class Fence:
    """Blocks of memory with unmapped pages around each; freed with the object."""

    def __init__(self, sizes_bytes: Sequence[int]) -> None:
        """Map blocks of so many bytes, filled with the canary; raises NotImplemented where pages cannot be unmapped."""
        self._blocks = place_fenced(sizes_bytes)
        self._bytes = np.frombuffer(mmap.mmap(-1, self._blocks[-1].last + _PAGE if self._blocks else _PAGE), np.uint8)
        self.address = int(self._bytes.ctypes.data)
        """Where the places of blocks count from."""
        self._protect(0, _PAGE, _NO_ACCESS)
        for block in self._blocks:
            self._bytes[block.page : block.last] = _CANARY
            self._protect(block.last, _PAGE, _NO_ACCESS)

    @staticmethod
    def of_constants(arrays: Sequence[Array]) -> Fence:
        """Make blocks that hold the elements of arrays, and cannot be written to."""
        fence = Fence([array.nbytes for array in arrays])
        for index, (block, array) in enumerate(zip(fence._blocks, arrays, strict=True)):
            fence.fill(index, array)
            fence._protect(block.page, block.last - block.page, _READ_ONLY)
        return fence

    @property
    def bytes(self) -> Array:
        """All bytes from `address` on, unmapped ones too."""
        return self._bytes

    def address_of(self, index: int) -> int:
        """Return where a block begins."""
        return self.address + self._blocks[index].first

    def fill(self, index: int, array: Array) -> None:
        """Copy the elements of an array of the block's size, in row-major order, to the block."""
        self._of(index)[:] = np.frombuffer(array.tobytes(), np.uint8)

    def copy_to(self, index: int, array: Array) -> None:
        """Copy the block to a dense array of its size."""
        array.reshape(-1).view(np.uint8)[:] = self._of(index)

    def check(self) -> None:
        """Raise RuntimeException where something was written before a block."""
        for index, block in enumerate(self._blocks):
            if (self._bytes[block.page : block.first] != _CANARY).any():
                raise RuntimeException(
                    f"a kernel wrote before block {index}, of {block.last - block.first} bytes: this is a defect of sardonyx; "
                    "please report it with the model and the shapes of its inputs"
                )

    def _of(self, index: int) -> Array:
        block = self._blocks[index]
        return self._bytes[block.first : block.last]

    def _protect(self, first: int, size_bytes: int, protection: int) -> None:
        try:
            protect = ctypes.CDLL(None, use_errno=True).mprotect
        except (AttributeError, OSError, TypeError) as error:
            raise errors.NotImplemented("SARDONYX_GUARD needs a system that has mprotect; unset it") from error
        if protect(ctypes.c_void_p(self.address + first), ctypes.c_size_t(size_bytes), protection):
            raise RuntimeException(f"mprotect failed with error {ctypes.get_errno()}: fewer or smaller tensors may help")
