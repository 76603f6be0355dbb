"""Fenced memory, and programs that run in it."""

import ctypes
import faulthandler
import os
import signal

import numpy as np
import pytest
from support.cpu_run import cpu_session

from sardonyx.errors import InvalidArgument, RuntimeException
from sardonyx.providers.cpu.guard import Block, Fence, place_fenced

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="unmapping pages and forking is for POSIX systems")
_FORKS = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_BODY = "graph(x: float[n, 3], w: float[3, n]) -> (y, z) { c: float[3] = [1, 2, 3] a = Softmax(x) b = Add(a, c) y = Mul(b, a) z = MatMul(a, w) }"


def _signal_of(address: int, *, writes: bool) -> int:
    """The signal that stops a child of this process which touches an address; 0 where none does."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        if writes:
            ctypes.memset(address, 1, 1)
        else:
            ctypes.string_at(address, 1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def test_each_block_ends_where_an_unmapped_page_begins() -> None:
    """Also an empty one, and one of whole pages."""
    found = place_fenced([4, 0, _PAGE, _PAGE + 8])
    pages = [(1, 2), (3, 4), (5, 6), (7, 9)]
    firsts = [2 * _PAGE - 4, 4 * _PAGE, 5 * _PAGE, 8 * _PAGE - 8]
    assert found == [Block(a * _PAGE, first, b * _PAGE) for (a, b), first in zip(pages, firsts, strict=True)]


@_FORKS
@pytest.mark.parametrize("writes", [False, True])
def test_the_byte_behind_a_block_cannot_be_touched(writes: bool) -> None:
    """Neither read nor written; the last byte of the block can."""
    fence = Fence([12, _PAGE, 0])
    for index, size in enumerate([12, _PAGE, 0]):
        assert _signal_of(fence.address_of(index) + size, writes=writes) in (signal.SIGSEGV, signal.SIGBUS)
    assert _signal_of(fence.address_of(0) + 11, writes=writes) == 0
    assert _signal_of(fence.address, writes=writes) in (signal.SIGSEGV, signal.SIGBUS)


def test_a_write_before_a_block_is_found() -> None:
    """It names the block."""
    fence = Fence([12, 12])
    fence.check()
    ctypes.memset(fence.address_of(1) - 1, 1, 1)
    with pytest.raises(RuntimeException, match="before block 1, of 12 bytes"):
        fence.check()


@_FORKS
def test_constants_cannot_be_written_to() -> None:
    """They can be read."""
    numbers = np.arange(5, dtype=np.int16)
    fence = Fence.of_constants([numbers, numbers[:0]])
    assert ctypes.string_at(fence.address_of(0), 10) == numbers.tobytes()
    assert _signal_of(fence.address_of(0), writes=True) in (signal.SIGSEGV, signal.SIGBUS)


def test_blocks_are_filled_and_read() -> None:
    """From arrays that need not be dense, to dense ones; they begin as NaN."""
    fence = Fence([24, 24])
    source, result = np.arange(6, dtype=np.float32).reshape(2, 3).T, np.zeros((2, 3), np.float32)
    fence.copy_to(1, result)
    assert np.isnan(result).all()
    fence.fill(0, source)
    fence.copy_to(0, result)
    assert result.ravel().tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("size", [0, 1, 7, 1500])
def test_guarded_programs_compute_the_same(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Inputs, outputs, constants and what is in between lie behind fences."""
    generator = np.random.default_rng(size)
    feeds = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in (("x", (size, 3)), ("w", (3, size)))}
    expected = cpu_session(_BODY).run(None, feeds)
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    session = cpu_session(_BODY)
    for _ in range(2):
        for found, wanted in zip(session.run(None, feeds), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_errors_of_guarded_kernels_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index out of range is one, in every run."""
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    session = cpu_session("graph(x: float[3], i: int64[n]) -> (y) { y = Gather(x, i) }")
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="out of range"):
            session.run(None, {"x": np.zeros(3, np.float32), "i": np.array([0, 3])})
