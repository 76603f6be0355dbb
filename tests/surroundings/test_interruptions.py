"""Code of the program that runs in the middle of a load or a run, in the same thread: handlers of signals, and finalizers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.processes import run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="timers are those of Linux")

MAKE = """
import faulthandler, random, sys, time
faulthandler.dump_traceback_later(40, exit=True)
import numpy as np
import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from support.models import model

OPERATORS = ["Exp", "Tanh", "Sigmoid", "Erf", "Sqrt", "Abs", "Neg", "Ceil", "Floor", "Sin", "Cos", "Log"]
draw = random.Random(1)


def make():
    count = draw.randint(2, 7)
    nodes = "\\n".join(f"v{index + 1} = {draw.choice(OPERATORS)}(v{index})" for index in range(count))
    session = ort.InferenceSession(to_bytes(model(f"graph(v0: float[n, 4]) -> (v{count}: float[n, 4]) {{\\n{nodes}\\n}}")))
    return run(session, 3)


def run(session, rows):
    session.run(None, {"v0": np.ones((rows, 4), np.float32)})
    return session


ENOUGH = 6
first = make()
done = []


def inner():
    if not inner.is_busy and len(done) < ENOUGH:
        inner.is_busy = True
        try:
            make()
            run(first, len(done) % 90 + 1)
            done.append(1)
        finally:
            inner.is_busy = False


inner.is_busy = False
"""


def _changes(tmp_path: Path) -> dict[str, str]:
    return {"SARDONYX_CACHE_DIR": str(tmp_path / "cache"), "SARDONYX_KEEP_DECISIONS": "0"}


@pytest.mark.parametrize("seconds", [0.003, 0.021])
def test_a_handler_makes_and_runs_sessions(seconds: float, tmp_path: Path) -> None:
    """Whatever its thread was doing: a load that compiles, a run with a new shape, another run."""
    ending = f"""
import signal


def handle(*_):
    inner()
    signal.setitimer(signal.ITIMER_REAL, {seconds})


signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, {seconds})
while len(done) < ENOUGH:
    made = make()
    for rows in range(1, 12):
        run(made, rows)
        run(first, rows)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(done))
"""
    assert run_python(MAKE + ending, changes=_changes(tmp_path)) == "6\n"


def test_a_finalizer_makes_and_runs_sessions(tmp_path: Path) -> None:
    """Of garbage that is collected while its thread makes a session."""
    ending = """
import gc


class Cycle:
    def __init__(self):
        self.own = self

    def __del__(self):
        inner()


gc.set_threshold(50, 2, 2)
while len(done) < ENOUGH:
    Cycle()
    make()
print(len(done))
"""
    assert run_python(MAKE + ending, changes=_changes(tmp_path)) == "6\n"
