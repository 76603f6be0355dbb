"""`sardonyx compile`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key for seals is the test's own."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))


def test_a_compiled_model_is_written_and_loads(invoke: Callable[..., Result], model_file: Path) -> None:
    """Beside the model, with what it holds on one line."""
    output = invoke("compile", model_file, "--provider", "CPUExecutionProvider").output
    path = model_file.with_name(f"{model_file.stem}_ctx.onnx")
    assert f"{path}: 1 compiled partition (1 of CPUExecutionProvider), 0 other nodes" in output
    assert "com.microsoft.EPContext" in invoke("explain", path).output


def test_json_says_the_same(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """At a path that is given, with the programs inside."""
    path = tmp_path / "out" / "compiled.onnx"
    path.parent.mkdir()
    found = json.loads(invoke("compile", model_file, "-o", path, "--embed", "--json").stdout)
    assert found == {"path": str(path), "programs": {"CPUExecutionProvider": 1}, "other_nodes": 0}
    assert [item.name for item in path.parent.iterdir()] == ["compiled.onnx"]


def test_weights_may_stay_in_the_model(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """Wherever the compiled model goes."""
    path = tmp_path / "out" / "compiled.onnx"
    path.parent.mkdir()
    invoke("compile", model_file, "-o", path, "--weightless")
    assert sorted(item.name for item in path.parent.iterdir()) == ["compiled.bin", "compiled.onnx"]


def test_a_model_that_is_not_there_is_told(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """In one line."""
    assert "nowhere.onnx" in invoke("compile", tmp_path / "nowhere.onnx").stderr


@pytest.mark.parametrize("name", [".", "..", "/"])
def test_a_folder_without_a_name_is_no_model(invoke: Callable[..., Result], name: str) -> None:
    """It is refused as any folder."""
    result = invoke("compile", name)
    assert result.exit_code == 1
    assert "InvalidArgument" in result.stderr
