"""`--load FILE.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support.custom_operators import mine_bytes

OPERATORS = """
import sardonyx

@sardonyx.op("mine", "Twice", shape=lambda x: x)
def twice(x):
    return x * 2
"""


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """A model of mine.Twice, and a file with that operator."""
    model, file = tmp_path / "twice.onnx", tmp_path / "twice_operator.py"
    model.write_bytes(mine_bytes("(x: float[n]) -> (y: float[n]) {\na = Neg(x)\ny = mine.Twice(a)\n}"))
    file.write_text(OPERATORS)
    return model, file


@pytest.mark.parametrize("verb", [("run", "--random"), ("explain",), ("optimize",), ("compile",)])
def test_verbs_know_the_operators_of_a_file(invoke: Callable[..., Result], paths: tuple[Path, Path], verb: tuple[str, ...]) -> None:
    """Of those that make sessions and those that change models."""
    model, file = paths
    result = invoke(verb[0], model, *verb[1:], "--load", file)
    assert result.exit_code == 0, result.output


def test_explain_shows_who_runs_an_operator_of_a_file(invoke: Callable[..., Result], paths: tuple[Path, Path]) -> None:
    """The provider of custom operators."""
    facts = json.loads(invoke("explain", paths[0], "--load", paths[1], "--json").stdout)
    assert [item["provider"] for item in facts if item["op_type"] == "mine.Twice"] == ["CustomOperators"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("empty.py", "x = 1", "has no operator; put @sardonyx.op"),
        ("broken.py", "1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("none.py", None, "is not there"),
        ("text.txt", "x", "is no Python file"),
    ],
)
def test_a_file_that_is_of_no_use_is_named(
    invoke: Callable[..., Result], paths: tuple[Path, Path], name: str, text: str | None, message: str
) -> None:
    """With what is wrong."""
    file = paths[1].with_name(name)
    if text is not None:
        file.write_text(text)
    result = invoke("run", paths[0], "--random", "--load", file)
    assert result.exit_code == 1
    assert message in result.stderr


PROVIDER = """
from support.planted import PlantedProvider


class Mine(PlantedProvider):
    name = "Mine"

    def __init__(self):
        super().__init__("first", name="Mine")
"""


def test_a_provider_of_a_file_can_be_named(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """By every verb that makes a session."""
    file = tmp_path / "mine.py"
    file.write_text(PROVIDER)
    facts = json.loads(
        invoke(
            "explain", model_file, "--load", file, "--provider", "Mine", "--config", "session.graph_optimization_level=0", "--json"
        ).stdout
    )
    assert facts[0]["provider"] == "Mine"


def test_a_provider_that_cannot_be_made_is_named(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """With its class."""
    file = tmp_path / "mine.py"
    file.write_text(PROVIDER.replace("__init__(self)", "__init__(self, device)"))
    result = invoke("run", model_file, "--random", "--load", file)
    assert result.exit_code == 1
    assert "the provider Mine cannot be made without arguments" in result.stderr
