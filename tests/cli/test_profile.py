"""`sardonyx profile`: steps of a run, and how two profiles differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result


def test_steps_and_operators_are_listed(invoke: Callable[..., Result], model_file: Path) -> None:
    """Fused nodes are one step, with the nodes of the model that it stands for."""
    shown = invoke("profile", model_file, "--runs", "8", "--dim", "n=4").output
    assert "Relu+Add" in shown
    assert "first" in shown
    assert "with y" in shown
    assert "peak of this machine" in shown
    assert "inputs: x float32[4,2]; --dim sets n=4" in shown


def test_json_has_every_step(invoke: Callable[..., Result], model_file: Path) -> None:
    """With its time, its operations and bytes, and what the machine would need at least."""
    facts = json.loads(invoke("profile", model_file, "--runs", "8", "--dim", "n=4", "--json").stdout)
    assert [item["name"] for item in facts["steps"]] == ["(inputs)", "first", "(results)"]
    step = facts["steps"][1]
    assert (facts["inputs"], facts["dims"]) == ({"x": "float32[4,2]"}, {"n": 4})
    assert (facts["runs"], step["operators"], step["original_nodes"]) == (8, "Relu+Add", ["first", "y"])
    assert (step["flops"], step["size_bytes"]) == (16, 32 + 8 + 32)
    assert 0 < step["ms"] <= facts["run_ms"]
    assert step["roofline_ms"] > 0
    assert facts["outside_steps_ms"] == pytest.approx(facts["run_ms"] - facts["steps_ms"])


def test_steps_and_what_lies_outside_add_up_to_the_run(invoke: Callable[..., Result], model_file: Path) -> None:
    """Each part has a name; machine code has none of them."""
    facts = json.loads(invoke("profile", model_file, "--json").stdout)
    assert facts["steps_ms"] + sum(part["ms"] for part in facts["outside"]) == pytest.approx(facts["run_ms"])
    assert [part["name"].partition(":")[0] for part in facts["outside"]] == [
        "before the first program",
        "in programs, around their steps",
        "between programs",
        "after the last program",
    ]
    assert 20 <= facts["runs"] <= 1000
    assert facts["steps_ms"] > 0.95 * facts["run_ms"]


def test_parts_outside_of_steps_are_listed(
    invoke: Callable[..., Result], model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of runs in Python."""
    monkeypatch.setenv("SARDONYX_NATIVE_RUN", "0")
    assert "before the first program: inputs, sizes, memory" in " ".join(invoke("profile", model_file).output.split())


def test_the_threads_of_a_run_are_chosen(invoke: Callable[..., Result], model_file: Path) -> None:
    """`--threads`, which every verb has that makes a session; the peak is that of so many processors."""
    shown = [" ".join(invoke("profile", model_file, "--runs", "4", "--threads", str(count)).output.split()) for count in (1, 2)]
    assert ["on 1 thread:" in text for text in shown] == [True, False]


def test_the_file_holds_trace_events(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """Complete events of the runs that count, each inside the one that it is part of."""
    invoke("profile", model_file, "--runs", "5", "--warmup", "2", "-o", tmp_path / "p.json")
    events = json.loads((tmp_path / "p.json").read_text())
    names = [event["name"] for event in events]
    assert names.count("model_run") == 5
    assert names.count("first_kernel_time") == 5
    assert {"session_initialization", "model_loading_uri"} <= set(names)
    for event in events:
        assert event["ph"] == "X"
        assert min(event["dur"], event["ts"]) >= 0
    runs = [event for event in events if event["name"] == "model_run"]
    for step in (event for event in events if event["cat"] == "Node"):
        assert any(run["ts"] <= step["ts"] and step["ts"] + step["dur"] <= run["ts"] + run["dur"] + 1e-3 for run in runs)
        assert not step["args"]["nodes"] or step["args"]["roofline_us"] > 0


def test_two_profiles_are_compared(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """By the nodes of the given model: a step and what it was before are one line."""
    for name, level in (("a", "0"), ("b", "99")):
        entry = f"session.graph_optimization_level={level}"
        invoke("profile", model_file, "--runs", "4", "--config", entry, "-o", tmp_path / f"{name}.json")
    facts = json.loads(invoke("profile", "--compare", tmp_path / "a.json", tmp_path / "b.json", "--json").stdout)
    (item,) = [item for item in facts["differences"] if not item["name"].startswith("(")]
    assert item["name"] == "first"
    assert item["difference_ms"] == pytest.approx(item["after_ms"] - item["before_ms"])
    assert "times as long" in invoke("profile", "--compare", tmp_path / "a.json", tmp_path / "b.json").output


def test_without_a_model_it_says_what_it_takes(invoke: Callable[..., Result]) -> None:
    """A model, or two profiles."""
    assert "give a MODEL to measure, or --compare A B" in invoke("profile").stderr


def test_what_is_no_profile_is_refused(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """By its name."""
    (tmp_path / "empty.json").write_text("[]")
    assert "is no profile" in invoke("profile", "--compare", model_file, model_file).stderr
    assert "has no run of a model" in invoke("profile", "--compare", tmp_path / "empty.json", tmp_path / "empty.json").stderr
    assert "is not there" in invoke("profile", "--compare", "no.json", "no.json").stderr


def test_a_missing_folder_is_told_first(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """Before anything is measured."""
    assert "there is no folder" in invoke("profile", model_file, "-o", tmp_path / "none" / "p.json").stderr


def test_of_short_runs_it_says_what_they_take_unrecorded(invoke: Callable[..., Result], model_file: Path) -> None:
    """And what recording adds to that."""
    facts = json.loads(invoke("profile", model_file, "--json").stdout)
    assert facts["unrecorded_run_ms"] > 0
    assert facts["recording_ms"] == max(0, facts["run_ms"] - facts["unrecorded_run_ms"])
