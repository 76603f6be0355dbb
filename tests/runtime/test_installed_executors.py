"""Executors of installed packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.branches import SlowDevice, plan_of

import sardonyx as ort
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.runtime.executor import make_executor
from sardonyx.runtime.installed_executors import InstalledExecutor, installed_executors

PLUGIN = """
from sardonyx.executors import DataflowExecutor, SequentialExecutor

class Last(DataflowExecutor):
    def __init__(self, plan, threads, shared=None):
        super().__init__(plan, shared)
        self.threads = threads

    def rank(self, index):
        return index

RUNS = []

class Counting(SequentialExecutor):
    def __init__(self, plan, threads, shared=None):
        super().__init__(plan, shared)

    def run(self, inputs, captures=(), targets=()):
        RUNS.append(len(inputs))
        return super().run(inputs, captures, targets)
"""
POINTS = (
    "[sardonyx.executors]\nlast = plugged_executors:Last\ncounting = plugged_executors:Counting\nlost = plugged_executors:Lost\n"
)
TEXT = "graph main(x: float[n]) -> (y: float[n]) {\na = Relu(x)\nb = Neg(x)\nc = Abs(x)\ny = Sum(a, b, c)\n}"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package on sys.path that brings executors."""
    (tmp_path / "plugged_executors.py").write_text(PLUGIN)
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("plugged_executors", None)


def _session(name: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.executor", name)
    return ort.InferenceSession(to_bytes(parse_model(f"ir_version 10\nopset 21\n{TEXT}")), options)


def test_the_names_are_those_of_the_entry_points() -> None:
    """In their order by name."""
    assert installed_executors() == ("counting", "last", "lost")


def test_a_plan_is_run_by_it() -> None:
    """With the threads that it may use; of what is ready its rank decides."""
    ran: list[str] = []

    class Noting(SlowDevice):
        def _sleep(self) -> None:
            ran.append(self.name)

    plan = plan_of(TEXT.replace("graph main", "graph"), Noting("A", ["Relu"]), Noting("B", ["Neg"]), Noting("C", ["Abs"]))
    executor = make_executor(plan, "last", 3)
    assert isinstance(executor, InstalledExecutor)
    assert executor.inner.threads == 3  # type: ignore[attr-defined]  # of the executor of this test
    x = np.array([1, -2], np.float32)
    np.testing.assert_array_equal(np.asarray(executor.run([x])[0]), np.maximum(x, 0) - x + np.abs(x))
    assert ran == ["C", "B", "A"]
    again = executor.maker()()
    np.testing.assert_array_equal(np.asarray(again.run([x])[0]), np.asarray(executor.run([x])[0]))
    assert again.inner is not executor.inner
    assert again.shares == executor.shares
    assert again.memory().arenas.keys() == executor.memory().arenas.keys()
    assert again.trim() >= 0


def test_a_session_is_run_by_it() -> None:
    """Also where it has one step, each time that it runs, and beside another session of the model."""
    other, session = _session("sequential"), _session("counting")
    x = np.array([1, -2], np.float32)
    for _ in range(4):
        np.testing.assert_array_equal(np.asarray(session.run(None, {"x": x})[0]), np.maximum(x, 0) - x + np.abs(x))
        other.run(None, {"x": x})
    assert sys.modules["plugged_executors"].RUNS == [1, 1, 1, 1]


def test_a_name_that_nobody_brings() -> None:
    """Is refused when the session is made."""
    with pytest.raises(InvalidArgument, match="or the name of an installed executor, got 'none'"):
        _session("none")
    with pytest.raises(InvalidArgument, match="no installed package has an executor 'none'"):
        make_executor(plan_of(TEXT.replace("graph main", "graph")), "none", 1)


def test_one_that_cannot_be_loaded() -> None:
    """Is named with its package."""
    with pytest.raises(Fail, match="plugged_executors:Lost, which plugged names as 'lost' of sardonyx.executors, cannot be loaded"):
        _session("lost")
