"""Inputs that are constants go."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from support.models import model

from sardonyx.formats.onnx import to_proto
from sardonyx.tools.remove_initializer_from_input import main, remove_initializer_from_input

TEXT = "graph(x: float[2], w: float[2]) -> (y: float[2]) {\nw: float[2] = [1, 2]\ny = Add(x, w)\n}"


@pytest.mark.parametrize(("version", "left"), [(8, ["x"]), (3, ["x", "w"])])
def test_inputs_that_are_initializers_go(version: int, left: list[str]) -> None:
    """From IR version 4 on, where an initializer need not be an input; a second time there is nothing to do."""
    proto = to_proto(model(TEXT))
    proto.ir_version = version
    assert remove_initializer_from_input(proto) == (version == 8)
    assert [value.name for value in proto.graph.input] == left
    assert not remove_initializer_from_input(proto)


def test_on_the_command_line(tmp_path: Path) -> None:
    """From a file to another."""
    onnx.save(to_proto(model(TEXT)), tmp_path / "a.onnx")
    main(["--input", str(tmp_path / "a.onnx"), "--output", str(tmp_path / "b.onnx")])
    assert [value.name for value in onnx.load(tmp_path / "b.onnx").graph.input] == ["x"]
