"""The pool that the arenas of runs come from."""

from __future__ import annotations

import threading
from typing import Any

from sardonyx.provider import Memory

__all__ = ["ArenaPool"]


class ArenaPool:
    """Buffers of one memory that runs borrow and give back; one run holds one at a time. Safe for threads."""

    def __init__(self, memory: Memory, keep: int = 4) -> None:
        """Make an empty pool that keeps at most `keep` idle buffers."""
        self._memory = memory
        self._keep = keep
        self._idle: list[tuple[int, Any]] = []
        self._lock = threading.Lock()

    def borrow(self, size_bytes: int) -> tuple[int, Any]:
        """Take a buffer of at least `size_bytes`: the smallest idle one that fits, else a new one. Returns (size, buffer)."""
        with self._lock:
            if len(self._idle) == 1 and self._idle[0][0] >= size_bytes:
                return self._idle.pop()
            fitting = [entry for entry in self._idle if entry[0] >= size_bytes]
            if fitting:
                chosen = min(fitting, key=lambda entry: entry[0])
                self._idle = [entry for entry in self._idle if entry is not chosen]
                return chosen
        return size_bytes, self._memory.allocate(size_bytes)

    def give_back(self, entry: tuple[int, Any]) -> None:
        """Return what `borrow` gave; where enough are idle the smallest is dropped."""
        with self._lock:
            self._idle.append(entry)
            if len(self._idle) > self._keep:
                smallest = min(self._idle, key=lambda item: item[0])
                self._idle = [other for other in self._idle if other is not smallest]

    def trim(self) -> int:
        """Drop all idle buffers and return how many bytes they held."""
        with self._lock:
            dropped, self._idle = self._idle, []
        return sum(size for size, _ in dropped)
