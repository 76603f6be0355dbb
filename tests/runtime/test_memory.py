"""The pool of arenas."""

from __future__ import annotations

import threading

import pytest

from sardonyx.aside import call_aside
from sardonyx.cancellation import Cancellation, Flag, reset_cancellation, set_cancellation
from sardonyx.dtypes import Array
from sardonyx.errors import RunTerminated, RuntimeException
from sardonyx.provider import HOST, HostMemory
from sardonyx.runtime.memory import ArenaPool


def test_the_pool_lends_an_idle_buffer_again() -> None:
    """What was given back and fits is lent instead of a new buffer."""
    pool = ArenaPool(HOST)
    entry = pool.borrow(1000)
    pool.give_back(entry)
    assert pool.borrow(500)[1] is entry[1]


def test_the_pool_lends_the_smallest_that_fits() -> None:
    """So that a large one is left for who needs it."""
    pool = ArenaPool(HOST)
    for entry in [pool.borrow(size) for size in (300, 100, 200)]:
        pool.give_back(entry)
    assert [pool.borrow(150)[0], pool.borrow(150)[0], pool.borrow(150)[0]] == [200, 300, 150]


def test_the_pool_never_lends_one_buffer_twice_at_a_time() -> None:
    """Two borrowers have two buffers."""
    pool = ArenaPool(HOST)
    assert pool.borrow(100)[1] is not pool.borrow(100)[1]


def test_the_pool_drops_what_a_run_has_left_behind() -> None:
    """Its work may still write there, while the next run has another buffer."""
    pool, go, flag = ArenaPool(HOST), threading.Event(), Flag(True)
    entry = pool.borrow(1000)
    token = set_cancellation(Cancellation(flag, lambda: RunTerminated("ended")))
    try:
        with pytest.raises(RunTerminated):
            call_aside(lambda: go.wait(10), [entry[1][8:16]])
    finally:
        reset_cancellation(token)
    pool.give_back(entry)
    go.set()
    assert (pool.held_bytes, pool.trim()) == (0, 0)
    assert pool.borrow(500)[1] is not entry[1]


def test_the_pool_keeps_a_bounded_number_of_buffers() -> None:
    """Beyond the bound the smallest goes, and trim gives back the rest."""
    pool = ArenaPool(HOST, keep=2)
    for entry in [pool.borrow(size) for size in (100, 200, 300)]:
        pool.give_back(entry)
    assert pool.trim() == 500
    assert pool.trim() == 0


def test_one_run_after_another_needs_one_buffer() -> None:
    """A larger one takes the place of the one that was too small."""
    pool = ArenaPool(HOST)
    for size in (100, 200, 300, 150):
        pool.give_back(pool.borrow(size))
    assert pool.held_bytes == 300


def test_trim_forgets_how_many_were_lent_at_a_time() -> None:
    """A burst of runs is over then."""
    pool = ArenaPool(HOST)
    for entry in [pool.borrow(100), pool.borrow(200)]:
        pool.give_back(entry)
    pool.trim()
    for size in (100, 200):
        pool.give_back(pool.borrow(size))
    assert pool.held_bytes == 200


def test_memory_that_there_is_not_counts_as_no_loan() -> None:
    """What is idle after it is kept as before."""
    pool = ArenaPool(_FullMemory())
    for _ in range(3):
        with pytest.raises(RuntimeException):
            pool.borrow(4096)
    assert pool._lent == 0


def test_a_buffer_is_taken_for_good_where_an_idle_one_fits() -> None:
    """It is not the pool's any more; one more than twice as large is left, for which there are larger runs."""
    pool = ArenaPool(HOST)
    small, large = pool.borrow(100), pool.borrow(1000)
    for entry in (small, large):
        pool.give_back(entry)
    assert pool.take(80) is small[1]
    assert pool.take(80).nbytes == 80
    assert pool.held_bytes == 1000


def test_a_shared_pool_keeps_its_buffers() -> None:
    """Since other sessions count on them."""
    pool = ArenaPool(HOST)
    pool.is_shared = True
    entry = pool.borrow(100)
    pool.give_back(entry)
    assert pool.take(100) is not entry[1]
    assert pool.held_bytes == 100


def test_host_buffers_are_aligned() -> None:
    """Each buffer begins on a cache line."""
    assert HOST.allocate(100).ctypes.data % 64 == 0


class _FullMemory(HostMemory):
    def allocate(self, size_bytes: int) -> Array:
        raise MemoryError


def test_memory_that_there_is_not_is_an_error_with_the_bytes_and_what_to_do() -> None:
    """And not Python's MemoryError."""
    with pytest.raises(
        RuntimeException, match=r"not enough memory for the intermediate tensors of a run, 4096 bytes: give smaller"
    ):
        ArenaPool(_FullMemory()).borrow(4096)
