"""What the shell offers."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from sardonyx.cli.completions import ModelPath, complete_operators, complete_providers, complete_rules

PARAMETER = click.Argument(["model"])
CONTEXT = click.Context(click.Command("c"))


def test_providers_are_found_in_any_case() -> None:
    """Those that are available."""
    assert complete_providers(CONTEXT, PARAMETER, "cpu") == ["CPUExecutionProvider"]


def test_operators_are_found_in_any_case() -> None:
    """Of all domains."""
    assert complete_operators(CONTEXT, PARAMETER, "zipm") == ["ZipMap"]


def test_rules_and_passes_are_found() -> None:
    """By their names."""
    assert {"fuse_conv_add", "fuse_conv_sum"} <= set(complete_rules(CONTEXT, PARAMETER, "fuse_conv"))
    assert complete_rules(CONTEXT, PARAMETER, "eliminate_dead") == ["eliminate_dead_nodes"]


def test_models_and_folders_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the path that was begun; what cannot be read offers nothing."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.onnx").touch()
    (tmp_path / "a" / "m.txt").touch()
    monkeypatch.chdir(tmp_path)

    def offered(begun: str) -> list[str]:
        return [item.value for item in ModelPath().shell_complete(CONTEXT, PARAMETER, begun)]

    assert offered("") == ["a/"]
    assert offered("a/") == ["a/m.onnx"]
    assert offered(f"{tmp_path}/a/m") == [f"{tmp_path}/a/m.onnx"]
    assert offered("none/") == []
