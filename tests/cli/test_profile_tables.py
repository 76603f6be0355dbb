"""Profiles as tables."""

from __future__ import annotations

import pytest

from sardonyx.cli.profile_tables import describe, print_differences, print_report
from sardonyx.providers.cpu.roofline import Roofline
from sardonyx.session.profiling.report import Difference, Report, Step

ROOFLINE = Roofline(1, 100e9, ((1 << 20, 50e9),))


def _step(name: str, ms: float, flops: int | None = 1_000_000, size_bytes: int | None = 1000, *others: str) -> Step:
    return Step(name, "Conv+Relu", "CPUExecutionProvider", "k", (name,), (name, *others), "float[1,2]", ms, flops, size_bytes)


REPORT = Report(10, 2.0, (_step("/a/b/conv", 0.5, 25_000_000, 1000, "/a/b/relu", "/a/c/x/add"), _step("/a/d/conv", 1.0)))


def test_the_run_and_its_steps_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    """What is outside of steps is said."""
    print_report("m.onnx", REPORT, ROOFLINE, 0)
    shown = capsys.readouterr().out
    assert "2.000 ms a run (middle half of 10 runs), 2 steps" in shown
    assert "steps 1.500 ms, outside of them 0.500 ms (25.0%)" in shown


def test_a_step_says_how_near_to_the_roofline_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """25 MFLOP need a quarter of a millisecond of 100 GFLOP/s: half of the time that it takes."""
    print_report("m.onnx", REPORT, ROOFLINE, 0)
    assert "50%" in capsys.readouterr().out
    assert [step["of_roofline"] for step in describe("m", REPORT, ROOFLINE)["steps"]] == [0.5, 0.01]


def test_what_has_no_bytes_has_no_roofline() -> None:
    """None, not 0."""
    report = Report(1, 1.0, (_step("n", 1.0, None, None),))
    assert describe("m", report, ROOFLINE)["steps"][0]["of_roofline"] is None


def test_only_the_longest_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """And what the others take together."""
    print_report("m.onnx", REPORT, ROOFLINE, 1)
    shown = capsys.readouterr().out
    assert "/a/d/conv" in shown
    assert "/a/b/conv" not in shown
    assert "1 more steps take 0.500 ms" in shown


def test_names_are_shown_beside_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    """As paths from there."""
    print_report("m.onnx", REPORT, ROOFLINE, 0)
    assert "with relu, ../c/x/add" in capsys.readouterr().out


def test_lines_fit_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    print_report("m.onnx", Report(1, 2.0, (_step("/long/name" * 12, 1.0),)), ROOFLINE, 0)
    print_differences(["a", "b"], [REPORT, REPORT], [Difference("/long/name" * 12, "Conv", 1.0, 2.0)], 0)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_differences_have_signs(capsys: pytest.CaptureFixture[str]) -> None:
    """More is +."""
    print_differences(
        ["a", "b"], [REPORT, REPORT], [Difference("n", "Conv -> FusedConv", 1.0, 2.5), Difference("o", "Exp", 1.0, 0.0)], 1
    )
    shown = capsys.readouterr().out
    assert "+1.500" in shown
    assert "2.50" in shown
    assert "1 smaller differences" in shown


def test_short_runs_have_digits_and_what_they_take_unrecorded(capsys: pytest.CaptureFixture[str]) -> None:
    """A step of a hundredth of the run is not 0."""
    print_report("m.onnx", Report(1, 0.02, (_step("tiny", 0.0002),)), ROOFLINE, 0, 0.0016)
    shown = capsys.readouterr().out
    assert "m.onnx: 0.0200 ms a run" in shown
    assert "a run that is not recorded takes 0.0016 ms" in shown
    assert "0.0002 " in shown
