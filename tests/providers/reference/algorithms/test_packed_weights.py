"""Unpacking numbers of 2 to 8 bits."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.packed_weights import BITS, WIDTHS, unpack


@pytest.mark.parametrize("bits", BITS)
def test_low_bits_come_first(bits: int) -> None:
    """Each byte gives 8 / bits numbers along the last axis."""
    packed = np.arange(256, dtype=np.uint8).reshape(2, 128)
    expected = np.stack([(packed >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)], axis=-1).reshape(2, -1)
    result = unpack(packed, bits)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, expected)


def test_an_offset_is_taken_off() -> None:
    """The default zero point of 4-bit weights is 8."""
    np.testing.assert_array_equal(unpack(np.array([0x80, 0x0F], np.uint8), 4, offset=8), [-8, 0, 7, -8])


def test_views_and_empty_arrays() -> None:
    """The input need not be contiguous."""
    packed = np.arange(8, dtype=np.uint8).reshape(2, 4)
    np.testing.assert_array_equal(unpack(packed[:, ::2], 8), packed[:, ::2])
    assert unpack(np.zeros((3, 0), np.uint8), 2).shape == (3, 0)


@pytest.mark.parametrize("bits", set(WIDTHS) - set(BITS))
def test_widths_that_fill_no_bytes(bits: int) -> None:
    """Numbers follow one another across the ends of bytes."""
    packed = np.arange(2 * bits, dtype=np.uint8).reshape(2, bits) * 37
    whole = [int.from_bytes(row.tobytes(), "little") for row in packed]
    expected = [[(row >> bits * place & (1 << bits) - 1) - 3 for place in range(8)] for row in whole]
    np.testing.assert_array_equal(unpack(packed, bits, 3), expected)


def test_other_widths_are_an_error() -> None:
    """From 2 to 8 bits there are."""
    with pytest.raises(InvalidArgument, match="bits is 9"):
        unpack(np.zeros(1, np.uint8), 9)
