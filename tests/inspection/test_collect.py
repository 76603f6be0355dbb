"""What is found out of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from support.models import model

from sardonyx.inspection.collect import inspect_model
from sardonyx.ir import Model
from sardonyx.session.options import SessionOptions

GATE = "graph(x: float[n, 4]) -> (y: float[n, 4]) {\ng = Sigmoid(x) @gate\nh = Mul(x, g) @times\ny = Softmax(h) @last\n}"


def about(held: Model) -> dict[str, Any]:
    return {"model": held.label}


def rows() -> dict[str, Any]:
    return {"x": np.zeros((2, 4), np.float32)}


def test_each_stage_is_kept() -> None:
    """The graph before and behind, what made the difference, who runs what, and memory."""
    seen: list[str] = []
    found = inspect_model(model(GATE), about, feed=rows, on_step=seen.append)
    assert seen == ["loading", "optimizing", "assigning", "compiling"]
    assert [node["name"] for node in found.before["nodes"]] == ["gate", "times", "last"]
    assert found.after is not None
    assert [(node["op"], node["sources"], node["provider"]) for node in found.after["nodes"]] == [
        ("Swish", [0, 1], "CPUExecutionProvider"),
        ("Softmax", [2], "CPUExecutionProvider"),
    ]
    assert {"name": "fuse_swish", "count": 1, "kind": "rule"} in found.rules
    assert [change["optimization"] for change in found.changes] == ["fuse_swish"]
    assert found.memory is not None
    assert found.memory["sizes"] == {"x": [2, 4]}
    assert not found.notes


def test_products_have_their_precision() -> None:
    """As their kernels were chosen; other nodes have none."""
    text = "graph(x: float[n, 4]) -> (y: float[n, 4]) {\nw: float[4, 4] = ... 1\na = MatMul(x, w) @product\ny = Exp(a) @end\n}"
    found = inspect_model(model(text), about, feed=rows)
    assert found.after is not None
    assert {node["name"]: node.get("precision") for node in found.after["nodes"]} == {"product": "float32", "end": None}


def test_a_model_without_a_session_is_shown_as_it_is() -> None:
    """With a note that says what is wrong."""
    found = inspect_model(model("graph(x: float[2]) -> (y: float[2]) {\ny = none.Such(x) @odd\n}"), about)
    assert found.after is None
    assert [node["op"] for node in found.before["nodes"]] == ["none.Such"]
    assert "none.Such" in found.notes[0]


def test_types_that_contradict_are_noted() -> None:
    """And the graph is shown with what the file declares."""
    found = inspect_model(model("graph(x: float[2]) -> (y: int64[2]) {\ny = Neg(x)\n}"), about)
    assert len(found.notes) == 2
    assert len(found.before["nodes"]) == 1


def test_inputs_that_do_not_fit_leave_memory_out() -> None:
    """With the reason; the rest is there."""
    found = inspect_model(model(GATE), about, feed=lambda: {"x": np.zeros((2, 5), np.float32)})
    assert found.memory is None
    assert "there is no memory plan" in found.notes[0]
    assert found.after is not None


def test_options_are_those_of_the_session() -> None:
    """Level and providers."""
    options = SessionOptions()
    options.add_session_config_entry("session.graph_optimization_level", "0")
    found = inspect_model(model(GATE), about, options=options, providers=["ReferenceExecutionProvider"])
    assert found.after is not None
    assert [node["provider"] for node in found.after["nodes"]] == ["ReferenceExecutionProvider"] * 3


def test_the_roofline_of_this_machine_goes_with_a_profile(tmp_path: Path) -> None:
    """Where the profile knows operations and bytes."""
    path = tmp_path / "profile.json"
    event = {"name": "a", "cat": "Node", "ts": 1, "dur": 2, "args": {"flops": 4, "bytes": 8}}
    path.write_text(json.dumps([event]))
    profile = inspect_model(model(GATE), about, profile=path).profile
    assert profile is not None
    assert profile["roof"]["flops"] > 1e8
    assert profile["roof"]["bytes"] > 1e8
    path.write_text(json.dumps([{**event, "args": {}}]))
    bare = inspect_model(model(GATE), about, profile=path).profile
    assert bare is not None
    assert "roof" not in bare


def test_what_a_session_keeps_goes_with_the_memory_plan() -> None:
    """The rows of its memory report; arenas are those of the run that was planned."""
    found = inspect_model(model(GATE), about, feed=lambda: {"x": np.zeros((2, 4), np.float32)})
    assert found.memory is not None
    rows = dict(found.memory["report"])
    assert rows["arenas"] == found.memory["arena_bytes"]
    assert rows["total"] >= rows["weights"] + rows["packed weights"] + rows["machine code"]
