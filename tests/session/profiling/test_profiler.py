"""The profile of a session, as onnxruntime writes it."""

from __future__ import annotations

import gc
import json
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.providers import DeviceProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.profiling import profiler as module
from sardonyx.session.profiling.profiler import Profiler
from sardonyx.session.profiling.report import read_profile
from sardonyx.trace import observe

TEXT = "graph(x: float[n, 3]) -> (y: float[n, 3]) {\nw: float[3, 3] = ... 1\na = MatMul(x, w) @product\ny = Exp(a) @end\n}"
_LOOP = """graph(x: float[128, 128], n: int64[]) -> (y: float[128, 128]) {
    go: bool[] = true
    y = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[128, 128]) -> (c, b) { b = Tanh(a) }}
}"""
FEED = {"x": np.ones((2, 3), np.float32)}


def _session(folder: Path, source: Any = None) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "p_")
    return ort.InferenceSession(
        source or to_bytes(model(TEXT)), options, providers=[DeviceProvider({"Exp"}), "ReferenceExecutionProvider"]
    )


def _options(folder: Path) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "p_")
    return options


def _events(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(path).read_text(encoding="utf-8"))
    return found


def test_the_file_has_onnxruntimes_name_and_keys(tmp_path: Path) -> None:
    """The prefix and the time; each event is a complete one of Chrome's."""
    session = _session(tmp_path)
    session.run(None, FEED)
    path = session.end_profiling()
    assert re.fullmatch(r"p__\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{3}\.json", Path(path).name)
    events = _events(path)
    assert {tuple(event) for event in events} == {("cat", "pid", "tid", "dur", "ts", "ph", "name", "args")}
    assert {event["ph"] for event in events} == {"X"}
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in events)


def test_building_and_runs_are_events_of_the_session(tmp_path: Path) -> None:
    """Once each, with onnxruntime's names."""
    session = _session(tmp_path)
    for _ in range(3):
        session.run(None, FEED)
    names = [event["name"] for event in _events(session.end_profiling()) if event["cat"] == "Session"]
    assert names[0] == "model_loading_array"
    assert names.count("session_initialization") == 1
    assert names.count("model_run") == 3


def test_a_model_from_a_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    """The event says which."""
    (tmp_path / "m.onnx").write_bytes(to_bytes(model(TEXT)))
    events = _events(_session(tmp_path, tmp_path / "m.onnx").end_profiling())
    assert events[0]["name"] == "model_loading_uri"


def test_each_step_of_a_run_is_an_event(tmp_path: Path) -> None:
    """With its provider, and the types and shapes of what it read and made."""
    session = _session(tmp_path)
    session.run(None, FEED)
    first, second = (event for event in _events(session.end_profiling()) if event["cat"] == "Node")
    assert (first["name"], second["name"]) == ("product_kernel_time", "end_kernel_time")
    expected = {
        "op_name": "MatMul",
        "provider": "ReferenceExecutionProvider",
        "node_index": "0",
        "parameter_size": "36",
        "node_count": "1",
        "nodes": ["product"],
        "original_nodes": ["product"],
        "input_type_shape": [{"float": [2, 3]}],
        "output_type_shape": [{"float": [2, 3]}],
        "activation_size": "24",
        "output_size": "24",
        "mem_in_use_delta": "0",
    }
    assert {key: first["args"][key] for key in expected} == expected
    assert second["args"]["provider"] == "DeviceProvider"
    assert first["ts"] + first["dur"] <= second["ts"] + second["dur"]


def test_without_profiling_there_is_no_file() -> None:
    """As in onnxruntime, no name and no time."""
    session = ort.InferenceSession(to_bytes(model(TEXT)))
    assert (session.end_profiling(), session.get_profiling_start_time_ns()) == ("", 0)


def test_profiling_ends_once(tmp_path: Path) -> None:
    """Runs go on; the file stays as it is."""
    session = _session(tmp_path)
    assert session.get_profiling_start_time_ns() > 10**18
    path = session.end_profiling()
    written = Path(path).read_bytes()
    np.testing.assert_allclose(session.run(None, FEED)[0], _session(tmp_path).run(None, FEED)[0])
    assert session.end_profiling() == ""
    assert Path(path).read_bytes() == written


