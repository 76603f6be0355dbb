"""Memory at addresses that a user gives."""

from __future__ import annotations

import mmap
import os
import sys

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.values.mapped_memory import require_memory

POSIX = pytest.mark.skipif(os.name != "posix", reason="the system does not say what memory there is")


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("count", [1, 4095, 4097, 1 << 20])
def test_memory_that_is_there_passes(count: int, writes: bool) -> None:
    """And keeps its bytes."""
    array = np.arange(count, dtype=np.uint8)
    require_memory(array.ctypes.data, count, writes=writes)
    assert (array == np.arange(count, dtype=np.uint8)).all()


@pytest.mark.parametrize("start", [0, -1, 1 << 63, (1 << 64) - 8, (1 << 63) - 4])
def test_what_is_no_address_is_refused(start: int) -> None:
    """Whatever the system."""
    with pytest.raises(InvalidArgument, match="where no memory can be"):
        require_memory(start, 8, writes=False)


@POSIX
@pytest.mark.parametrize("start", [1, 4096, 0xDEADBEEF000])
def test_a_wild_address_is_refused(start: int) -> None:
    """No memory is mapped there."""
    with pytest.raises(InvalidArgument, match="the process has no memory from"):
        require_memory(start, 8, writes=False)


@POSIX
def test_all_pages_are_looked_for() -> None:
    """A range that begins in memory and goes on for terabytes."""
    array = np.zeros(8, np.uint8)
    with pytest.raises(InvalidArgument, match="the process has no memory from"):
        require_memory(array.ctypes.data, 1 << 44, writes=False)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_what_cannot_be_written_is_refused() -> None:
    """It can be read."""
    page = np.frombuffer(mmap.mmap(-1, 4096, prot=mmap.PROT_READ), np.uint8)
    require_memory(page.ctypes.data, 4096, writes=False)
    with pytest.raises(InvalidArgument, match="cannot be written"):
        require_memory(page.ctypes.data, 4096, writes=True)
