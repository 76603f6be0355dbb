"""Benchmarks as tables."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.cli.bench_engines import Job, Measured, Turn
from sardonyx.cli.bench_tables import describe_engines, percentile, print_engines
from sardonyx.session.options import SessionOptions

JOB = Job("m.onnx", {"x": np.ones((3, 2), np.float32), "s": ["a"]}, SessionOptions(), (), (), 2, 1)


def _found() -> list[Measured]:
    own = Measured("sardonyx", "1.31.0+sardonyx.0.1.0", [500.0, 300.0], 2000.0, {"load_ms": 1.0}, 50 << 20, 100 << 20)
    own.turns = [Turn((1.0, 3.0), 4.0)]
    other = Measured("onnxruntime", "1.2.3", [400.0])
    other.turns = [Turn((4.0, 4.0), 8.0)]
    return [own, other, Measured("openvino", error="ImportError: no")]


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 5.0), (0.9, 9.0), (0.91, 10.0), (0.99, 10.0), (1.0, 10.0)])
def test_percentiles_are_runs_that_happened(share: float, expected: float) -> None:
    """The nearest rank."""
    assert percentile([float(number) for number in range(1, 11)], share) == expected


def test_the_table_says_what_was_measured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In 80 columns: engines, ratios, errors, and what the figures include."""
    monkeypatch.setenv("COLUMNS", "80")
    print_engines("m.onnx", JOB, _found())
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "sardonyx 0.1.0" in " ".join(shown.split())
    assert "onnxruntime takes 2.000 times as long as sardonyx (2.000 to 2.000 in 1 turns)" in shown
    assert "openvino: ImportError: no" in shown
    assert "with an empty cache of kernels sardonyx starts in 2000 ms" in shown
    assert "start: from the start of a process to its first result" in shown


def test_json_has_all_of_it() -> None:
    """An engine that failed has its error only."""
    own, other, failed = describe_engines("m.onnx", JOB, _found())["engines"]
    assert (own["start_ms"]["median"], own["cold_start_ms"], own["memory_mib"]) == (
        400.0,
        2000.0,
        {"after_first_run": 50.0, "peak": 100.0},
    )
    assert other["times_as_long"] == {"median": 2.0, "min": 2.0, "max": 2.0, "each": [2.0]}
    assert failed == {"engine": "openvino", "version": "", "error": "ImportError: no"}
    assert describe_engines("m", JOB, _found())["inputs"] == {"x": "float32[3,2]", "s": "list"}


def test_runs_of_microseconds_have_digits(capsys: pytest.CaptureFixture[str]) -> None:
    """Three of the fastest engine's median; others are lined up with it."""
    own, other, _ = _found()
    own.turns, other.turns = [Turn((0.00492, 0.00493), 1.0)], [Turn((0.017, 0.0171), 1.0)]
    print_engines("m.onnx", JOB, [own, other])
    shown = capsys.readouterr().out
    assert "0.00492" in shown
    assert "0.01700" in shown