def test_a_session_that_is_forgotten_writes_its_profile(tmp_path: Path) -> None:
    """As in onnxruntime."""
    session = _session(tmp_path)
    session.run(None, FEED)
    del session
    gc.collect()
    (path,) = tmp_path.glob("*.json")
    assert "model_run" in [event["name"] for event in _events(str(path))]


def test_a_config_entry_asks_for_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is what the file's name begins with, as in onnxruntime."""
    monkeypatch.chdir(tmp_path)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.enable_profiling", "mine")
    path = ort.InferenceSession(to_bytes(model(TEXT)), options).end_profiling()
    assert path.startswith("mine_")
    assert (tmp_path / path).is_file()


def test_events_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes later is not kept."""
    monkeypatch.setattr(module, "_MOST_EVENTS", 2)
    profiler = Profiler(str(tmp_path / "p_"), "array")
    for number in range(3):
        profiler.record("Node", str(number), 0, 1000, {})
    assert [event["name"] for event in _events(profiler.end())] == ["0", "1"]


def test_the_child_of_a_fork_leaves_the_file_to_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When both end, one of them writes."""
    profiler = Profiler(str(tmp_path / "p_"), "array")
    with monkeypatch.context() as child:
        child.setattr(module.os, "getpid", lambda: -1)
        profiler.end_unasked()
    assert list(tmp_path.iterdir()) == []
    profiler.end_unasked()
    assert len(list(tmp_path.iterdir())) == 1


