"""Reading profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.session.profiling.report import Report, Step, compare_profiles, read_events, read_profile


def _run(begin: float, duration: float, **steps: float) -> list[dict[str, Any]]:
    """The events of a run: each step with how long it takes, one after another."""
    events, now = [], begin
    for name, took in steps.items():
        said = {"op_name": "Conv", "fused": "Conv+Relu", "provider": "P", "kernel": "k", "flops": 10, "bytes": 20}
        said["original_nodes"] = [name, f"{name}_relu"]
        events.append({"cat": "Node", "name": f"{name}_kernel_time", "ts": now, "dur": took, "args": said})
        now += took
    return [*events, {"cat": "Session", "name": "model_run", "ts": begin, "dur": duration, "args": {}}]


def test_runs_in_the_middle_count() -> None:
    """Of four the two whose durations lie between the others'; steps add up to them."""
    events = [*_run(0, 1000, a=900), *_run(2000, 30, a=10, b=15), *_run(3000, 40, a=20, b=15), *_run(4000, 5, a=4)]
    report = read_profile(events, "p")
    assert (report.runs, report.run_ms) == (4, 0.035)
    assert [(step.name, step.ms) for step in report.steps] == [("a", 0.015), ("b", 0.015)]
    assert report.steps_ms == pytest.approx(0.03)


def test_a_step_in_a_loop_counts_as_often_as_it_runs() -> None:
    """Its time, operations and bytes are those of a run."""
    twice = _run(40, 100, a=10)[:1]
    events = [*_run(0, 100, a=30), *twice]
    (step,) = read_profile(events, "p").steps
    assert (step.ms, step.flops, step.size_bytes) == (0.04, 20, 40)


def test_a_step_that_calls_others_is_counted_without_them() -> None:
    """So that steps add up to the run: a loop of 60 with a step of 20 in it takes 40 itself."""
    events = [*_run(10, 0, inner=20)[:1], *_run(0, 100, loop=60)]
    report = read_profile(events, "p")
    assert {step.name: step.ms for step in report.steps} == pytest.approx({"loop": 0.04, "inner": 0.02})


def test_what_a_run_does_besides_is_named() -> None:
    """Programs from 10 to 60 and from 70 to 90, with steps of 40 and 20, in a run of 100."""
    partitions = [{"cat": "Partition", "name": "p_run", "ts": begin, "dur": dur, "args": {}} for begin, dur in ((10, 50), (70, 20))]
    steps = [*_run(15, 0, a=40)[:1], *_run(70, 0, b=20)[:1]]
    report = read_profile([*steps, *partitions, *_run(0, 100)], "p")
    assert [part.ms for part in report.outside] == pytest.approx([0.01, 0.01, 0.01, 0.01])
    assert report.steps_ms + sum(part.ms for part in report.outside) == pytest.approx(report.run_ms)


def test_profiles_without_our_keys_are_read() -> None:
    """Those of onnxruntime: operator and provider are there, operations are not."""
    events = [
        {"cat": "Node", "name": "c_kernel_time", "ts": 1, "dur": 2, "args": {"op_name": "Conv", "provider": "CPU"}},
        {"cat": "Session", "name": "model_run", "ts": 0, "dur": 5, "args": {}},
    ]
    (step,) = read_profile(events, "p").steps
    assert (step.operators, step.nodes, step.flops, step.size_bytes) == ("Conv", ("c",), None, None)


def test_no_run_is_no_profile() -> None:
    """The message names it."""
    with pytest.raises(InvalidArgument, match=r"p\.json has no run"):
        read_profile([], "p.json")


def test_steps_of_the_same_nodes_are_compared() -> None:
    """Two steps on one side may be one on the other; what is on one side only has 0 on the other."""
    before = Report(1, 1.0, (_step("a", 3.0, "a"), _step("b", 2.0, "b"), _step("c", 1.0, "c")))
    after = Report(1, 1.0, (_step("ab", 4.0, "b", "a"), _step("d", 0.5, "d")))
    found = [(item.name, item.before_ms, item.after_ms) for item in compare_profiles(before, after)]
    assert found == [("a", 5.0, 4.0), ("c", 1.0, 0.0), ("d", 0.0, 0.5)]


def test_operators_that_changed_are_shown() -> None:
    """Before and after."""
    before, after = (
        Report(1, 1.0, (_step("a", 3.0, "a", operators="Conv"),)),
        Report(1, 1.0, (_step("a", 3.0, "a", operators="Gemm"),)),
    )
    assert [item.operators for item in compare_profiles(before, after)] == ["Conv -> Gemm"]


def _step(name: str, ms: float, *origins: str, operators: str = "Conv") -> Step:
    return Step(name, operators, "P", "k", (name,), origins, "", ms, None, None)


def test_a_trace_may_be_an_object(tmp_path: Path) -> None:
    """Chrome writes its events so."""
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [{"ph": "M"}, {"cat": "Session", "ts": 0, "dur": 1, "name": "model_run", "args": {}}]}')
    assert [event["name"] for event in read_events(path)] == ["model_run"]


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "3"])
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    """By the name of the file."""
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InvalidArgument, match=r"t\.json is no profile"):
        read_events(tmp_path / "t.json")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """With how to make one."""
    with pytest.raises(NoSuchFile, match=r"sardonyx profile MODEL -o t\.json"):
        read_events(tmp_path / "t.json")
