"""The choice of an executor by session options."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from runtime.test_plan import make
from support.branches import SlowDevice, plan_of
from support.models import model
from support.providers import DeviceProvider
from support.sessions import options_of

import sardonyx as ort
from sardonyx.formats import onnx as onnx_format
from sardonyx.runtime.executors.dataflow import DataflowExecutor
from sardonyx.runtime.executors.parallel import ParallelExecutor
from sardonyx.runtime.executors.sequential import SequentialExecutor
from sardonyx.session.execution import executor_for
from sardonyx.session.settings.settings import ExecutionSettings

BRANCHES = "graph(x: float[n]) -> (y: float[n]) {\na = Exp(x)\nb = Neg(x)\ny = Add(a, b)\n}"


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ("sequential", SequentialExecutor),
        ("dataflow", DataflowExecutor),
        ("parallel", ParallelExecutor),
    ],
)
def test_plans_of_several_steps_get_the_executor_that_is_asked_for(entry: str, kind: type) -> None:
    """A plan of one step has nothing to choose."""
    assert type(executor_for(make(BRANCHES, {"Neg"}, {"Exp", "Add"}), ExecutionSettings(entry))) is kind
    assert type(executor_for(make(BRANCHES, set(), {"Neg", "Exp", "Add"}), ExecutionSettings(entry))) is SequentialExecutor


def test_by_default_each_provider_has_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three devices meet at a barrier, although there is one processor."""
    monkeypatch.setenv("SARDONYX_NUM_THREADS", "1")
    barrier = threading.Barrier(3, timeout=20)

    class Meeting(SlowDevice):
        def _sleep(self) -> None:
            barrier.wait()

    text = "graph(x: float[n]) -> (a: float[n], b: float[n], c: float[n]) {\na = Relu(x)\nb = Neg(x)\nc = Mul(x, x)\n}"
    plan = plan_of(text, Meeting("A", ["Relu"]), Meeting("B", ["Neg"]), Meeting("C", ["Mul"]))
    results = executor_for(plan, ExecutionSettings("parallel")).run([np.float32([-2])])
    assert [item.tolist() for item in results] == [[0], [2], [4]]


@pytest.mark.parametrize("entry", ["sequential", "dataflow", "parallel"])
def test_a_session_gives_the_same_results_with_each(entry: str) -> None:
    """Its bodies too run on it."""
    text = """graph(x: float[n], more: bool[]) -> (y: float[n]) {
        a = Exp(x)
        y = If(more) {then_branch = graph() -> (s) {
            b = Neg(x)
            c = Exp(b)
            s = Add(a, c)
        }, else_branch = graph() -> (t) {
            t = Neg(a)
        }}
    }"""
    options = options_of(session__executor=entry)
    options.inter_op_num_threads = 2
    session = ort.InferenceSession(onnx_format.to_bytes(model(text)), options, providers=[DeviceProvider(("Neg", "Add"))])
    x = np.float32([0, 1])
    np.testing.assert_allclose(session.run(None, {"x": x, "more": np.array(True)})[0], np.exp(x) + np.exp(-x), rtol=1e-6)
    np.testing.assert_allclose(session.run(None, {"x": x, "more": np.array(False)})[0], -np.exp(x), rtol=1e-6)
