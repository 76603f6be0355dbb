"""Offsets of tensors in one block of memory, by best fit over their lifetimes."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses

__all__ = ["ALIGNMENT", "Lifetime", "PlacedBlock", "place", "place_apart"]

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


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedBlock:
    """What lies at one place of an arena for some steps, for reports."""

    name: str
    """What it is."""
    offset_bytes: int
    """Where it begins."""
    size_bytes: int
    """How large it is."""
    first: int
    """The step that fills it."""
    last: int
    """The last step that reads it."""


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
        size = _aligned(wanted.size_bytes)
        alive = [entry for entry in alive if entry[2] >= wanted.first]
        offset = offsets[index] = _best_gap(alive, size)
        alive.append((offset, offset + size, wanted.last))
        alive.sort()
        total = max(total, offset + size)
    return offsets, total


def place_apart(sizes_bytes: Sequence[int], apart: Sequence[int]) -> tuple[list[int], int]:
    """Give each tensor an offset where no order of their lives is known, only which of them may live at the same time.

    Large ones are placed first, each into the smallest gap that holds it between those it has to be apart from. O(n²).

    Args:
        sizes_bytes: their sizes.
        apart: for each tensor the set of those that it must not overlap, as bits by their index.

    Returns:
        As `place`.
    """
    offsets = [0] * len(sizes_bytes)
    placed: list[int] = []
    total = 0
    for index in sorted(range(len(sizes_bytes)), key=lambda item: -sizes_bytes[item]):
        size = _aligned(sizes_bytes[index])
        others = [other for other in placed if apart[index] >> other & 1]
        taken = sorted((offsets[other], offsets[other] + _aligned(sizes_bytes[other]), 0) for other in others)
        offset = offsets[index] = _best_gap(taken, size)
        placed.append(index)
        total = max(total, offset + size)
    return offsets, total


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


def _best_gap(alive: Sequence[tuple[int, int, int]], size: int) -> int:
    best, best_size, end = -1, 0, 0
    for start, stop, _ in alive:
        gap = start - end
        if gap >= size and (best < 0 or gap < best_size):
            best, best_size = end, gap
        end = max(end, stop)
    return best if best >= 0 else end
