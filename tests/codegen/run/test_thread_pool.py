"""The pool: every task once, whoever is late, forks, stops or interrupts."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from support.cancelling import after, ended_by, handler, interrupt

from sardonyx.cancellation import Flag
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import DONE, Buffer, KernelCall, StepTable
from sardonyx.codegen.run.thread_pool import ThreadPool, shared_pool
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array
from sardonyx.errors import RunTerminated

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


@pytest.fixture(scope="module")
def engine() -> Engine:
    """A kernel that counts each of its tasks, one that takes its time, and one that counts where the task so far before it has been done."""
    module = Module(host_target())
    with module.kernel("count") as b, b.loop(b.begin, b.end) as task:
        b.atomic_add(b.buffer(0, I64).at(task), 1)
    with module.kernel("linger") as b, b.loop(b.begin, b.end) as task:
        with b.loop(0, b.param(0)):
            b.pause()
        b.atomic_add(b.buffer(0, I64).at(task), 1)
    with module.kernel("round") as b, b.loop(b.begin, b.end) as task:
        counts, together = b.buffer(0, I64), b.param(0)
        with b.loop(0, b.param(1)):
            b.pause()
        least = b.variable(b.const(I64, 1))
        with b.loop(0, task // together * together) as before:
            least.set(b.min(least.value, b.atomic_load(counts.at(before))))
        b.atomic_add(counts.at(task), least.value)
    with module.kernel("follow") as b, b.loop(b.begin, b.end) as task:
        counts = b.buffer(0, I64)
        before = b.max(task - b.param(0), b.const(I64, 0))
        count = b.atomic_load(counts.at(task))
        with b.when((task < b.param(0)) | (b.atomic_load(counts.at(before)) > count)):
            b.atomic_add(counts.at(task), 1)
    engine = Engine(host_target())
    engine.add(module)
    return engine


@pytest.fixture(scope="module")
def driver() -> Driver:
    """A driver on the pool of the process."""
    return Driver(host_target())


def _table(engine: Engine, counts: Array, regions: int, threads: int, kernel: str = "count", turns: int = 0) -> StepTable:
    step = KernelCall(engine.address(kernel), [Buffer(1)], [turns], counts.size)
    table = StepTable([step] * regions, 1, threads=threads)
    table.set_bases([counts.ctypes.data])
    return table


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("tasks", [1, 2, 7, 8, 1000])
def test_every_task_is_done_once(engine: Engine, driver: Driver, threads: int, tasks: int) -> None:
    """In thousands of regions in a row no task is lost or done twice, with more threads than processors too."""
    counts = np.zeros(tasks, np.int64)
    assert driver.run(_table(engine, counts, 2000, threads)) == -1
    assert (counts == 2000).all()


def test_more_runs_at_a_time_than_the_pool_serves(engine: Engine, driver: Driver) -> None:
    """Runs that find the pool taken do their work alone."""
    results = [np.zeros(16, np.int64) for _ in range(4)]

    def work(counts: Array) -> None:
        call = driver.prepare(_table(engine, counts, 50, threads=2))
        for _ in range(100):
            call()

    threads = [threading.Thread(target=work, args=(counts,)) for counts in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((counts == 5000).all() for counts in results)


def test_workers_sleep_when_nothing_is_to_do(engine: Engine, driver: Driver) -> None:
    """After a run the workers give their processors back."""
    driver.run(_table(engine, np.zeros(8, np.int64), 10, threads=2))
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.1


def test_sleeping_workers_are_woken(engine: Engine, driver: Driver) -> None:
    """Runs with pauses between them, and long tasks that leave workers time to fall asleep, complete."""
    counts = np.zeros(4, np.int64)
    call = driver.prepare(_table(engine, counts, 2, threads=2, kernel="linger", turns=20_000))
    for _ in range(5):
        call()
        time.sleep(0.02)
    assert (counts == 10).all()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not tell on which processors a thread may run")
def test_waking_a_worker_leaves_it_the_processors_that_it_had(engine: Engine, driver: Driver) -> None:
    """The caller's processor is forbidden to a worker only while it is woken."""
    call = driver.prepare(_table(engine, np.zeros(4, np.int64), 2, threads=2, kernel="linger", turns=20_000))
    call()
    workers = [thread.native_id for thread in threading.enumerate() if thread.name.startswith("sardonyx-")]
    before = [os.sched_getaffinity(worker) for worker in workers if worker is not None]
    for _ in range(5):
        time.sleep(0.02)
        call()
    assert [os.sched_getaffinity(worker) for worker in workers if worker is not None] == before


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_has_its_own_workers(engine: Engine, driver: Driver) -> None:
    """Parent and child go on with the same tables."""
    counts = np.zeros(8, np.int64)
    call = driver.prepare(_table(engine, counts, 10, threads=2))
    call()
    child = os.fork()
    if child == 0:
        call()
        os._exit(0 if (counts == 20).all() and shared_pool().workers == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    call()
    assert (counts == 20).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_leaves_the_pool_usable(engine: Engine, driver: Driver, threads: int) -> None:
    """Ctrl-C in the middle of a step ends the run there, not when all tasks are done; the next run works."""
    counts = np.zeros(1000, np.int64)
    call = driver.prepare(_table(engine, counts, 1, threads, "linger", turns=1_000_000))
    with handler(signal.default_int_handler), after(0.2, interrupt), pytest.raises(KeyboardInterrupt):
        call()
    assert counts.max() == 1
    assert not counts.all()
    counts[:] = 0
    assert driver.run(_table(engine, counts, 10, threads)) == DONE
    assert (counts == 10).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_run_that_pauses_does_every_task_once(engine: Engine, driver: Driver, threads: int) -> None:
    """A handler that returns lets the run go on where it was."""
    counts, heard = np.zeros(2000, np.int64), []
    call = driver.prepare(_table(engine, counts, 2, threads, "linger", turns=20_000))
    with handler(lambda *_: heard.append(1)):
        assert call(paused=interrupt) == DONE
    assert heard
    assert (counts == 2).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_flag_ends_a_run_in_any_thread(engine: Engine, driver: Driver, threads: int) -> None:
    """The run pauses soon after the flag is set, in the middle of a step; what is raised then comes out."""
    counts, flag = np.zeros(1000, np.int64), Flag()
    call = driver.prepare(_table(engine, counts, 1, threads, "linger", turns=1_000_000))
    caught = []

    def work() -> None:
        with ended_by(flag) as cancellation:
            try:
                call(cancellation.address, cancellation.check)
            except RunTerminated as error:
                caught.append(error)

    thread = threading.Thread(target=work)
    with after(0.2, lambda: flag.set(True)):
        thread.start()
        thread.join()
    assert len(caught) == 1
    assert not counts.all()
    assert driver.run(_table(engine, counts, 1, threads)) == DONE


@pytest.mark.parametrize("threads", [1, 2])
def test_no_more_tasks_than_allowed_run_together(engine: Engine, driver: Driver, threads: int) -> None:
    """Where each needs a part of a workspace, a task waits for those that are so many numbers before it."""
    counts = np.zeros(30, np.int64)
    step = KernelCall(engine.address("follow"), [Buffer(1)], [4], counts.size, together=4)
    table = StepTable([step] * 50, 1, threads=threads)
    table.set_bases([counts.ctypes.data])
    for _ in range(20):
        counts[:] = 0
        assert driver.run(table) == DONE
        assert (counts == 50).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_tasks_of_a_round_end_before_the_next_begins(engine: Engine, driver: Driver, threads: int) -> None:
    """Also where the run has paused in the middle of one: rounds begin at multiples of how many tasks run together."""
    counts, heard = np.zeros(600, np.int64), []
    step = KernelCall(engine.address("round"), [Buffer(1)], [4, 10_000], counts.size, together=4)
    table = StepTable([step], 1, threads=threads)
    table.set_bases([counts.ctypes.data])
    call = driver.prepare(table)
    with handler(lambda *_: heard.append(1)):
        assert call(paused=interrupt) == DONE
    assert heard
    assert (counts == 1).all()


def test_a_worker_whose_start_is_interrupted_is_counted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a run waits for its first worker to come up leaves that worker to the pool, which ends it like the others."""
    pool = ThreadPool()
    counts = np.zeros(8, np.int64)
    call = Driver(host_target(), pool=pool).prepare(_table(engine, counts, 100, threads=2))
    start, started = threading.Thread.start, []

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            call()
    assert pool.workers == 1
    call()
    assert (counts == 100).all()
    pool.stop()
    assert [thread.is_alive() for thread in started] == [False]


def test_a_stopped_pool_starts_again(engine: Engine) -> None:
    """Threads end when told and are started anew when needed."""
    pool = ThreadPool()
    driver = Driver(host_target(), pool=pool)
    for _ in range(3):
        counts = np.zeros(8, np.int64)
        driver.run(_table(engine, counts, 100, threads=3))
        assert (counts == 100).all()
        assert pool.workers == 2
        pool.stop()
        assert pool.workers == 0


def test_python_ends_with_workers_asleep_or_at_work() -> None:
    """A process that used the pool exits by itself, also while another thread runs a table."""
    script = """
import threading, numpy as np
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.step_table import DONE, Buffer, KernelCall, StepTable
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.target import host_target
from sardonyx.codegen.emit.types import I64
module = Module(host_target())
with module.kernel("count") as b, b.loop(b.begin, b.end) as task:
    b.atomic_add(b.buffer(0, I64).at(task), 1)
engine = Engine(host_target())
engine.add(module)
counts = np.zeros(8, np.int64)
table = StepTable([KernelCall(engine.address("count"), [Buffer(1)], [], 8)] * 100, 1, threads=2)
table.set_bases([counts.ctypes.data])
call = Driver(host_target()).prepare(table)
call()
def forever():
    while True:
        call()
threading.Thread(target=forever, daemon=True).start()
"""
    finished = subprocess.run([sys.executable, "-c", script], timeout=600, capture_output=True, check=False)
    assert finished.returncode == 0, finished.stderr.decode()


def test_there_is_one_pool() -> None:
    """All sessions of a process share its threads."""
    assert shared_pool() is shared_pool()
