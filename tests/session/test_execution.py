"""The choice of an executor by session options."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from runtime.test_plan import make
from support.branches import SlowDevice, plan_of
from support.models import model
from support.providers import DeviceProvider

import sardonyx as ort
from sardonyx import errors
from sardonyx.formats import onnx as onnx_format
from sardonyx.runtime.executors.dataflow import DataflowExecutor
from sardonyx.runtime.executors.parallel import ParallelExecutor
from sardonyx.runtime.executors.sequential import SequentialExecutor
from sardonyx.session.execution import executor_for, executor_name, thread_count

BRANCHES = "graph(x: float[n]) -> (y: float[n]) {\na = Exp(x)\nb = Neg(x)\ny = Add(a, b)\n}"


def _options(entry: str | None = None, mode: Any = ort.ExecutionMode.ORT_SEQUENTIAL) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.execution_mode = mode
    if entry is not None:
        options.add_session_config_entry("session.executor", entry)
    return options


def test_the_default_is_sequential() -> None:
    """As in onnxruntime."""
    assert executor_name(ort.SessionOptions()) == "sequential"


def test_the_execution_mode_chooses_the_parallel_one_and_the_entry_any() -> None:
    """The config entry stands above the mode."""
    assert executor_name(_options(mode=ort.ExecutionMode.ORT_PARALLEL)) == "parallel"
    assert executor_name(_options("dataflow", ort.ExecutionMode.ORT_PARALLEL)) == "dataflow"


def test_an_unknown_executor_is_an_error() -> None:
    """The message lists the known ones."""
    with pytest.raises(errors.InvalidArgument, match="session.executor must be one of sequential, dataflow, parallel, got 'fast'"):
        executor_name(_options("fast"))
    with pytest.raises(errors.InvalidArgument, match="execution_mode is one of .*, got 7"):
        executor_name(_options(mode=7))


def test_onnxruntimes_texts_stand_for_properties() -> None:
    """Of the mode the text counts, of threads the property where it is set; what is wrong is told."""
    options = _options(mode=ort.ExecutionMode.ORT_SEQUENTIAL)
    options.add_session_config_entry("session.execution_mode", "parallel")
    options.add_session_config_entry("session.inter_op_num_threads", "3")
    assert (executor_name(options), thread_count(options, "inter_op"), thread_count(options, "intra_op")) == ("parallel", 3, 0)
    options.inter_op_num_threads = 2
    assert thread_count(options, "inter_op") == 2
    options.inter_op_num_threads = -1
    with pytest.raises(errors.InvalidArgument, match="inter_op_num_threads is a number of at least 0, .* got -1"):
        thread_count(options, "inter_op")
    options.add_session_config_entry("session.execution_mode", "ORT_PARALLEL")
    with pytest.raises(errors.InvalidArgument, match="session.execution_mode must be one of sequential, parallel, got 'ORT_PAR"):
        executor_name(options)


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
    assert type(executor_for(make(BRANCHES, {"Neg"}, {"Exp", "Add"}), _options(entry))) is kind
    assert type(executor_for(make(BRANCHES, set(), {"Neg", "Exp", "Add"}), _options(entry))) is SequentialExecutor


def test_by_default_each_provider_has_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three devices meet at a barrier, although there is one processor."""
    monkeypatch.setenv("SARDONYX_NUM_THREADS", "1")
    barrier = threading.Barrier(3, timeout=20)

    class Meeting(SlowDevice):
        def _sleep(self) -> None:
            barrier.wait()

    text = "graph(x: float[n]) -> (a: float[n], b: float[n], c: float[n]) {\na = Relu(x)\nb = Neg(x)\nc = Mul(x, x)\n}"
    plan = plan_of(text, Meeting("A", ["Relu"]), Meeting("B", ["Neg"]), Meeting("C", ["Mul"]))
    results = executor_for(plan, _options("parallel")).run([np.float32([-2])])
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
    options = _options(entry)
    options.inter_op_num_threads = 2
    session = ort.InferenceSession(onnx_format.to_bytes(model(text)), options, providers=[DeviceProvider(("Neg", "Add"))])
    x = np.float32([0, 1])
    np.testing.assert_allclose(session.run(None, {"x": x, "more": np.array(True)})[0], np.exp(x) + np.exp(-x), rtol=1e-6)
    np.testing.assert_allclose(session.run(None, {"x": x, "more": np.array(False)})[0], -np.exp(x), rtol=1e-6)
