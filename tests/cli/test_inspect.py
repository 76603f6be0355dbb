"""`sardonyx inspect`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result


def test_json_holds_versions_values_and_operators(invoke: Callable[..., Result], model_file: Path) -> None:
    """Everything that the text shows."""
    facts = json.loads(invoke("inspect", model_file, "--json").stdout)
    assert facts["operators"] == {"Relu": 1, "Add": 1}
    assert facts["inputs"] == [{"name": "x", "type": "tensor(float)", "shape": ["n", 2]}]
    assert (facts["nodes"], facts["parameters"], facts["weight_bytes"]) == (2, 2, 8)


def test_text_shows_the_operators(invoke: Callable[..., Result], model_file: Path) -> None:
    """A table for people."""
    assert "Relu" in invoke("inspect", model_file).output


def test_the_whole_model_can_be_printed(invoke: Callable[..., Result], model_file: Path) -> None:
    """One node per line."""
    assert "a = Relu(x) @first" in invoke("inspect", model_file, "--text").output


def test_a_file_that_is_no_model_is_told(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """With the error's class."""
    (tmp_path / "text.onnx").write_text("hello")
    result = invoke("inspect", tmp_path / "text.onnx")
    assert result.exit_code == 1
    assert result.stderr.startswith("InvalidProtobuf: ")
