"""Offsets of tensors in one block of memory, by best fit over their lifetimes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

__all__ = ["ALIGNMENT", "Lifetime", "place"]

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

    Tensors are placed in the order in which they come to life, large ones first, each into the smallest gap that holds it
    between those alive, else behind them: what a best-fit allocator does. O(n x tensors alive at a time).

    Returns:
        The offsets, each a multiple of `ALIGNMENT`, and the bytes that all need together.
    """
    offsets = [0] * len(lifetimes)
    alive: list[tuple[int, int, int]] = []
    total = 0
    for index in sorted(range(len(lifetimes)), key=lambda item: (lifetimes[item].first, -lifetimes[item].size_bytes)):
        wanted = lifetimes[index]
        size = -(-wanted.size_bytes // ALIGNMENT) * ALIGNMENT
        alive = [entry for entry in alive if entry[2] >= wanted.first]
        offset = offsets[index] = _best_gap(alive, size)
        alive.append((offset, offset + size, wanted.last))
        alive.sort()
        total = max(total, offset + size)
    return offsets, total


def _best_gap(alive: Sequence[tuple[int, int, int]], size: int) -> int:
    best, best_size, end = -1, 0, 0
    for start, stop, _ in alive:
        gap = start - end
        if gap >= size and (best < 0 or gap < best_size):
            best, best_size = end, gap
        end = max(end, stop)
    return best if best >= 0 else end
