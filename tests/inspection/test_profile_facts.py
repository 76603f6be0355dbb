"""Profiles as data of a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.inspection.profile_facts import profile_facts


def event(name: str, ts: float, dur: float, cat: str = "Node", **said: Any) -> dict[str, Any]:
    return {"name": name, "cat": cat, "ts": ts, "dur": dur, "tid": 1, "ph": "X", "args": said}


def written(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_the_run_of_median_duration_is_shown(tmp_path: Path) -> None:
    """With times from its begin, and what events say of operators, operations and bytes."""
    runs = [event("model_run", start, dur, "Session") for start, dur in ((1000, 90), (2000, 100), (3000, 500))]
    steps = [
        event("a_kernel_time", start + 10, 20, op_name="Conv", provider="CPU", flops=2000, bytes="64", nodes=["a"])
        for start in (1000, 2000)
    ]
    facts = profile_facts(written(tmp_path / "p.json", [*runs, *steps, event("session_initialization", 0, 900, "Session")]))
    assert (facts["runs"], facts["run_us"]) == (3, 100)
    assert facts["events"] == [
        {
            "name": "a",
            "cat": "Node",
            "ts": 10,
            "dur": 20,
            "tid": "1",
            "op": "Conv",
            "provider": "CPU",
            "flops": 2000,
            "bytes": 64,
            "nodes": ["a"],
        }
    ]


def test_a_trace_without_runs_and_details_is_shown_whole(tmp_path: Path) -> None:
    """Also in the form of an object; what is no span is left out."""
    trace = {"traceEvents": [event("x", 5, 1), {"ph": "M", "name": "meta"}, {"name": "broken", "ts": "now", "dur": 1}, 7]}
    facts = profile_facts(written(tmp_path / "p.json", trace))
    assert [(item["name"], item["ts"]) for item in facts["events"]] == [("x", 0)]
    assert facts["run_us"] is None


@pytest.mark.parametrize(
    ("text", "message"), [("{", "which is JSON"), ("3", "should be a list of events"), ("[]", "no event with name, ts, dur")]
)
def test_what_is_no_profile_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """With what is wrong."""
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InvalidArgument, match=message):
        profile_facts(tmp_path / "p.json")


def test_a_missing_profile_is_named(tmp_path: Path) -> None:
    """With what writes one."""
    with pytest.raises(NoSuchFile, match=r"p\.json is not there; `sardonyx profile MODEL -o p\.json` writes"):
        profile_facts(tmp_path / "p.json")
