"""The native side of the pool: every task once, whoever is late, forks or interrupts."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from support.cancelling import after, ended_by, handler, interrupt
from support.counting import counting_engine, counting_table

from sardonyx.cancellation import Flag
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import DONE, Buffer, KernelCall, StepTable
from sardonyx.codegen.run.thread_pool import shared_pool
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array
from sardonyx.errors import RunTerminated

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The kernels that count."""
    return counting_engine()


@pytest.fixture(scope="module")
def driver() -> Driver:
    """A driver on the pool of the process."""
    return Driver(host_target())


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("tasks", [1, 2, 7, 8, 1000])
def test_every_task_is_done_once(engine: Engine, driver: Driver, threads: int, tasks: int) -> None:
    """In thousands of regions in a row no task is lost or done twice, with more threads than processors too."""
    counts = np.zeros(tasks, np.int64)
    assert driver.run(counting_table(engine, counts, 2000, threads)) == -1
    assert (counts == 2000).all()


def test_more_runs_at_a_time_than_the_pool_serves(engine: Engine, driver: Driver) -> None:
    """Runs that find the pool taken do their work alone."""
    results = [np.zeros(16, np.int64) for _ in range(4)]

    def work(counts: Array) -> None:
        call = driver.prepare(counting_table(engine, counts, 50, threads=2))
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
    driver.run(counting_table(engine, np.zeros(8, np.int64), 10, threads=2))
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.1


def test_sleeping_workers_are_woken(engine: Engine, driver: Driver) -> None:
    """Runs with pauses between them, and long tasks that leave workers time to fall asleep, complete."""
    counts = np.zeros(4, np.int64)
    call = driver.prepare(counting_table(engine, counts, 2, threads=2, kernel="linger", turns=20_000))
    for _ in range(5):
        call()
        time.sleep(0.02)
    assert (counts == 10).all()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not tell on which processors a thread may run")
def test_waking_a_worker_leaves_it_the_processors_that_it_had(engine: Engine, driver: Driver) -> None:
    """The caller's processor is forbidden to a worker only while it is woken."""
    call = driver.prepare(counting_table(engine, np.zeros(4, np.int64), 2, threads=2, kernel="linger", turns=20_000))
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
    call = driver.prepare(counting_table(engine, counts, 10, threads=2))
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
    call = driver.prepare(counting_table(engine, counts, 1, threads, "linger", turns=1_000_000))
    with handler(signal.default_int_handler), after(0.2, interrupt), pytest.raises(KeyboardInterrupt):
        call()
    assert counts.max() == 1
    assert not counts.all()
    counts[:] = 0
    assert driver.run(counting_table(engine, counts, 10, threads)) == DONE
    assert (counts == 10).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_run_that_pauses_does_every_task_once(engine: Engine, driver: Driver, threads: int) -> None:
    """A handler that returns lets the run go on where it was."""
    counts, heard = np.zeros(2000, np.int64), []
    call = driver.prepare(counting_table(engine, counts, 2, threads, "linger", turns=20_000))
    with handler(lambda *_: heard.append(1)):
        assert call(paused=interrupt) == DONE
    assert heard
    assert (counts == 2).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_flag_ends_a_run_in_any_thread(engine: Engine, driver: Driver, threads: int) -> None:
    """The run pauses soon after the flag is set, in the middle of a step; what is raised then comes out."""
    counts, flag = np.zeros(1000, np.int64), Flag()
    call = driver.prepare(counting_table(engine, counts, 1, threads, "linger", turns=1_000_000))
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
    assert driver.run(counting_table(engine, counts, 1, threads)) == DONE


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
