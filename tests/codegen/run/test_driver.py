"""Tables of steps: pointers, parameters, failures, copies."""

import threading
import time

import numpy as np
import pytest
from support.cancelling import ended_by

from sardonyx.cancellation import Flag
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import DONE, STATUS, Buffer, KernelCall, StepTable
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array
from sardonyx.errors import RunTerminated


@pytest.fixture(scope="module")
def engine() -> Engine:
    """`axpy`: y += a x on n elements; `check`: fails with code 7 if its parameter is negative."""
    module = Module(host_target())
    with module.kernel("axpy") as b:
        x, y, a = b.buffer(0, F32), b.buffer(1, F32), b.param_float(1)
        for i, span in b.vectors(0, b.param(0), F32):
            y.store(b.fma(x.load(i, span), a, y.load(i, span)), i, span)
    with module.kernel("check") as b, b.when(b.param(0) < 0):
        b.buffer(0, I64).store(7)
    engine = Engine(host_target())
    engine.add(module)
    return engine


@pytest.fixture(scope="module")
def driver() -> Driver:
    """A driver."""
    return Driver(host_target())


def _axpy(engine: Engine, x: Buffer, y: Buffer, n: int, a: float) -> KernelCall:
    return KernelCall(engine.address("axpy"), [x, y], [n, float_word(a)])


def _addresses(*arrays: Array) -> list[int]:
    return [array.ctypes.data for array in arrays]


def test_steps_run_in_order_on_their_own_arguments(engine: Engine, driver: Driver) -> None:
    """Each step has its buffers, at offsets from the bases, and its parameters."""
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    steps = [_axpy(engine, Buffer(1), Buffer(2), 8, 2.0), _axpy(engine, Buffer(2, 16), Buffer(2), 4, 0.5)]
    table = StepTable(steps, 2)
    table.set_bases(_addresses(x, y))
    assert driver.run(table) == -1
    assert y.tolist() == [4, 7, 10, 13, 8, 10, 12, 14]


def test_bases_change_from_run_to_run(engine: Engine, driver: Driver) -> None:
    """One prepared table serves every input and output."""
    table = StepTable([_axpy(engine, Buffer(1), Buffer(2), 4, 1.0)], 2)
    call = driver.prepare(table)
    for size in range(4, 10):
        x, y = np.full(size, size, np.float32), np.ones(size, np.float32)
        table.set_bases(_addresses(x, y))
        call()
        assert y.tolist() == [size + 1] * 4 + [1] * (size - 4)


def test_a_failing_step_stops_the_run(engine: Engine, driver: Driver) -> None:
    """The caller learns which step failed and what it reported; later steps do not run; the next run starts clean."""
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    good, bad = (KernelCall(engine.address("check"), [Buffer(STATUS)], [number]) for number in (1, -1))
    add = _axpy(engine, Buffer(1), Buffer(2), 4, 1.0)
    table = StepTable([good, add, bad, add], 2)
    table.set_bases(_addresses(x, y))
    assert (driver.run(table), table.status) == (2, 7)
    assert y.tolist() == [1] * 4
    table.set_range(0, 2)
    assert (driver.run(table), table.status) == (-1, 0)


def test_a_kernel_says_which_step_follows(driver: Driver) -> None:
    """`count` skips one step, and goes back two until its number is 0: a run ends with the next number."""
    module = Module(host_target())
    with module.kernel("count") as b:
        number, status = b.buffer(1, I64), b.buffer(0, I64)
        number.store(number.load() - 1)
        status.store(b.select(number.load() > 0, b.const(I64, -2), 1), 1)
    with module.kernel("double") as b:
        b.buffer(0, I64).store(b.buffer(0, I64).load() * 2)
    engine = Engine(host_target())
    engine.add(module)
    left, x = np.array([5]), np.array([1])
    double = KernelCall(engine.address("double"), [Buffer(2)], [])
    table = StepTable([double, KernelCall(engine.address("count"), [Buffer(STATUS), Buffer(1)], []), double, double], 2)
    table.set_bases(_addresses(left, x))
    assert driver.run(table) == DONE
    assert x.tolist() == [1 << 6]


def test_a_kernel_asks_for_the_caller(driver: Driver) -> None:
    """It reports less than 0, and is called again when he has answered; without him that is a failure."""
    module = Module(host_target())
    with module.kernel("ask") as b, b.when(b.buffer(1, I64).load() > 0):
        b.buffer(0, I64).store(-3)
    engine = Engine(host_target())
    engine.add(module)
    left = np.array([2])
    table = StepTable([KernelCall(engine.address("ask"), [Buffer(STATUS), Buffer(1)], [])], 1)
    table.set_bases(_addresses(left))
    call = driver.prepare(table)
    assert (call(), table.status) == (0, -3)

    def answer() -> None:
        left[0] -= 1

    assert (call(0, None, answer), left.item(), table.status) == (DONE, 0, 0)