def test_each_kernel_of_a_program_is_an_event(tmp_path: Path) -> None:
    """Inside the event of its partition, which lies inside the run; fused nodes are one, with the nodes of the given model."""
    text = "graph(x: float[n, 3]) -> (y: float[n, 5]) {\nw: float[3, 5] = ... 1\na = MatMul(x, w) @product\nb = Relu(a) @relu\ny = Softmax(b) @end\n}"
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p_")
    session = ort.InferenceSession(to_bytes(model(text)), options)
    for size in (2, 4):
        session.run(None, {"x": np.ones((size, 3), np.float32)})
    events = _events(session.end_profiling())
    steps = [event for event in events if event["cat"] == "Node"]
    assert [event["name"] for event in steps] == ["product_kernel_time", "end_kernel_time"] * 2
    first = steps[2]["args"]
    assert (first["op_name"], first["fused"], first["original_nodes"]) == ("MatMul", "MatMul+Relu", ["product", "relu"])
    assert (first["flops"], first["output_type_shape"]) == (2 * 4 * 5 * 3 + 4 * 5, [{"float": [4, 5]}])
    parts = [event for event in events if event["cat"] == "Partition"]
    runs = [event for event in events if event["name"] == "model_run"]
    for number, step in enumerate(steps):
        for around in (parts[number // 2], runs[number // 2]):
            assert around["ts"] <= step["ts"]
            assert step["ts"] + step["dur"] <= around["ts"] + around["dur"] + 1e-3
    assert [event["name"] for event in events].count("SequentialExecutor::Execute") == 2


def test_a_run_by_machine_code_that_python_had_to_make_is_known(tmp_path: Path) -> None:
    """By its event, of the same thread: then what machine code noted of it is forgotten."""
    profiler = Profiler(str(tmp_path / "p"), "array")
    profiler.record("Session", "model_run", 0, 1, {})
    assert not profiler.went_to_python
    profiler.plain_thread = threading.get_ident()
    profiler.record("Session", "model_run", 0, 1, {})
    assert profiler.went_to_python


def test_steps_add_up_to_their_partition(tmp_path: Path) -> None:
    """But for what lies before the first and behind the last."""
    text = "graph(x: float[256, 256]) -> (y: float[256, 256]) {\nw: float[256, 256] = ... 1\na = MatMul(x, w)\nb = Softmax(a)\ny = MatMul(b, w)\n}"
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p_")
    session = ort.InferenceSession(to_bytes(model(text)), options)
    for _ in range(20):
        session.run(None, {"x": np.ones((256, 256), np.float32)})
    events = _events(session.end_profiling())
    whole = [event["dur"] for event in events if event["cat"] == "Partition"]
    steps = (
        np.array([event["dur"] for event in events if event["cat"] == "Node" and event["args"]["nodes"]]).reshape(20, 3).sum(axis=1)
    )
    assert np.max(steps / whole) <= 1 + 1e-9
    assert np.max(steps / whole) > 0.95


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
def test_steps_of_a_loop_add_up_to_the_run(tmp_path: Path, provider: str) -> None:
    """Within 5 %, in a run that nothing interrupts, and never to more; what the body takes around its steps is the loop's."""
    session = ort.InferenceSession(to_bytes(model(_LOOP)), _options(tmp_path), providers=[provider])
    for _ in range(9):
        session.run(None, {"x": np.ones((128, 128), np.float32), "n": np.array(100)})
    events = _events(session.end_profiling())
    ends = [(event["ts"], event["ts"] + event["dur"]) for event in events if event["name"] == "model_run"]
    reports = [read_profile([event for event in events if begin <= event["ts"] <= end], "p") for begin, end in ends]
    parts = [report.steps_ms / report.run_ms for report in reports]
    assert 0.95 < max(parts) <= 1 + 1e-6


def test_a_step_of_a_loop_says_how_often_it_ran(tmp_path: Path) -> None:
    """Its bytes are those of all iterations; the loop's own steps move none, and what never ran is no event."""
    session = ort.InferenceSession(to_bytes(model(_LOOP)), _options(tmp_path))
    session.run(None, {"x": np.ones((128, 128), np.float32), "n": np.array(7)})
    events = [event["args"] for event in _events(session.end_profiling()) if event["cat"] == "Node"]
    (body,) = [said for said in events if said["fused"] == "Tanh"]
    assert (body["repeats"], body["bytes"]) == (7, 7 * 2 * 4 * 128 * 128)
    assert not [said for said in events if said["fused"] == "Loop" and "bytes" in said]
    session = ort.InferenceSession(to_bytes(model(_LOOP)), _options(tmp_path))
    session.run(None, {"x": np.ones((128, 128), np.float32), "n": np.array(0)})
    events = [event["args"] for event in _events(session.end_profiling()) if event["cat"] == "Node"]
    assert "Tanh" not in [said["fused"] for said in events]


def test_a_folder_that_is_gone_is_no_noise(tmp_path: Path) -> None:
    """Where the file was not asked for; the trace says it."""
    found: list[str] = []
    profiler = Profiler(str(tmp_path / "gone" / "p_"), "array")
    with observe(lambda what: found.append(what.name)):
        profiler.end_unasked()
    assert found == ["profile.unwritten"]


def test_a_compiled_model_shows_its_kernels(tmp_path: Path) -> None:
    """By their operators: the nodes that they were compiled of are not in the file."""
    path = tmp_path / "m.onnx"
    path.write_bytes(to_bytes(model(TEXT.replace("[n, 3]", "[2, 3]"))))
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "ctx.onnx"))
    ort.InferenceSession(path, options)
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p_")
    session = ort.InferenceSession(tmp_path / "ctx.onnx", options)
    session.run(None, FEED)
    steps = [event for event in _events(session.end_profiling()) if event["cat"] == "Node"]
    assert [event["name"] for event in steps] == ["MatMul+Exp_kernel_time"]
    assert steps[0]["args"]["output_type_shape"] == [{"float": [2, 3]}]


BRANCHES = """graph(x: float[n, 3], k: bool) -> (y: float[n, 3], z: float[n, 3]) {
w: float[3, 3] = ... 1
a = MatMul(x, w) @left
y = Exp(a) @left_end
b = MatMul(x, w) @right
c = Tanh(b) @right_middle
z = If(k) {
    then_branch = graph() -> (p: float[n, 3]) {
        p = Exp(c) @inner
    },
    else_branch = graph() -> (q: float[n, 3]) {
        q = Neg(c) @other
    }
}
}"""


