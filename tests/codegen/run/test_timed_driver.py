"""The driver that notes when steps end."""

import ctypes
import time

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import STATUS, Buffer, KernelCall, StepTable
from sardonyx.codegen.run.timed_driver import TimedDriver, can_time
from sardonyx.codegen.target import host_target, machine_target
from sardonyx.dtypes import Array

pytestmark = pytest.mark.skipif(not can_time(host_target()), reason="no clock is known for this system")


@pytest.fixture(scope="module")
def engine() -> Engine:
    """`count`: counts to its first parameter; `check`: fails with code 7 if its parameter is negative."""
    module = Module(host_target())
    with module.kernel("count") as b:
        word = b.buffer(0, I64)
        with b.loop(0, b.param(0)) as number:
            b.atomic_store(word.at(0), number)
    with module.kernel("check") as b, b.when(b.param(0) < 0):
        b.buffer(0, I64).store(7)
    engine = Engine(host_target())
    engine.add(module)
    return engine


@pytest.fixture(scope="module")
def driver() -> TimedDriver:
    """A driver."""
    return TimedDriver(host_target())


def _nanoseconds(times: Array) -> list[int]:
    return [10**9 * seconds + rest for seconds, rest in times[:, :2].tolist()]


@pytest.mark.parametrize("threads", [1, 2])
def test_times_lie_between_the_callers(engine: Engine, driver: TimedDriver, threads: int) -> None:
    """They are times of perf_counter_ns, in the order of the steps."""
    word = np.zeros(1, np.int64)
    table = StepTable([KernelCall(engine.address("count"), [Buffer(1)], [1000])] * 3, 1, threads=threads)
    table.set_bases([word.ctypes.data])
    times = TimedDriver.new_times(3)
    before = time.perf_counter_ns()
    assert driver.run(table, times.ctypes.data) == -1
    after = time.perf_counter_ns()
    found = [before, *_nanoseconds(times), after]
    assert len(found) == 6
    assert found == sorted(found)


def test_a_long_step_takes_long(engine: Engine, driver: TimedDriver) -> None:
    """The time of a step is its own: ten thousand times the work is more than a hundred times the time."""
    word = np.zeros(1, np.int64)
    table = StepTable([KernelCall(engine.address("count"), [Buffer(1)], [count]) for count in (100, 1_000_000)], 1)
    table.set_bases([word.ctypes.data])
    times = TimedDriver.new_times(2)
    driver.run(table, times.ctypes.data)
    first, second = np.diff(_nanoseconds(times))
    assert second > 100 * first


def test_a_failing_step_stops_the_run(engine: Engine, driver: TimedDriver) -> None:
    """As in the other driver, whose steps these are."""
    good, bad = (KernelCall(engine.address("check"), [Buffer(STATUS)], [number]) for number in (1, -1))
    table, times = StepTable([good, bad, good], 0), TimedDriver.new_times(3)
    assert (driver.run(table, times.ctypes.data), table.status) == (1, 7)


def test_a_step_that_runs_often_takes_what_it_took_in_all(driver: TimedDriver) -> None:
    """`back` goes back three times: the step before it has four times; one that was skipped has none, and all lie in a line."""
    module = Module(host_target())
    with module.kernel("wait") as b:
        word = b.buffer(0, I64)
        with b.loop(0, 200_000) as number:
            b.atomic_store(word.at(0), number)
    with module.kernel("back") as b:
        status, word = b.buffer(0, I64), b.buffer(1, I64)
        word.store(word.load() - 1)
        status.store(b.select(word.load() > 0, b.const(I64, -2), 1), 1)
    engine = Engine(host_target())
    engine.add(module)
    word, left = np.zeros(1, np.int64), np.array([4])
    wait = KernelCall(engine.address("wait"), [Buffer(1)], [])
    table = StepTable([wait, wait, KernelCall(engine.address("back"), [Buffer(STATUS), Buffer(2)], []), wait, wait], 2)
    table.set_bases([word.ctypes.data, left.ctypes.data])
    times = TimedDriver.new_times(5)
    before = time.perf_counter_ns()
    assert driver.run(table, times.ctypes.data) == -1
    after = time.perf_counter_ns()
    in_line = TimedDriver.in_line(times)
    found = _nanoseconds(in_line[:, :2])
    first, often, back, skipped, last = np.diff(found)
    assert before <= found[0] <= found[-1] <= after
    assert often > 2 * first
    assert skipped == 0
    assert min(back, last) > 0
    assert in_line[1:, 2].tolist() == [1, 4, 4, 0, 1]


def test_machine_code_runs_a_table_by_one_address(engine: Engine, driver: TimedDriver) -> None:
    """The times of a run are taken once; those of the next do not add to them."""
    word = np.zeros(1, np.int64)
    table = StepTable([KernelCall(engine.address("count"), [Buffer(1)], [1000])] * 3, 1)
    timed = driver.native(table, 3, in_line=True)
    assert timed.bases_address == table.bases_address
    table.set_bases([word.ctypes.data])
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(timed.run)
    assert timed.take_times() is None
    for _ in range(2):
        before = time.perf_counter_ns()
        assert run(timed.address) == -1
        after = time.perf_counter_ns()
        times = timed.take_times()
        assert times is not None
        found = [before, *_nanoseconds(times), after]
        assert len(found) == 6
        assert found == sorted(found)
        assert timed.take_times() is None


def test_machine_code_goes_on_after_a_pause(engine: Engine, driver: TimedDriver) -> None:
    """From where the table stands: here behind its last step, so that nothing is left to do."""
    table = StepTable([KernelCall(engine.address("check"), [Buffer(STATUS)], [1])] * 2, 0)
    timed = driver.native(table, 2, in_line=False)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(timed.run)(timed.address) == -1
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(timed.resume)(timed.address, 0) == -1


def test_a_system_without_a_known_clock_has_no_such_driver() -> None:
    """It is refused, before anything is compiled."""
    import dataclasses

    target = dataclasses.replace(machine_target("x86_64", ["sse3"], "portable"), triple="x86_64-pc-windows-msvc")
    assert not can_time(target)
    with pytest.raises(ValueError, match="ask can_time first"):
        TimedDriver(target)
