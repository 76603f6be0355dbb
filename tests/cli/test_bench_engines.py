"""Processes of engines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sardonyx.cli.bench_engines import Engine, Job, Measured, Turn, start_engine
from sardonyx.errors import Fail
from sardonyx.session.options import SessionOptions

FEED = {"x": np.ones((3, 2), np.float32)}


def _job(path: Path) -> Job:
    return Job(str(path), FEED, SessionOptions(), (), (), 1, 1)


def test_an_engine_runs_as_often_as_asked(model_file: Path, tmp_path: Path) -> None:
    """Its start is noted, with its parts."""
    found = Measured("sardonyx")
    with start_engine(found, _job(model_file), tmp_path) as engine:
        turn, reply = engine.run(0.0, 5)
    assert len(turn.latencies_ms) == 5
    assert turn.elapsed_ms >= sum(turn.latencies_ms)
    assert found.starts_ms[0] > sum(found.parts_ms.values())
    assert reply["peak_bytes"] >= found.loaded_bytes


def test_a_cold_start_has_an_empty_cache(model_file: Path, tmp_path: Path) -> None:
    """Kernels are compiled into it; it is not counted among the other starts."""
    found = Measured("sardonyx")
    with start_engine(found, _job(model_file), tmp_path, cold=True):
        pass
    assert found.cold_start_ms
    assert found.starts_ms == []
    assert list((tmp_path / "empty").glob("*.sxo"))


def test_a_model_that_cannot_run_is_told(tmp_path: Path) -> None:
    """With what the engine says."""
    with pytest.raises(Fail, match="NoSuchFile"):
        start_engine(Measured("sardonyx"), _job(tmp_path / "none.onnx"), tmp_path)


def test_ratios_are_those_of_turns() -> None:
    """Of their medians."""
    own, other = Measured("a"), Measured("b")
    own.turns = [Turn((1.0, 2.0, 9.0), 12.0), Turn((4.0,), 4.0)]
    other.turns = [Turn((4.0,), 4.0), Turn((2.0, 2.0), 4.0)]
    assert other.ratios(own) == [2.0, 0.5]
    assert own.throughput_per_s == 250.0
    assert own.latencies_ms == [1.0, 2.0, 4.0, 9.0]


def test_a_process_that_ends_is_reported_with_its_last_words(tmp_path: Path) -> None:
    """Its status or signal, and the last line of its stderr."""
    complaints = tmp_path / "err"
    ends = {"import sys; sys.exit('first\\nno such thing')": "with status 1: no such thing", "import os; os.abort()": "by SIGABRT"}
    for text, message in ends.items():
        with complaints.open("wb") as stderr:
            process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=stderr, text=True)
        with Engine("some", process, complaints) as engine, pytest.raises(Fail, match=f"some ended without an answer, {message}"):
            engine.read()
