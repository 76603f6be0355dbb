"""Streams of nodes, as onnxruntime's file has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.providers import FusingProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes

TEXT = """graph(x: float[2]) -> (y: float[2]) {
    a = Neg(x) @left.1
    b = Exp(a) @left.2
    c = Abs(x) @right.1
    d = Sin(c) @right.2
    y = Add(b, d) @end
}"""
OPERATORS = {"Neg", "Exp", "Abs", "Sin", "Add"}
STREAMS = {"type": "DeviceBasedPartitioner", "streams": [["left.1", "left.2"], ["right.1", "right.2"]], "devices": ["0", "0"]}


def _session(path: Path, *operators: str, executor: str = "sequential", fuse: bool = False) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.node_partition_config_file", str(path))
    options.add_session_config_entry("session.executor", executor)
    provider = FusingProvider(operators or OPERATORS, fuse=fuse)
    return ort.InferenceSession(to_bytes(model(TEXT)), options, providers=[provider])


def _partitions(session: ort.InferenceSession) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for place in session.explain():
        found.setdefault(place.partition, []).append(place.node)
    return sorted(found.values())


@pytest.mark.parametrize("executor", ["sequential", "dataflow", "parallel"])
def test_streams_are_partitions_of_their_own(tmp_path: Path, executor: str) -> None:
    """Though one provider runs all. Results are the same with each executor."""
    (tmp_path / "s.json").write_text(json.dumps(STREAMS))
    session = _session(tmp_path / "s.json", executor=executor)
    assert _partitions(session) == [["end"], ["left.1", "left.2"], ["right.1", "right.2"]]
    x = np.float32([0.5, -2])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], np.exp(-x) + np.sin(np.abs(x)), rtol=1e-6)


def test_a_node_that_no_stream_names_goes_with_its_neighbours(tmp_path: Path) -> None:
    """With what it reads, else with what reads it."""
    (tmp_path / "s.json").write_text(json.dumps({"streams": [["left.1"], ["right.2"]]}))
    assert _partitions(_session(tmp_path / "s.json")) == [["end"], ["left.1", "left.2"], ["right.1", "right.2"]]


def test_a_fused_claim_stays_together(tmp_path: Path) -> None:
    """It is of the first stream that names one of its nodes."""
    (tmp_path / "s.json").write_text(json.dumps({"streams": [["left.2"], ["right.1"]]}))
    assert _partitions(_session(tmp_path / "s.json", "Neg", "Exp", "Abs", "Sin", fuse=True)) == [
        ["end"],
        ["left.1", "left.2"],
        ["right.1", "right.2"],
    ]


def test_a_file_that_is_not_there_is_written(tmp_path: Path) -> None:
    """With a stream for each provider; read again it changes nothing."""
    first = _session(tmp_path / "s.json", "Neg", "Exp", "Add")
    written = json.loads((tmp_path / "s.json").read_text())
    assert (written["type"], sorted(map(sorted, written["streams"]))) == (
        "DeviceBasedPartitioner",
        [["end", "left.1", "left.2"], ["right.1", "right.2"]],
    )
    assert _partitions(_session(tmp_path / "s.json", "Neg", "Exp", "Add")) == _partitions(first)
    with pytest.raises(ort.Fail, match="is not there and cannot be written"):
        _session(tmp_path / "none" / "s.json")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ("{", "s.json: it is no JSON file"),
        ([], r"s.json: expected .*streams.*, got \[\]"),
        ({"streams": [["end", 3]]}, "expected .*streams"),
        ({"type": "Other", "streams": []}, "the type is DeviceBasedPartitioner, got 'Other'"),
        ({"streams": [["end"], ["end"]]}, "node 'end' is in stream 1 and in stream 2"),
        ({"streams": [["left.3"]]}, "names node 'left.3', which the optimized model does not have; did you mean 'left."),
    ],
)
def test_what_is_malformed_is_told(tmp_path: Path, facts: Any, message: str) -> None:
    """With the file, and what is expected or near."""
    (tmp_path / "s.json").write_text(facts if isinstance(facts, str) else json.dumps(facts))
    with pytest.raises(ort.InvalidArgument, match=message):
        _session(tmp_path / "s.json")
