"""The program that runs one engine."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from pathlib import Path

import pytest

from sardonyx.cli.bench_worker import main, measure, memory_bytes


@pytest.mark.parametrize(("count", "runners"), [(1, 1), (7, 3), (2, 4)])
def test_a_count_is_kept_to(count: int, runners: int) -> None:
    """The runs are shared by the threads."""
    calls: list[int] = []
    found = measure([lambda: calls.append(threading.get_ident())] * runners, 0.0, count)
    assert len(found["latencies_ns"]) == len(calls) == count
    assert len(set(calls)) <= runners


def test_a_duration_has_one_run_at_least() -> None:
    """Also where a run takes longer."""
    found = measure([lambda: None], 0.0, 0)
    assert len(found["latencies_ns"]) == 1
    assert found["elapsed_ns"] >= sum(found["latencies_ns"])


def test_the_time_of_a_run_is_measured() -> None:
    """A run that sleeps for 20 ms takes that long, and so many of them their sum."""
    found = measure([lambda: time.sleep(0.02)], 0.0, 5)
    assert all(latency >= 20e6 for latency in found["latencies_ns"])
    assert found["elapsed_ns"] >= 100e6


def test_what_a_run_raises_is_raised() -> None:
    """In the thread that asked."""

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        measure([fail, lambda: None], 0.0, 4)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system says less")
def test_memory_is_now_and_at_most() -> None:
    """In bytes."""
    found = memory_bytes()
    assert 1 << 20 < found["memory_bytes"] <= found["peak_bytes"]


def test_an_engine_that_cannot_be_imported_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that says why."""
    request = tmp_path / "r.json"
    request.write_text(json.dumps({"engine": "no_such_engine", "path": sys.path}))
    replies = io.StringIO()
    main(str(request), replies)
    assert json.loads(replies.getvalue()) == {"error": "ModuleNotFoundError: No module named 'no_such_engine'"}
