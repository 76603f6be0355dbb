"""Where packed weights lie."""

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.providers.cpu.packed_memory import PackedMemory

MIB = 1 << 20


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def filled(size_bytes: int, start: int = 0) -> Array:
    return np.arange(start, start + size_bytes // 4, dtype=np.int32).reshape(4, -1)


def test_weights_lie_beside_one_another_from_a_huge_page_on() -> None:
    """With the elements, type and shape that they had, each at a cache line."""
    memory = PackedMemory(4 * MIB)
    given = [filled(MIB), filled(40_016, 7), filled(3 * MIB, 9)]
    placed = [memory.place(array) for array in given]
    assert address(placed[0]) % (2 * MIB) == 0
    assert [address(array) - address(placed[0]) for array in placed] == [0, MIB, MIB + 40_064]
    for one, other in zip(placed, given, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype is other.dtype


def test_a_block_that_is_full_is_followed_by_another() -> None:
    """What was placed before stays as it is."""
    memory = PackedMemory(4 * MIB)
    given = [filled(24 * MIB, number) for number in range(4)]
    placed = [memory.place(array) for array in given]
    for one, other in zip(placed, given, strict=True):
        np.testing.assert_array_equal(one, other)


def test_small_and_large_arrays_stay_where_they_are() -> None:
    """And those whose elements do not lie in order, or are objects."""
    memory = PackedMemory(4 * MIB)
    others = [filled(1024), np.empty(40 * MIB, np.uint8), filled(MIB).T, np.full(MIB, None)]
    assert all(memory.place(array) is array for array in others)


def test_the_weights_of_a_small_model_stay_where_they_are() -> None:
    """Its memory is not rounded up to huge pages."""
    memory, array = PackedMemory(4 * MIB - 1), filled(MIB)
    assert memory.place(array) is array
