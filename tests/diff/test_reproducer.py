"""The small model that shows a difference, as files."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from diff.test_report import finding

from sardonyx.diff.reproducer import free_path, save_reproducer
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import load


def test_the_model_and_its_inputs_are_written(tmp_path: Path) -> None:
    """Names of inputs may be any, such as a path or "file"."""
    inputs = {"file": np.float32([1]), "/layer.1/x": np.int64([2])}
    data = save_reproducer(dataclasses.replace(finding(), feed=inputs), tmp_path / "small.onnx")
    assert load(tmp_path / "small.onnx").graph.outputs[0].name == "y"
    with np.load(data) as held:
        assert {name: held[name].tolist() for name in held.files} == {"file": [1], "/layer.1/x": [2]}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Neither the model, nor its inputs; a free name is found."""
    save_reproducer(finding(), tmp_path / "m.diff.onnx")
    with pytest.raises(InvalidArgument, match="is there already"):
        save_reproducer(finding(), tmp_path / "m.diff.onnx")
    assert free_path(Path("elsewhere/m.onnx"), tmp_path) == tmp_path / "m.diff-1.onnx"
