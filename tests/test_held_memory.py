"""Blocks of memory by address."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from sardonyx.held_memory import HeldKind, HeldMemory, common_bytes, held_array, union_bytes


def _block(first: int, end: int) -> HeldMemory:
    return HeldMemory(HeldKind.WEIGHTS, first, end - first)


def test_bytes_count_once() -> None:
    """Blocks that overlap, touch or lie in one another count once; empty ones do not count."""
    assert union_bytes([_block(10, 20), _block(15, 30), _block(30, 31), _block(12, 13), _block(50, 60), _block(0, 0)]) == 31


def test_common_bytes_lie_in_both() -> None:
    """What lies in blocks of both counts, however the blocks are cut."""
    assert common_bytes([_block(0, 10), _block(20, 30)], [_block(5, 25), _block(9, 12)]) == 10
    assert common_bytes([], [_block(0, 10)]) == 0


def test_a_view_holds_all_of_its_owner() -> None:
    """A view of an array, of bytes or of a part of both keeps the whole alive."""
    owner = np.zeros((100, 100), np.float32)
    assert held_array(owner[3:5, 7], HeldKind.WEIGHTS) == held_array(owner, HeldKind.WEIGHTS)
    assert held_array(owner, HeldKind.WEIGHTS).size_bytes == 40_000
    content = bytes(1000)
    assert held_array(np.frombuffer(memoryview(content)[100:200], np.uint8), HeldKind.PACKED_WEIGHTS).size_bytes == 1000


def test_of_a_mapped_file_the_part_counts(tmp_path: Path) -> None:
    """An array in a mapped file holds its own pages only, and is of the kind of mapped files."""
    path = tmp_path / "weights"
    path.write_bytes(bytes(5000))
    with path.open("rb") as file:
        array = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8, 100, 50)
    found = held_array(array, HeldKind.WEIGHTS)
    assert (found.kind, found.size_bytes, found.address) == (HeldKind.MAPPED, 100, array.ctypes.data)


def test_a_mapping_without_a_file_is_memory() -> None:
    """Large buffers are such mappings: all of one counts as what it is for."""
    array = np.frombuffer(memoryview(mmap.mmap(-1, 5000)).toreadonly(), np.uint8, 100, 50)
    assert held_array(array, HeldKind.WEIGHTS).kind is HeldKind.WEIGHTS
    assert held_array(array, HeldKind.WEIGHTS).size_bytes == 5000


def test_what_is_no_array_holds_nothing() -> None:
    """Lists, None and empty arrays have no bytes."""
    assert [held_array(value, HeldKind.WEIGHTS).size_bytes for value in ([1], None, np.zeros((0, 3)))] == [0, 0, 0]
