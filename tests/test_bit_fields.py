"""Numbers of a few bits in bytes."""

import numpy as np
import pytest

from sardonyx.bit_fields import pack_bits, unpack_bits


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("count", [0, 1, 7, 8, 24])
def test_numbers_come_back(bits: int, count: int) -> None:
    """In as few bytes as hold them."""
    numbers = np.random.default_rng(bits).integers(0, 1 << bits, (2, 3, count)).astype(np.uint8)
    packed = pack_bits(numbers, bits)
    assert (packed.dtype, packed.shape) == (np.uint8, (2, 3, -(-count * bits // 8)))
    np.testing.assert_array_equal(unpack_bits(packed, bits)[..., :count], numbers)


@pytest.mark.parametrize("bits", range(1, 9))
def test_the_first_number_is_in_the_lowest_bits(bits: int) -> None:
    """And they follow one another across the ends of bytes."""
    numbers = np.random.default_rng(bits).integers(0, 1 << bits, 8).astype(np.uint8)
    whole = sum(int(number) << (bits * place) for place, number in enumerate(numbers))
    assert pack_bits(numbers, bits).tobytes() == whole.to_bytes(bits, "little")


def test_higher_bits_are_left_out() -> None:
    """Of numbers that are too large."""
    assert pack_bits(np.array([0xFF, 0x10], np.uint8), 4).tolist() == [0x0F]
    assert pack_bits(np.array([0xFF, 0x10], np.uint8), 3).tolist() == [0x07]
