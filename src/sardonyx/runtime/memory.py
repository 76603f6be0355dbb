"""Memory of a run: offsets of tensors in an arena by best fit over their lifetimes, and the pool that arenas come from."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Any

from sardonyx.provider import Memory

__all__ = ["ALIGNMENT", "ArenaPool", "Lifetime", "place"]

ALIGNMENT = 64
"""Bytes that each tensor in an arena is aligned to: a cache line, and the widest vector."""


@dataclasses.dataclass(frozen=True, slots=True)
class Lifetime:
    """A tensor that needs memory from one step to another."""

    size_bytes: int
    """How much."""
    first: int
    """The step that fills it."""
    last: int
    """The last step that reads it; at least `first`."""


def place(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Give each tensor an offset such that none overlaps another that lives at the same time.

    Large tensors are placed first, each into the smallest gap that holds it between those placed that live at the same time
    (greedy by size, as in Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). O(n^2).

    Returns:
        The offsets, each a multiple of `ALIGNMENT`, and the bytes that all need together.
    """
    offsets = [0] * len(lifetimes)
    placed: list[tuple[int, int, Lifetime]] = []
    total = 0
    for index in sorted(range(len(lifetimes)), key=lambda item: (-lifetimes[item].size_bytes, lifetimes[item].first)):
        wanted = lifetimes[index]
        size = -(-wanted.size_bytes // ALIGNMENT) * ALIGNMENT
        rivals = sorted((at, end) for at, end, other in placed if other.first <= wanted.last and wanted.first <= other.last)
        offsets[index] = _best_gap(rivals, size)
        placed.append((offsets[index], offsets[index] + size, wanted))
        total = max(total, offsets[index] + size)
    return offsets, total


def _best_gap(rivals: Sequence[tuple[int, int]], size: int) -> int:
    best, best_size, end = -1, 0, 0
    for start, stop in rivals:
        gap = start - end
        if gap >= size and (best < 0 or gap < best_size):
            best, best_size = end, gap
        end = max(end, stop)
    return best if best >= 0 else end


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