def test_a_range_of_steps_runs_alone(engine: Engine, driver: Driver) -> None:
    """A profiler runs one step at a time."""
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    table = StepTable([_axpy(engine, Buffer(1), Buffer(2), 4, 10.0**k) for k in range(4)], 2)
    table.set_bases(_addresses(x, y))
    table.set_range(1, 3)
    driver.run(table)
    assert y.tolist() == [110] * 4


def test_no_steps_and_no_tasks_are_fine(engine: Engine, driver: Driver) -> None:
    """An empty table runs; a step of no tasks does nothing."""
    assert driver.run(StepTable([], 0)) == -1
    for threads in (1, 2):
        calls = [
            KernelCall(engine.address("axpy"), [Buffer(1), Buffer(1)], [0, 0], 0),
            KernelCall(engine.address("check"), [], [-1], 0),
        ]
        table = StepTable(calls, 1, threads=threads)
        table.set_bases([0])
        assert driver.run(table) == -1


def test_copies_run_at_the_same_time(engine: Engine, driver: Driver) -> None:
    """Each copy has pointers of its own, and leaves the original as it was."""
    original = StepTable([_axpy(engine, Buffer(1), Buffer(2), 1000, 1.0)] * 50, 2)
    arrays = [(np.full(1000, k, np.float32), np.zeros(1000, np.float32)) for k in range(4)]

    def work(x: Array, y: Array) -> None:
        table = original.copy()
        table.set_bases(_addresses(x, y))
        call = driver.prepare(table)
        for _ in range(20):
            call()

    threads = [threading.Thread(target=work, args=pair) for pair in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [float(y[0]) for _, y in arrays] == [0, 1000, 2000, 3000]


def test_a_prepared_run_keeps_what_it_needs(engine: Engine) -> None:
    """Table and driver live as long as the function that runs them."""
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)

    def prepare() -> object:
        table = StepTable([_axpy(engine, Buffer(1), Buffer(2), 4, 1.0)], 2)
        table.set_bases(_addresses(x, y))
        return Driver(host_target()).prepare(table)

    call = prepare()
    scratch = [np.full(64, -1, np.int64) for _ in range(50)]
    assert callable(call)
    assert call() == -1
    assert y.tolist() == [1] * 4
    assert len(scratch) == 50


def test_a_run_costs_microseconds(engine: Engine, driver: Driver) -> None:
    """A tiny step from Python takes a few microseconds, a hundred of them fewer than ten in the best of many runs."""
    x = np.ones(8, np.float32)
    for steps, bound in ((1, 5e-6), (100, 1e-5)):
        table = StepTable([_axpy(engine, Buffer(1), Buffer(1), 6, 0.0)] * steps, 1)
        table.set_bases(_addresses(x))
        call = driver.prepare(table)
        times = []
        for _ in range(2000):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        assert min(times) < bound


def test_a_run_goes_on_with_the_step_that_it_paused_in(engine: Engine, driver: Driver) -> None:
    """Steps are neither left out nor repeated, and `step` says where the run stands."""
    x, y = np.ones(1 << 16, np.float32), np.zeros(1 << 16, np.float32)
    table = StepTable([_axpy(engine, Buffer(1), Buffer(2), x.size, 1.0)] * 20_000, 2)
    table.set_bases(_addresses(x, y))
    places: list[int] = []
    assert driver.prepare(table)(paused=lambda: places.append(table.step)) == DONE
    assert (y == 20_000).all()
    assert places == sorted(places)
    assert 0 < places[0] < 20_000


def test_a_run_that_was_given_up_begins_anew(engine: Engine, driver: Driver) -> None:
    """What a pause raises ends the run; the next one starts with the first step."""
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    table = StepTable([_axpy(engine, Buffer(1), Buffer(2), 4, 1.0)] * 8, 2)
    table.set_bases(_addresses(x, y))
    call = driver.prepare(table)
    with ended_by(Flag(True)) as cancellation, pytest.raises(RunTerminated):
        call(cancellation.address, cancellation.check)
    done = float(y[0])
    assert done < 8
    assert call() == DONE
    assert y.tolist() == [done + 8] * 4


def test_a_driver_of_an_edition_has_all_functions(engine: Engine) -> None:
    """It is compiled once for an edition, and runs as any."""
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    table = StepTable([_axpy(engine, Buffer(1), Buffer(2), 4, 1.0)] * 3, 2)
    table.set_bases(_addresses(x, y))
    named = Driver(engine.target, edition="test")
    assert named.run(table) == DONE
    assert y.tolist() == [3.0] * 4
    assert set(named._engine.symbols) == set(Driver(engine.target)._engine.symbols)
