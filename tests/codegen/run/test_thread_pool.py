"""The threads of the pool: started when needed, ended when told."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from support.counting import counting_engine, counting_table

from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.thread_pool import ThreadPool, shared_pool
from sardonyx.codegen.target import host_target


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The kernels that count."""
    return counting_engine()


def test_a_worker_whose_start_is_interrupted_is_counted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a run waits for its first worker to come up leaves that worker to the pool, which ends it like the others."""
    pool = ThreadPool()
    counts = np.zeros(8, np.int64)
    call = Driver(host_target(), pool=pool).prepare(counting_table(engine, counts, 100, threads=2))
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
        driver.run(counting_table(engine, counts, 100, threads=3))
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
