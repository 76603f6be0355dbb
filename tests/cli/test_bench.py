"""`sardonyx bench`."""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from sardonyx.formats.onnx import save
from sardonyx.ir.text import parse_model

QUICK = ("--warmup", "0", "--turns", "2", "--starts", "1", "--dim", "n=3")


def test_latency_throughput_start_and_memory_are_measured(invoke: Callable[..., Result], model_file: Path) -> None:
    """For as many runs as asked for."""
    facts = json.loads(invoke("bench", model_file, "--count", "20", *QUICK, "--json").stdout)
    (own,) = facts["engines"]
    assert (facts["inputs"], own["engine"], own["runs"]) == ({"x": "float32[3,2]"}, "sardonyx", 20)
    latency = own["latency_ms"]
    assert 0 < latency["min"] <= latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert own["throughput_per_s"] * latency["min"] <= 1e3
    start = own["start_ms"]
    assert start["median"] > start["import_ms"] + start["load_ms"] + start["first_run_ms"] > 0
    assert 0 < own["memory_mib"]["after_first_run"] <= own["memory_mib"]["peak"]


def test_streams_run_at_the_same_time(invoke: Callable[..., Result], model_file: Path) -> None:
    """They share the runs."""
    facts = json.loads(invoke("bench", model_file, "--count", "9", "--streams", "2", "--threads", "1", *QUICK, "--json").stdout)
    assert (facts["streams"], facts["threads"], facts["engines"][0]["runs"]) == (2, 1, 9)


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="there is nothing to compare with")
def test_engines_are_compared_in_turns(invoke: Callable[..., Result], model_file: Path) -> None:
    """The ratio is that of the medians of each turn, with its spread."""
    facts = json.loads(invoke("bench", model_file, "--count", "20", "--against", "onnxruntime", *QUICK, "--json").stdout)
    other = facts["engines"][1]
    ratio = other["times_as_long"]
    assert other["engine"] == "onnxruntime"
    assert (other["version"], other["runs"], len(ratio["each"])) == (other["version"] or None, 20, 2)
    assert ratio["min"] <= ratio["median"] == statistics.median(ratio["each"]) <= ratio["max"]
    shown = invoke("bench", model_file, "--count", "20", "--against", "onnxruntime", *QUICK).output
    assert "times as long as sardonyx" in shown


def test_an_engine_that_fails_is_told(
    invoke: Callable[..., Result], model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are measured all the same."""
    (tmp_path / "openvino.py").write_text("raise ImportError('no such engine here')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    facts = json.loads(invoke("bench", model_file, "--count", "4", "--against", "openvino", *QUICK, "--json").stdout)
    assert facts["engines"][0]["runs"] == 4
    assert facts["engines"][1]["error"] == "ImportError: no such engine here"


def test_an_unknown_engine_is_refused(invoke: Callable[..., Result], model_file: Path) -> None:
    """With those that there are."""
    done = invoke("bench", model_file, "--against", "tensorrt")
    assert "--against takes onnxruntime and openvino, separated by commas; got 'tensorrt'" in done.stderr


def test_a_broken_model_is_told(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """As by other verbs."""
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x07broken")
    done = invoke("bench", tmp_path / "broken.onnx")
    assert done.exit_code == 1
    assert "broken.onnx" in done.stderr


def test_operators_of_files_are_there(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """The other process loads them too."""
    (tmp_path / "ops.py").write_text(
        "import numpy as np\nimport sardonyx\n\n\n@sardonyx.op('local', 'Twice')\ndef twice(x: np.ndarray) -> np.ndarray:\n    return x + x\n"
    )
    path = tmp_path / "m.onnx"
    save(parse_model("ir_version 10\nopset 21, local 1\ngraph g(x: float[2]) -> (y: float[2]) {\ny = local.Twice(x)\n}"), path)
    facts = json.loads(invoke("bench", path, "--load", tmp_path / "ops.py", "--count", "2", *QUICK[:-2], "--json").stdout)
    assert facts["engines"][0]["runs"] == 2
