"""`sardonyx profile --placement`, and what sessions do with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from sardonyx.partition.profile import load_profile
from sardonyx.session.placement import profile as placement_profile
from sardonyx.session.placement import samples as placement_samples


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a shorter time than users do."""
    monkeypatch.setattr(placement_samples, "_BUDGET_S", 0.005)
    monkeypatch.setattr(placement_profile, "_RUN_BUDGET_S", 0.02)


def test_the_profile_is_written_and_used(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """Runs of each provider are listed; a session takes the file."""
    done = invoke("profile", model_file, "--placement", "-o", tmp_path / "p.json", "--dim", "n=4")
    assert "ReferenceExecutionProvider first" in done.output
    assert load_profile(tmp_path / "p.json").sizes == {"n": 4}
    used = invoke("run", model_file, "--random", "--placement-profile", tmp_path / "p.json", "--json")
    assert json.loads(used.stdout)["runs"] == 1


def test_json_has_the_times(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """In milliseconds for a run, in microseconds for a step."""
    name = "ReferenceExecutionProvider"
    done = invoke("profile", model_file, "--placement", "-o", tmp_path / "p.json", "--provider", name, "--json")
    facts = json.loads(done.stdout)
    assert facts["runs_ms"][name] > 0
    assert (facts["samples"], facts["providers"], facts["sizes"]) == (2, 1, {"n": 1})


def test_it_needs_a_file(invoke: Callable[..., Result], model_file: Path) -> None:
    """Sessions read what is found from there."""
    done = invoke("profile", model_file, "--placement")
    assert done.exit_code == 1
    assert "give -o FILE.json" in done.stderr


def test_a_missing_folder_is_told_before_anything_is_measured(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """It would be a pity afterwards."""
    result = invoke("profile", str(tmp_path / "none.onnx"), "--placement", "-o", str(tmp_path / "none" / "p.json"))
    assert result.exit_code == 1
    assert f"there is no folder '{tmp_path / 'none'}' to write p.json into" in result.output


def test_a_missing_model_is_told(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """As by other verbs."""
    assert "no-such.onnx" in invoke("profile", "no-such.onnx", "--placement", "-o", tmp_path / "p.json").stderr
