"""The parallel executor."""

from __future__ import annotations

import gc
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.branches import SlowDevice, branching_text, plan_of
from support.cancelling import after, ended_by, handler, interrupt, interrupted_starts

from sardonyx.cancellation import Flag
from sardonyx.errors import EPFail, RunTerminated
from sardonyx.runtime.executors.parallel import ParallelExecutor
from sardonyx.runtime.executors.sequential import SequentialExecutor

BRANCHES = """graph(x: float[n]) -> (y: float[n]) {
    a = Relu(x)
    b = Neg(x)
    c = Mul(x, x)
    d = Add(a, b)
    y = Add(d, c)
}"""


def _devices(most_seconds: float = 0.0, seed: int = 0) -> list[SlowDevice]:
    operators = {"A": ["Relu"], "B": ["Neg"], "C": ["Mul"], "D": ["Add"]}
    return [SlowDevice(name, items, most_seconds, seed) for name, items in operators.items()]


@pytest.mark.parametrize("seed", range(12))
def test_results_are_those_of_the_sequential_executor(seed: int) -> None:
    """Bit for bit, in whatever order the steps of four devices end."""
    plan = plan_of(branching_text(seed, 30), *_devices(0.0008, seed))
    one, other = SequentialExecutor(plan), ParallelExecutor(plan, 4)
    for size in (5, 1000, 0, 1000):
        x = np.random.default_rng(seed).uniform(-1, 1, size).astype(np.float32)
        for left, right in zip(one.run([x]), other.run([x]), strict=True):
            np.testing.assert_array_equal(left, right)


def test_branches_run_at_the_same_time() -> None:
    """Three steps wait for one another at a barrier, which only threads of their own can pass."""
    barrier = threading.Barrier(3, timeout=20)

    class Meeting(SlowDevice):
        def _sleep(self) -> None:
            barrier.wait()

    plan = plan_of(BRANCHES, Meeting("A", ["Relu"]), Meeting("B", ["Neg"]), Meeting("C", ["Mul"]), SlowDevice("D", ["Add"]))
    x = np.float32([2, -3])
    assert ParallelExecutor(plan, 3).run([x])[0].tolist() == (np.maximum(x, 0) - x + x * x).tolist()


def test_it_uses_no_more_threads_than_it_may() -> None:
    """With one thread it is the calling one that runs all."""
    seen: set[str] = set()

    class Watched(SlowDevice):
        def _sleep(self) -> None:
            seen.add(threading.current_thread().name)

    plan = plan_of(BRANCHES, *(Watched(operator, [operator]) for operator in ("Relu", "Neg", "Mul", "Add")))
    ParallelExecutor(plan, 1).run([np.zeros(2, np.float32)])
    assert seen == {threading.current_thread().name}


def test_many_threads_may_run_it_at_once() -> None:
    """Each run has a frame and arenas of its own."""
    executor = ParallelExecutor(plan_of(BRANCHES, *_devices(0.0005)), 2)

    def right(seed: int) -> bool:
        x = np.random.default_rng(seed).uniform(-1, 1, 100 + seed).astype(np.float32)
        expected = np.maximum(x, 0) - x + x * x
        return all(np.array_equal(executor.run([x])[0], expected) for _ in range(10))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, range(4)))


def test_of_several_errors_the_first_step_s_is_raised() -> None:
    """Nothing is running any more when it is, and the next run is right."""
    broken = [True]

    class Failing(SlowDevice):
        def _sleep(self) -> None:
            time.sleep(0.02 if self.name == "A" else 0)
            if broken[0]:
                raise RuntimeError(f"{self.name} is lost")

    plan = plan_of(BRANCHES, Failing("A", ["Relu"]), Failing("B", ["Neg"]), SlowDevice("C", ["Mul"]), SlowDevice("D", ["Add"]))
    executor = ParallelExecutor(plan, 2)
    with pytest.raises(EPFail, match="is lost"):
        executor.run([np.zeros(2, np.float32)])
    broken[0] = False
    assert executor.run([np.float32([2])])[0].tolist() == [4]


def test_a_terminated_run_stops_in_all_threads() -> None:
    """The flag of the run that was called is asked in helping threads too."""
    plan, flag = plan_of(branching_text(3, 60), *_devices(0.1)), Flag()
    with ended_by(flag), after(0.2, lambda: flag.set(True)), pytest.raises(RunTerminated):
        ParallelExecutor(plan, 4).run([np.zeros(2, np.float32)])


def test_an_interrupt_ends_the_steps_of_helping_threads() -> None:
    """What a thread that is interrupted leaves undone is not done by the others, and the error is the interrupt."""
    plan = plan_of(branching_text(3, 60), *_devices(0.1))
    executor = ParallelExecutor(plan, 4)
    x = np.zeros(2, np.float32)
    with handler(signal.default_int_handler), after(0.2, interrupt), pytest.raises(KeyboardInterrupt):
        executor.run([x])
    np.testing.assert_array_equal(executor.run([x])[0], SequentialExecutor(plan).run([x])[0])


def test_its_threads_end_with_it() -> None:
    """No thread of a freed executor is left."""
    before = threading.active_count()
    executor = ParallelExecutor(plan_of(BRANCHES, *_devices()), 3)
    executor.run([np.zeros(2, np.float32)])
    del executor
    gc.collect()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_an_interrupt_while_a_thread_starts_leaves_none_that_waits() -> None:
    """The thread runs, though what started it was interrupted; it would keep the process from ending."""
    executor = ParallelExecutor(plan_of(BRANCHES, *_devices()), 4)
    x = np.float32([2, -3])
    with interrupted_starts() as started, pytest.raises(KeyboardInterrupt):
        executor.run([x])
    started[0].join(20)
    assert not started[0].is_alive()
    assert executor.run([x])[0].tolist() == (np.maximum(x, 0) - x + x * x).tolist()


def test_where_no_thread_starts_the_caller_works_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that may have no more threads."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    x = np.float32([2, -3])
    executor = ParallelExecutor(plan_of(BRANCHES, *_devices()), 4)
    assert executor.run([x])[0].tolist() == (np.maximum(x, 0) - x + x * x).tolist()
