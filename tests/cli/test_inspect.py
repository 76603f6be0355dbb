"""`sardonyx inspect`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result
from support.models import model

from sardonyx.formats.onnx import save


def test_json_holds_versions_values_and_operators(invoke: Callable[..., Result], model_file: Path) -> None:
    """Everything that the text shows."""
    facts = json.loads(invoke("inspect", model_file, "--json").stdout)
    assert facts["operators"] == {"Relu": 1, "Add": 1}
    assert facts["inputs"] == [{"name": "x", "type": "tensor(float)", "shape": ["n", 2]}]
    assert (facts["nodes"], facts["parameters"], facts["weight_bytes"]) == (2, 2, 8)


def test_elements_in_attributes_are_counted(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """A forest has no weights: its trees are lists in attributes."""
    save(
        model("graph(x: float[n]) -> (y: float[n]) {\ny = ai.onnx.ml.Scaler(x) {offset = [1.0, 2.0], scale = [3.0, 4.0]}\n}"),
        tmp_path / "m.onnx",
    )
    assert "1 node, 0 parameters, 0.0 MiB of weights, 4 elements in attributes" in invoke("inspect", tmp_path / "m.onnx").output


def test_text_shows_the_operators(invoke: Callable[..., Result], model_file: Path) -> None:
    """A table for people, in which shapes are as in ONNX."""
    output = invoke("inspect", model_file).output
    assert "Relu" in output
    assert "[n, 2]" in output


def test_the_whole_model_can_be_printed(invoke: Callable[..., Result], model_file: Path) -> None:
    """One node per line."""
    assert "a = Relu(x) @first" in invoke("inspect", model_file, "--text").output


def test_a_file_that_is_no_model_is_told(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """With the error's class."""
    (tmp_path / "text.onnx").write_text("hello")
    result = invoke("inspect", tmp_path / "text.onnx")
    assert result.exit_code == 1
    assert result.stderr.startswith("InvalidProtobuf: ")


def test_a_page_is_written(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """With the session that the options ask for."""
    page = tmp_path / "page.html"
    result = invoke("inspect", model_file, "--html", page, "--dim", "n=3", "--provider", "ReferenceExecutionProvider")
    assert result.exit_code == 0, result.output
    assert f"{page}: 2 nodes" in result.stdout
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "ReferenceExecutionProvider_main_0" in text
    assert '"sizes":{"x":[3,2]}' in text


def test_a_profile_needs_a_page(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """And a page needs a folder."""
    assert "give --html OUT.html" in invoke("inspect", model_file, "--profile", "p.json").stderr
    missing = invoke("inspect", model_file, "--html", tmp_path / "none" / "page.html")
    assert missing.exit_code == 1
    assert "there is no folder" in missing.stderr


def test_what_is_wrong_with_a_model_is_on_its_page(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """And on stderr."""
    path, page = tmp_path / "odd.onnx", tmp_path / "page.html"
    save(model("graph(x: float[2]) -> (y: float[2]) {\ny = none.Such(x)\n}"), path)
    result = invoke("inspect", path, "--html", page)
    assert result.exit_code == 0, result.output
    assert "no session can be made of this model" in result.stderr
    assert "no session can be made of this model" in page.read_text(encoding="utf-8")