def _problems(text: str) -> list[str]:
    """Return what in a file breaks the rules of the Trace Event Format for complete events (ph X), each with its event."""
    found = []
    open_until: dict[tuple[int, int], list[float]] = {}
    events = json.loads(text, parse_constant=lambda name: found.append(f"{name} is no JSON"))
    for event in events:
        kinds = {"name": str, "cat": str, "ph": str, "pid": int, "tid": int, "ts": (int, float), "dur": (int, float), "args": dict}
        found += [f"{key}: {event}" for key, kind in kinds.items() if not isinstance(event.get(key), kind)]
        found += [f"before the start: {event}" for key in ("ts", "dur") if event[key] < 0]
    for event in sorted(events, key=lambda item: (item["ts"], -item["dur"])):
        start, end = event["ts"], event["ts"] + event["dur"]
        stack = open_until.setdefault((event["pid"], event["tid"]), [])
        while stack and stack[-1] <= start + 1e-9:
            stack.pop()
        if stack and end > stack[-1] + 1e-9:
            found.append(f"ends {end - stack[-1]} us after the event that it begins in: {event}")
        stack.append(end)
    return found


@pytest.mark.parametrize("mode", ["sequential", "parallel", "dataflow"])
@pytest.mark.parametrize("providers", [["CPUExecutionProvider"], [DeviceProvider({"Exp"}), "ReferenceExecutionProvider"]])
def test_the_file_keeps_to_the_trace_event_format(tmp_path: Path, mode: str, providers: list[Any]) -> None:
    """With every executor and from several threads: fields of the right types, and on each thread events that nest or follow."""
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p")
    options.inter_op_num_threads = 2
    options.add_session_config_entry("session.executor", mode)
    session = ort.InferenceSession(to_bytes(model(BRANCHES)), options, providers=providers)
    feeds = [{"x": np.ones((size, 3), np.float32), "k": np.array(size % 2 == 0)} for size in (1, 2, 3)]
    threads = [threading.Thread(target=lambda: [session.run(None, feed) for feed in feeds]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = Path(session.end_profiling()).read_text(encoding="utf-8")
    assert _problems(text) == []
    assert sum(event["name"] == "model_run" for event in json.loads(text)) == 9


def test_events_that_overlap_would_be_found() -> None:
    """The rules of the test before are none that hold anyway."""
    common = {"cat": "Node", "ph": "X", "pid": 1, "tid": 1, "args": {}}
    first = {**common, "name": "a", "ts": 0, "dur": 5}
    assert _problems(json.dumps([first, {**first, "ts": 1, "dur": 4}, {**first, "ts": 5}])) == []
    assert "ends 3 us after" in _problems(json.dumps([first, {**first, "ts": 3}]))[0]
    assert _problems(json.dumps([{**first, "pid": "1"}]))[0].startswith("pid: ")
    assert _problems(json.dumps([{**first, "ts": -1}]))[0].startswith("before the start")


_ONNXRUNTIME = {
    *(
        "activation_size",
        "input_type_shape",
        "node_index",
        "op_name",
        "output_size",
        "output_type_shape",
        "parameter_size",
        "provider",
    ),
    *("mem_arena_held", "mem_arena_held_delta", "mem_bytes_in_use", "mem_bytes_requested_in_use", "mem_in_use_delta"),
    *("mem_in_use_peak", "mem_requested_in_use_delta", "thread_scheduling_stats"),
}


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
def test_each_step_has_onnxruntimes_keys(tmp_path: Path, provider: str) -> None:
    """Those of version 1.31, whoever runs it; a workspace is no output."""
    text = (
        "graph(x: float[2, 8]) -> (v: float[2, 3], i: int64[2, 3]) {\na = Softmax(x)\nk: int64[1] = [3]\nv, i = TopK(a, k) @best\n}"
    )
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p_")
    session = ort.InferenceSession(to_bytes(model(text)), options, [provider])
    session.run(None, {"x": np.ones((2, 8), np.float32)})
    steps = [event for event in _events(session.end_profiling()) if event["cat"] == "Node"]
    for step in steps:
        assert set(step["args"]) >= _ONNXRUNTIME
        assert set(step["args"]["thread_scheduling_stats"]["main_thread"]) >= {"thread_pool_name", "thread_id", "Run", "core"}
    if provider == "CPUExecutionProvider":
        assert steps[-1]["args"]["output_type_shape"] == [{"float": [2, 3]}, {"int64": [2, 3]}]
        assert steps[-1]["args"]["output_size"] == str(2 * 3 * (4 + 8))
