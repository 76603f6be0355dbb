"""Kernels in a thread of their own: what they return and raise, and that the run's thread hears meanwhile."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from support.session_models import session as session_of

import sardonyx
from sardonyx.aside import call_aside, is_left_behind, may_be_left, writing_for_others
from sardonyx.cancellation import Cancellation, Flag, check_cancelled, reset_cancellation, set_cancellation
from sardonyx.errors import RunTerminated

MANY = np.zeros(1 << 20, np.float32)


def test_results_and_errors_come_back() -> None:
    """As from a call."""
    assert call_aside(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ZeroDivisionError):
        call_aside(lambda: 1 // 0)


def test_only_what_somebody_can_end_may_be_left() -> None:
    """Not a run of another thread without a flag; with one it may be."""
    found: list[bool] = []
    flag = Flag()

    def ask() -> None:
        found.append(may_be_left([MANY]))
        token = set_cancellation(Cancellation(flag, lambda: RunTerminated("x")))
        found.append(may_be_left([MANY]))
        reset_cancellation(token)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [False, True]


def test_memory_of_others_is_not_left_to_a_thread() -> None:
    """Who ended the run may free it, or use it: what ctypes lends, and the arrays that results are put into."""
    owner = (ctypes.c_float * MANY.size)()
    assert not may_be_left([np.ctypeslib.as_array(owner)])
    assert not may_be_left([[np.ctypeslib.as_array(owner)]])
    assert may_be_left([MANY.reshape(1024, -1)[::2].T, np.frombuffer(b"abcd", np.uint8), None, {}])
    with writing_for_others():
        assert not may_be_left([MANY])
    assert may_be_left([MANY])


def test_what_a_run_leaves_behind_is_told_to_end() -> None:
    """At its next look at the flags, though nobody has set the run's."""
    ended = threading.Event()

    def work() -> None:
        try:
            while True:
                check_cancelled()
                time.sleep(0.001)
        finally:
            ended.set()

    before = signal.signal(signal.SIGALRM, lambda *_: 1 // 0)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(ZeroDivisionError):
            call_aside(work)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended.wait(5)


def test_a_flag_is_heard_while_the_kernel_computes() -> None:
    """The call returns long before the kernel does."""
    flag = Flag()
    token = set_cancellation(Cancellation(flag, lambda: RunTerminated("ended")))
    threading.Timer(0.1, lambda: flag.set(True)).start()
    start = time.perf_counter()
    try:
        with pytest.raises(RunTerminated):
            call_aside(lambda: time.sleep(5))
    finally:
        reset_cancellation(token)
    assert time.perf_counter() - start < 2


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_a_signal_is_heard_while_the_kernel_computes() -> None:
    """What its handler raises ends the call."""

    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    start = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            call_aside(lambda: time.sleep(5))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - start < 2


def test_without_threads_the_run_computes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system starts none."""

    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    assert call_aside(lambda: threading.current_thread() is threading.main_thread())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_in_the_midst_computes_by_itself() -> None:
    """A handler of a signal forks; the thread stays in the parent."""
    parent, children = os.getpid(), []

    def handler(*_: Any) -> None:
        children.append(os.fork())

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        result = call_aside(lambda: (time.sleep(0.3), os.getpid())[1])
    finally:
        signal.signal(signal.SIGALRM, before)
    if os.getpid() != parent:
        os._exit(0 if result == os.getpid() else 1)
    assert result == parent
    assert os.waitpid(children[0], 0)[1] == 0


def test_a_run_of_much_gives_what_one_of_little_gives() -> None:
    """Numbers, warnings and errors of the reference provider are the same in both."""
    session = session_of("graph(x: float[n]) -> (y: float[n]) {\ny = Log(x)\n}", providers=["ReferenceExecutionProvider"])
    x = np.resize(np.array([-1, 0, 1, 2.5], np.float32), 1 << 20)
    (whole,), (part,) = session.run(None, {"x": x}), session.run(None, {"x": x[:4]})
    np.testing.assert_array_equal(whole, np.resize(part, 1 << 20))
    failing = session_of(
        "graph(x: float[n], y: float[m]) -> (z: float[k]) {\nz = Add(x, y)\n}", providers=["ReferenceExecutionProvider"]
    )
    with pytest.raises(sardonyx.InvalidArgument, match="node '' .Add"):
        failing.run(None, {"x": x, "y": x[:3]})


def test_memory_is_known_as_left_behind_until_the_work_ends() -> None:
    """By any part of it; that of work which has ended by itself is not."""
    memory, go = np.zeros(100), threading.Event()
    call_aside(lambda: None, [memory])
    assert not is_left_behind(memory)
    before = signal.signal(signal.SIGALRM, lambda *_: 1 // 0)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(ZeroDivisionError):
            call_aside(lambda: go.wait(10), [memory[3:20].reshape(1, -1)])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert is_left_behind(memory)
    assert is_left_behind(memory[50:])
    assert not is_left_behind(np.zeros(100))
    go.set()
    for _ in range(500):
        if not is_left_behind(memory):
            return
        time.sleep(0.01)
    raise AssertionError("the work has ended, but its memory is still left behind")
