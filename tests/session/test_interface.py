"""The methods of a session that follow from `run`."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes

BYTES = to_bytes(model("graph(x: float[n, 3], w: float[n, 3]) -> (y, z) {\ny = Add(x, w)\nz = Mul(x, x)\n}"))
X = np.arange(6, dtype=np.float32).reshape(2, 3)
VALUE = ort.OrtValue.ortvalue_from_numpy(X)
CPU = ort.OrtDevice.make("cpu", 0)


@pytest.fixture(scope="module")
def session() -> ort.InferenceSession:
    """A session that all tests share."""
    return ort.InferenceSession(BYTES)


def test_ort_values_go_in_and_come_out(session: ort.InferenceSession) -> None:
    """All outputs for None and for an empty list."""
    (y,) = session.run_with_ort_values(["y"], {"x": VALUE, "w": VALUE})
    np.testing.assert_array_equal(y.numpy(), X + X)
    assert len(session.run_with_ort_values(None, {"x": VALUE, "w": VALUE})) == 2
    assert len(session.run_with_ort_values([], {"x": VALUE, "w": VALUE})) == 2


def test_an_array_is_no_ort_value(session: ort.InferenceSession) -> None:
    """The input is named."""
    feed: Any = {"x": VALUE, "w": X}
    with pytest.raises(ort.InvalidArgument, match="an OrtValue for 'w', got ndarray"):
        session.run_with_ort_values(None, feed)


def test_a_plain_run_takes_ort_values_too(session: ort.InferenceSession) -> None:
    """As in onnxruntime."""
    np.testing.assert_array_equal(session.run(["z"], {"x": VALUE, "w": X})[0], X * X)


def test_a_vector_of_values_is_computed(session: ort.InferenceSession) -> None:
    """The outputs are appended."""
    feeds, fetches = ort.OrtValueVector([VALUE, VALUE]), ort.OrtValueVector()
    session.run_with_ortvaluevector(ort.RunOptions(), ["x", "w"], feeds, ["z"], fetches, [CPU])
    np.testing.assert_array_equal(fetches[0].numpy(), X * X)
    with pytest.raises(ort.InvalidArgument, match="1 feed names for 2 feeds"):
        session.run_with_ortvaluevector(None, ["x"], feeds, ["z"], fetches, [CPU])


def test_an_asynchronous_run_calls_back(session: ort.InferenceSession) -> None:
    """On another thread, with the user's data."""
    told: list[Any] = []
    done = threading.Event()

    def callback(results: list[Any], data: Any, error: str) -> None:
        told.extend((results, data, error, threading.current_thread().name))
        done.set()

    session.run_async(["z"], {"x": X, "w": X}, callback, "mine")
    assert done.wait(30)
    np.testing.assert_array_equal(told[0][0], X * X)
    assert told[1:3] == ["mine", ""]
    assert told[3].startswith("sardonyx-async")


def test_an_asynchronous_run_checks_its_feed_at_once(session: ort.InferenceSession) -> None:
    """The caller gets the error, not the callback."""
    with pytest.raises(ort.InvalidArgument, match="Required inputs"):
        session.run_async(None, {"x": X}, lambda *_: None, None)


def test_a_run_can_be_awaited(session: ort.InferenceSession) -> None:
    """Many at a time."""

    async def several() -> list[list[Any]]:
        return await asyncio.gather(*(session.arun(["z"], {"x": X + index, "w": X}) for index in range(8)))

    for index, (z,) in enumerate(asyncio.run(several())):
        np.testing.assert_array_equal(z, (X + index) ** 2)


def test_the_host_is_where_everything_lies(session: ort.InferenceSession) -> None:
    """One description for each input and output."""
    assert [info.name for info in session.get_input_memory_infos()] == ["Cpu", "Cpu"]
    assert [info.name for info in session.get_output_memory_infos()] == ["Cpu", "Cpu"]
    assert {device.ep_name for device in session.get_input_epdevices() if device} == {"CPUExecutionProvider"}
    assert session.create_ortvalue_from_shape_and_type([2], np.float32).shape() == [2]


def test_what_a_cpu_does_not_have_is_accepted(session: ort.InferenceSession) -> None:
    """Tuning, captured graphs, dynamic options."""
    session.release_captured_graph()
    session.set_tuning_results(session.get_tuning_results())
    session.set_ep_dynamic_options({"ep.dynamic.workload_type": "Efficient"})
    with pytest.raises(ort.InvalidArgument, match="one of Default, Efficient"):
        session.set_ep_dynamic_options({"ep.dynamic.workload_type": "Fast"})
    with pytest.raises(ort.Fail, match="tuning results"):
        session.set_tuning_results([1], error_on_invalid=True)


def test_the_callback_is_called_on_the_pool() -> None:
    """However fast the run was; what it raises goes to sys.unraisablehook."""
    session = ort.InferenceSession(to_bytes(model("graph(x: float[2]) -> (y) { y = Neg(x) }")))
    names: list[str] = []
    for _ in range(50):
        called = threading.Event()

        def callback(_results: object, _user: object, _error: str, called: threading.Event = called) -> None:
            names.append(threading.current_thread().name)
            called.set()

        session.run_async(None, {"x": np.zeros(2, np.float32)}, callback, None)
        assert called.wait(60)
    assert all(name.startswith("sardonyx-async") for name in names)


def test_what_a_callback_raises_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody could catch it."""
    seen: list[str] = []
    reported = threading.Event()

    def hook(what: object) -> None:
        seen.append(str(getattr(what, "exc_value", "")))
        reported.set()

    def callback(*_given: object) -> None:
        raise ValueError("mine")

    monkeypatch.setattr("sys.unraisablehook", hook)
    session = ort.InferenceSession(to_bytes(model("graph(x: float[2]) -> (y) { y = Neg(x) }")))
    session.run_async(None, {"x": np.zeros(2, np.float32)}, callback, None)
    assert reported.wait(60)
    assert seen == ["mine"]
