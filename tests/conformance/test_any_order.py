"""Calls in any order: whatever is called when, errors are typed, results are right, and the process lives."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes

BYTES = to_bytes(model("graph(x: float[n]) -> (y: float[n], z: float[n]) {\ny = Neg(x)\nz = Exp(y)\n}"))
TYPED = (ort.SardonyxError, TypeError, ValueError)
"""What a wrong call may raise."""
FEEDS = st.sampled_from(
    [
        {"x": np.arange(3, dtype=np.float32)},
        {"x": np.zeros(0, np.float32)},
        {"x": np.arange(6, dtype=np.float32)[::2]},
        {"x": np.zeros((2, 2), np.float32)},
        {"x": np.zeros(2)},
        {"x": None},
        {},
        {"w": np.zeros(1, np.float32)},
        {"x": ["a"]},
        None,
    ]
)
NAMES = st.sampled_from([None, [], ["y"], ["z", "y"], ["q"], "y", [3]])


class AnyOrder(RuleBasedStateMachine):
    """Sessions, options, values and bindings, used in any order; what they hold is kept in bundles."""

    sessions = Bundle("sessions")
    options = Bundle("options")
    values = Bundle("values")
    bindings = Bundle("bindings")

    @initialize(target=sessions)
    def first(self) -> ort.InferenceSession:
        return ort.InferenceSession(BYTES)

    @rule(target=sessions, level=st.sampled_from(list(ort.GraphOptimizationLevel)), threads=st.integers(-1, 2))
    def make(self, level: ort.GraphOptimizationLevel, threads: int) -> Any:
        made = ort.SessionOptions()
        made.graph_optimization_level, made.intra_op_num_threads = level, threads
        try:
            return ort.InferenceSession(BYTES, made)
        except TYPED:
            return multiple()

    @rule(target=sessions, session=sessions)
    def pickle(self, session: ort.InferenceSession) -> ort.InferenceSession:
        again: ort.InferenceSession = pickle.loads(pickle.dumps(session))
        return again

    @rule(target=options, terminate=st.booleans(), only=st.booleans(), severity=st.integers(-1, 4))
    def make_options(self, terminate: bool, only: bool, severity: int) -> ort.RunOptions:
        made = ort.RunOptions()
        made.terminate, made.only_execute_path_to_fetches, made.log_severity_level = terminate, only, severity
        return made

    @rule(options=options, terminate=st.booleans())
    def set_terminate(self, options: ort.RunOptions, terminate: bool) -> None:
        options.terminate = terminate

    @rule(target=values, shape=st.lists(st.integers(-1, 3), max_size=2), kind=st.sampled_from([1, 7, 8, 16, 99, "f4", None]))
    def make_value(self, shape: list[int], kind: Any) -> Any:
        try:
            value = ort.OrtValue.ortvalue_from_shape_and_type(shape, kind)
        except TYPED:
            return multiple()
        if value.data_type() == "tensor(float)":
            value.numpy()[...] = 1
        return value

    @rule(session=sessions, names=NAMES, feed=FEEDS, options=st.one_of(st.none(), options))
    def run(self, session: ort.InferenceSession, names: Any, feed: Any, options: ort.RunOptions | None) -> None:
        try:
            found = session.run(names, feed, options)
        except TYPED:
            return
        wanted = names or ["y", "z"]
        x = feed["x"]
        expected = {"y": -x, "z": np.exp(-x)}
        for name, result in zip(wanted, found, strict=True):
            np.testing.assert_allclose(result, expected[name], rtol=1e-5)

    @rule(session=sessions, names=NAMES, feed=FEEDS, options=st.one_of(st.none(), options))
    def run_async(self, session: ort.InferenceSession, names: Any, feed: Any, options: ort.RunOptions | None) -> None:
        done = threading.Event()
        try:
            session.run_async(names, feed, lambda *_results: done.set(), None, options)
        except TYPED:
            return
        assert done.wait(60)

    @rule(session=sessions, value=values, options=st.one_of(st.none(), options))
    def run_with_values(self, session: ort.InferenceSession, value: ort.OrtValue, options: ort.RunOptions | None) -> None:
        try:
            found = session.run_with_ort_values(["y"], {"x": value}, options)
        except TYPED:
            return
        np.testing.assert_array_equal(found[0].numpy(), -value.numpy())

    @rule(target=bindings, session=sessions)
    def bind(self, session: ort.InferenceSession) -> Any:
        return session, session.io_binding()

    @rule(bound=bindings, value=values, name=st.sampled_from(["x", "y", "q"]), is_input=st.booleans())
    def bind_value(self, bound: Any, value: ort.OrtValue, name: str, is_input: bool) -> None:
        try:
            (bound[1].bind_ortvalue_input if is_input else bound[1].bind_ortvalue_output)(name, value)
        except TYPED:
            return

    @rule(bound=bindings, name=st.sampled_from(["y", "z", "q"]))
    def bind_output(self, bound: Any, name: str) -> None:
        try:
            bound[1].bind_output(name)
        except TYPED:
            return

    @rule(bound=bindings, inputs=st.booleans())
    def clear(self, bound: Any, inputs: bool) -> None:
        (bound[1].clear_binding_inputs if inputs else bound[1].clear_binding_outputs)()

    @rule(bound=bindings, session=st.one_of(st.none(), sessions), options=st.one_of(st.none(), options))
    def run_bound(self, bound: Any, session: ort.InferenceSession | None, options: ort.RunOptions | None) -> None:
        try:
            (session or bound[0]).run_with_iobinding(bound[1], options)
            bound[1].copy_outputs_to_cpu()
        except TYPED:
            return

    @rule(
        session=sessions,
        providers=st.sampled_from([None, [], ["CPUExecutionProvider"], ["ReferenceExecutionProvider"], ["No"], [3]]),
    )
    def set_providers(self, session: ort.InferenceSession, providers: Any) -> None:
        try:
            session.set_providers(providers)
        except TYPED:
            return

    @rule(session=sessions)
    def trim(self, session: ort.InferenceSession) -> None:
        assert session.trim() >= 0

    @rule(session=sessions)
    def end_profiling(self, session: ort.InferenceSession) -> None:
        assert session.end_profiling() == ""


AnyOrder.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestAnyOrder = AnyOrder.TestCase
