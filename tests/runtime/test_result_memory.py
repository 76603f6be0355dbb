"""Memory of large results."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from support.cpu_run import cpu_session

from sardonyx.dtypes import Array
from sardonyx.runtime.result_memory import LEAST_BYTES, ResultMemory

MIB = 1 << 20


def address(view: Array) -> int:
    return int(view.ctypes.data)


@pytest.mark.parametrize("size", [1, 63, 64, 1000, MIB - 1, MIB, MIB + 1])
def test_memory_has_its_size_and_is_aligned(size: int) -> None:
    """Whatever is taken, to the byte."""
    view = ResultMemory(2).take(size)
    assert (view.nbytes, address(view) % 64, view.flags.writeable) == (size, 0, True)


def test_memory_that_nobody_refers_to_is_taken_again() -> None:
    """For one that is a little larger, too."""
    memory = ResultMemory(2)
    array = np.ndarray((MIB,), np.uint8, memory.take(MIB))
    place = array.ctypes.data
    part = array[5:]
    del array
    assert memory.idle_bytes == 0
    del part
    assert memory.idle_bytes > MIB
    assert address(memory.take(MIB - 5000)) == place


def test_no_more_blocks_are_kept_than_there_are_results() -> None:
    """The others go back to the system."""
    memory = ResultMemory(2)
    views = [memory.take(MIB) for _ in range(5)]
    del views
    assert 2 * MIB <= memory.idle_bytes < 3 * MIB


def test_blocks_that_are_too_small_go_as_larger_ones_come() -> None:
    """Of results that grow, no size but the latest is kept."""
    memory, held = ResultMemory(4), []
    for step in range(100):
        held = [memory.take(MIB + (step * MIB >> 3)) for _ in range(2)]
        assert memory.idle_bytes <= 2 * 2 * held[0].nbytes
    del held


def test_what_is_idle_can_be_given_back() -> None:
    """All of it."""
    memory = ResultMemory(4)
    memory.take(MIB)
    idle = memory.idle_bytes
    assert memory.trim() == idle > 0
    assert memory.idle_bytes == 0


def test_results_may_outlive_their_memory() -> None:
    """Their blocks then go with them."""
    memory = ResultMemory(4)
    view = memory.take(MIB)
    del memory
    gc.collect()
    view[-1] = 7
    assert view[-1] == 7


def test_threads_never_get_one_block() -> None:
    """Whoever takes and drops at the same time."""
    memory, wrong = ResultMemory(8), []

    def work(number: int) -> None:
        for _ in range(300):
            array = np.ndarray((4096,), np.uint8, memory.take(4096))
            array[:] = number
            wrong.extend(array[array != number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_of_sessions_lie_in_blocks_and_are_their_owners() -> None:
    """Large ones of runs in Python: they are writeable, no copies, and never change as later runs fill others."""
    session = cpu_session("graph(x: float[n]) -> (y) { y = Relu(x) }")
    count = (1 << 21) + 1
    first = session.run(None, {"x": np.ones(count, np.float32)})[0]
    second = session.run(None, {"x": np.full(count, 2, np.float32)})[0]
    assert type(first) is np.ndarray
    assert first.flags.writeable
    assert (first.max(), second.max()) == (1, 2)
    place = first.ctypes.data
    del first
    third = session.run(None, {"x": second})[0]
    assert (third.ctypes.data, third.max()) == (place, 2)


def test_a_result_that_is_what_was_fed_is_a_copy() -> None:
    """Also where that lies in a block."""
    session = cpu_session("graph(x: float[n]) -> (y, z) { y = Relu(x) z = Identity(x) }")
    first = session.run(None, {"x": np.ones(LEAST_BYTES // 4, np.float32)})[0]
    found = session.run(None, {"x": first})[1]
    assert not np.may_share_memory(first, found)
