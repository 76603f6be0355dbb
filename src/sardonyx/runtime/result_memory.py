"""Memory of large results, used again when nobody refers to a result any more.

The system clears each page of new memory when it is first written to, which takes longer than to copy a cache there. A loop of
runs drops the results of the run before last; their blocks hold the next ones. A block is a little larger than what it is made
for, so that a cache which grows by a row in each run finds one that fits.
"""

from __future__ import annotations

import collections
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sardonyx.dtypes import Array

if TYPE_CHECKING:
    _Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]  # Any: of any shape
else:
    _Bytes = np.ndarray

__all__ = ["LEAST_BYTES", "ResultMemory"]

LEAST_BYTES = 1 << 20
"""From which size on memory is kept: the allocator of the process keeps smaller blocks."""

_ALIGNMENT = 64
_CLASSES = 16
"""Sizes of blocks from one power of two to the next."""


class _Block(_Bytes):
    """Bytes that results lie in, one after another."""


class _Part(_Bytes):
    """The bytes of one result. As its class is another one, NumPy has it as the base of all arrays in it: it ends with the last."""

    home: _Home | None = None
    """Where its block goes when it ends; None for a part of a part."""

    def __del__(self) -> None:
        if self.home is not None:
            found, capacity, block = self.home
            memory = found()
            if memory is not None:
                memory.keep(capacity, block)


_Idle: TypeAlias = "collections.deque[_Block]"
_Home: TypeAlias = "tuple[weakref.ref[ResultMemory], int, _Block]"


class ResultMemory:
    """The blocks of one executor. Safe for threads, without a lock: results end anywhere, in the middle of `take` too."""

    def __init__(self, most: int) -> None:
        """Keep nothing yet, and at most `most` blocks that no result lies in."""
        self._most = most
        self._reference = weakref.ref(self)
        self._idle: dict[int, _Idle] = {}

    def take(self, size_bytes: int) -> Array:
        """Return bytes, aligned to 64, which come back when nobody refers to them any more; raises MemoryError."""
        capacity = _capacity(size_bytes)
        idle = self._idle.setdefault(capacity, collections.deque())
        try:
            block = idle.pop()
        except IndexError:
            self._drop_other(capacity)
            block = _Block((capacity + _ALIGNMENT,), np.uint8)
        first = -block.ctypes.data % _ALIGNMENT
        part = block[first : first + size_bytes].view(_Part)
        part.home = self._reference, capacity, block
        return part

    @property
    def idle_bytes(self) -> int:
        """How many bytes of blocks no result lies in."""
        return sum(block.nbytes for idle in tuple(self._idle.values()) for block in tuple(idle))

    def trim(self) -> int:
        """Give the blocks that no result lies in back to the system; returns their bytes."""
        dropped = self.idle_bytes
        self._idle.clear()
        return dropped

    def keep(self, capacity: int, block: _Block) -> None:
        """Keep a block that no result lies in any more, unless there are enough of them."""
        if sum(len(idle) for idle in tuple(self._idle.values())) < self._most:
            self._idle.setdefault(capacity, collections.deque()).append(block)

    def _drop_other(self, capacity: int) -> None:
        """Give a block of another size back, as one more of this size is made: old blocks of results that grow are too small."""
        for other, idle in tuple(self._idle.items()):
            if other == capacity:
                continue
            try:
                idle.popleft()
            except IndexError:
                self._idle.pop(other, None)
            else:
                return


def _capacity(size_bytes: int) -> int:
    """Return the least size of a block that holds so many bytes."""
    step = 1 << max(size_bytes.bit_length() - _CLASSES.bit_length(), 0)
    return -(-size_bytes // step) * step
