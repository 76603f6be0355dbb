"""Memory that something keeps: blocks by address, so that what several hold counts once."""

from __future__ import annotations

import enum
import mmap
from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import OnnxValue

__all__ = ["HeldKind", "HeldMemory", "common_bytes", "held_array", "union_bytes"]


class HeldKind(enum.Enum):
    """What a block of memory is for."""

    WEIGHTS = "weights"
    """Constants as the model has them."""
    PACKED_WEIGHTS = "packed weights"
    """Constants in the order in which kernels read them."""
    MAPPED = "mapped files"
    """Pages of a file, which the system may drop and read again."""
    CODE = "machine code"
    """Kernels."""


@dataclasses.dataclass(frozen=True, slots=True)
class HeldMemory:
    """A block of memory that a program keeps between runs."""

    kind: HeldKind
    """What it is for."""
    address: int
    """Where it begins."""
    size_bytes: int
    """How long it is."""


def held_array(array: OnnxValue, kind: HeldKind) -> HeldMemory:
    """Return the memory that lives as long as `array`: all of what a view is a part of, and of a mapped file the array's part.

    Args:
        array: an array; of anything else, as of an empty one, no memory is known.
        kind: what it is for, where it is in no mapped file.
    """
    if not isinstance(array, np.ndarray) or not array.nbytes:
        return HeldMemory(kind, 0, 0)
    owner: object = array
    while isinstance(owner, (np.ndarray, memoryview)):
        inner: object = owner.base if isinstance(owner, np.ndarray) else owner.obj
        if isinstance(inner, mmap.mmap) and memoryview(inner).readonly:  # of a file: mappings without one are written to
            return HeldMemory(HeldKind.MAPPED, array.ctypes.data, array.nbytes)
        if not isinstance(inner, (np.ndarray, memoryview, bytes, bytearray, mmap.mmap)):
            break
        owner = inner
    whole = owner if isinstance(owner, np.ndarray) else np.frombuffer(cast("bytes", owner), np.uint8)
    return HeldMemory(kind, whole.ctypes.data, whole.nbytes)


def union_bytes(blocks: Iterable[HeldMemory]) -> int:
    """Return how many bytes blocks cover, each counted once."""
    return sum(end - first for first, end in _spans(blocks))


def common_bytes(blocks: Sequence[HeldMemory], others: Sequence[HeldMemory]) -> int:
    """Return how many bytes lie in blocks of both."""
    return union_bytes(blocks) + union_bytes(others) - union_bytes([*blocks, *others])


def _spans(blocks: Iterable[HeldMemory]) -> list[tuple[int, int]]:
    """Return the disjoint ranges of addresses that blocks cover, in order."""
    spans: list[tuple[int, int]] = []
    for first, end in sorted((block.address, block.address + block.size_bytes) for block in blocks if block.size_bytes):
        if spans and first <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((first, end))
    return spans
