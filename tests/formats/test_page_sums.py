"""Sums of the pages of files."""

from __future__ import annotations

import numpy as np
import pytest
from support.cancelling import ended_by

from sardonyx.cancellation import Flag
from sardonyx.errors import RunTerminated
from sardonyx.formats.page_sums import PageSums, code_of_sums

CONTENT = np.random.default_rng(0).integers(0, 256, 40_000, np.uint8)


def _pages(*pieces: int) -> PageSums:
    """The sums of the content, read in pieces of so many bytes and a last one of the rest."""
    sums, begin = PageSums(), 0
    for size in (*pieces, len(CONTENT)):
        sums.note(CONTENT.data[begin : begin + size])
        begin = min(begin + size, len(CONTENT))
    return sums


@pytest.mark.parametrize("begin", [0, 1, 64, 4095, 4096, 8200])
@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 8192, 20_000, 31_000])
@pytest.mark.parametrize("pieces", [(), (4096,), (8192, 4096, 12288), (4096, 100)])
def test_known_sums_give_the_code_of_computed_ones(begin: int, size: int, pieces: tuple[int, ...]) -> None:
    """In whatever pieces the file was read, and whether a block begins and ends with a page or not."""
    block = CONTENT.data[begin : begin + size]
    assert code_of_sums(block, begin, _pages(*pieces).pages()) == code_of_sums(block, begin)


@pytest.mark.parametrize("begin", [0, 64])
def test_every_changed_byte_changes_the_code(begin: int) -> None:
    """Within pages, and before and behind them."""
    content = CONTENT[:9000].copy()
    code = code_of_sums(content.data, begin)
    for place in (*range(0, len(content), 37), len(content) - 1):
        content[place] ^= 0x80
        assert code_of_sums(content.data, begin) != code
        content[place] ^= 0x80
    assert code_of_sums(content.data, begin) == code


def test_pages_that_changed_places_change_the_code() -> None:
    """The sums are in order."""
    swapped = np.concatenate([CONTENT[4096:8192], CONTENT[:4096], CONTENT[8192:]])
    assert code_of_sums(swapped.data, 0) != code_of_sums(CONTENT.data, 0)


def test_summing_is_ended() -> None:
    """By whatever ends the load."""
    with ended_by(Flag(True)), pytest.raises(RunTerminated):
        code_of_sums(memoryview(bytes(1 << 20)), 0)
