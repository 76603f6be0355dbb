"""Profiled runs that machine code takes."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.session_models import MLP, rows

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.formats.tflite import STATES
from sardonyx.session.profiling.profiler import TimedProgram

LOOP = """graph(x: float[4], count: int64[]) -> (y: float[4]) {
    go: bool[] = [1]
    y = Loop(count, go, x) {
        body = graph(i: int64[], c: bool[], a: float[4]) -> (d: bool[], b: float[4]) {
            d = Identity(c)
            b = Add(a, a)
        }
    }
}"""


def _session(folder: Path, text: str = MLP) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "p")
    return ort.InferenceSession(to_bytes(model(text)), options)


def _events(session: ort.InferenceSession) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    return found


@pytest.fixture
def python_runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by an entry for each run of a program in Python."""
    found: list[int] = []
    run = TimedProgram.run

    def counted(*arguments: Any) -> Any:
        found.append(1)
        return run(*arguments)

    monkeypatch.setattr(TimedProgram, "run", counted)
    return found


def test_from_the_third_run_on_machine_code_is_recorded(tmp_path: Path, python_runs: list[int]) -> None:
    """Each run has its event and those of its steps, by whatever way it ran."""
    session = _session(tmp_path)
    for _ in range(6):
        session.run(None, rows(3))
    assert len(python_runs) == 2
    events = _events(session)
    counts = Counter(event["name"] for event in events if event["cat"] != "Session")
    assert [counts.pop(f"({name})_kernel_time") for name in ("inputs", "results")] == [4, 4]
    assert set(counts.values()) == {6}
    assert [event["name"] for event in events].count("model_run") == 6


def test_steps_lie_in_their_run(tmp_path: Path) -> None:
    """And runs one after another."""
    session = _session(tmp_path)
    for _ in range(6):
        session.run(None, rows(3))
    events = _events(session)
    runs = [(event["ts"], event["ts"] + event["dur"]) for event in events if event["name"] == "model_run"]
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(runs))
    for event in events:
        if event["cat"] in ("Node", "Partition"):
            assert any(begin <= event["ts"] and event["ts"] + event["dur"] <= end + 1e-3 for begin, end in runs)


def test_steps_of_a_run_by_machine_code_are_all_of_it(tmp_path: Path) -> None:
    """What it does with its inputs and results is a step before and after the kernels."""
    session = _session(tmp_path)
    for _ in range(5):
        session.run(None, rows(3))
    events = _events(session)
    run = [event for event in events if event["name"] == "model_run"][-1]
    steps = sorted((e for e in events if e["cat"] == "Node" and e["ts"] >= run["ts"]), key=lambda event: float(event["ts"]))
    assert (steps[0]["name"], steps[-1]["name"]) == ("(inputs)_kernel_time", "(results)_kernel_time")
    assert sum(step["dur"] for step in steps) == pytest.approx(run["dur"], rel=1e-6)


ZIPPED = """graph(x: float[n, 3]) -> (scores: seq(map(int64, float))) {
p = Softmax(x)
scores = ai.onnx.ml.ZipMap(p) {classlabels_int64s = [1, 2, 3]}
}"""
CODED = """graph(t: string[n]) -> (y: float[n, 2]) {
c = ai.onnx.ml.OneHotEncoder(t) {cats_strings = ["a", "b"]}
y = Mul(c, c)
}"""


@pytest.mark.parametrize(
    ("text", "feed", "operator"),
    [(ZIPPED, {"x": np.ones((2, 3), np.float32)}, "ZipMap"), (CODED, {"t": np.array(["a", "b"], object)}, "OneHotEncoder")],
)
def test_programs_before_and_after_machine_code_are_steps(
    text: str, feed: dict[str, Any], operator: str, tmp_path: Path, python_runs: list[int]
) -> None:
    """Such as texts that are encoded and maps of scores, as in a session without profile."""
    session = _session(tmp_path, text)
    results = [session.run(None, feed)[0] for _ in range(6)]
    assert [np.array_equal(result, results[0]) for result in results] == [True] * 6
    in_python = len(python_runs)
    assert in_python < 12
    events = _events(session)
    run = [event for event in events if event["name"] == "model_run"][-1]
    steps = [event for event in events if event["cat"] == "Node" and event["ts"] >= run["ts"]]
    assert sum(operator in step["args"]["op_name"] for step in steps) == 1
    assert sum(step["dur"] for step in steps) == pytest.approx(run["dur"], rel=1e-6)


