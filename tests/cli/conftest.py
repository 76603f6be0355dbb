"""What the tests of the verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.models import model

from sardonyx.cli.main import cli
from sardonyx.formats.onnx import save


@pytest.fixture
def invoke() -> Callable[..., Result]:
    """Run `sardonyx` with arguments, in a wide terminal."""
    return lambda *arguments: CliRunner().invoke(cli, [str(item) for item in arguments], env={"COLUMNS": "200"})


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    """A file with a small model: y = relu(x) + k."""
    path = tmp_path / "small.onnx"
    save(model("graph(x: float[n, 2]) -> (y: float[n, 2]) {\nk: float[2] = [1, 2]\na = Relu(x) @first\ny = Add(a, k)\n}"), path)
    return path