def test_results_are_those_of_a_session_without_profile(tmp_path: Path) -> None:
    """Also of other shapes in turn."""
    session, plain = _session(tmp_path), ort.InferenceSession(to_bytes(model(MLP)))
    for n in (1, 3, 1, 3, 1, 5, 3):
        np.testing.assert_array_equal(session.run(None, rows(n))[0], plain.run(None, rows(n))[0])


def test_shapes_of_steps_are_those_of_the_run(tmp_path: Path) -> None:
    """Each set of shapes has calls of its own."""
    session = _session(tmp_path)
    for n in (1, 1, 1, 1, 3, 3, 3):
        session.run(None, rows(n))
    steps = [event for event in _events(session) if event["cat"] == "Node" and event["args"]["nodes"]]
    last = {event["name"]: event["args"]["output_type_shape"] for event in steps}
    assert all(shape[0] == 3 for (tensor,) in last.values() for shape in tensor.values())


def test_a_step_in_a_loop_has_the_time_of_all_its_iterations(tmp_path: Path) -> None:
    """As in runs by way of Python; what another run spent is not added."""
    session = _session(tmp_path, LOOP)
    for count in (20000, 20000, 20000, 1, 1, 1):
        session.run(None, {"x": np.ones(4, np.float32), "count": np.array(count)})
    durations = [event["dur"] for event in _events(session) if event["cat"] == "Partition"]
    assert len(durations) == 6
    assert min(durations[:3]) > 3 * min(durations[3:])


def test_runs_of_many_threads_are_all_recorded(tmp_path: Path) -> None:
    """One at a time by machine code, the others by way of Python."""
    session = _session(tmp_path)
    expected = session.run(None, rows(3))[0]
    failures: list[bool] = []

    def work() -> None:
        failures.extend(True for _ in range(50) if not np.array_equal(session.run(None, rows(3))[0], expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = _events(session)
    assert not failures
    assert [event["name"] for event in events].count("model_run") == 201
    assert [event["cat"] for event in events].count("Partition") == 201


def test_a_feed_that_does_not_fit_has_the_error_of_other_sessions(tmp_path: Path) -> None:
    """Runs after it are recorded."""
    session = _session(tmp_path)
    for _ in range(4):
        session.run(None, rows(3))
    with pytest.raises(ort.InvalidArgument, match="missing from input feed"):
        session.run(None, {})
    session.run(None, rows(3))
    assert [event["cat"] for event in _events(session)].count("Partition") == 5


def test_after_the_profile_runs_go_on(tmp_path: Path) -> None:
    """Nothing is added to the file."""
    session = _session(tmp_path)
    for _ in range(4):
        session.run(None, rows(3))
    assert [event["cat"] for event in _events(session)].count("Partition") == 4
    assert session.run(None, rows(3))[0].shape[0] == 3
    assert session.end_profiling() == ""


def test_runs_that_feed_states_on_are_recorded(tmp_path: Path) -> None:
    """Each once, whether Python or machine code makes it."""
    text = "graph(x: float[2], s: float[2]) -> (y: float[2], t: float[2]) {\ns: float[2] = [0.0, 0.0]\nt = Add(x, s)\ny = Exp(t)\n}"
    made = model(text)
    made.metadata = {STATES: json.dumps([["sum", "s", "t"]])}
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p")
    session = ort.InferenceSession(to_bytes(made), options)
    results = [session.run(None, {"x": np.ones(2, np.float32)})[0][0] for _ in range(6)]
    np.testing.assert_allclose(results, np.exp(np.arange(1, 7)), rtol=1e-5)
    names = [event["name"] for event in _events(session)]
    assert (names.count("model_run"), names.count("SequentialExecutor::Execute")) == (6, 6)
