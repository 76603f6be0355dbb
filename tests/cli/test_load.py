"""`--load FILE.py`."""

from __future__ import annotations

import json
import sys
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


SLOW = """
import time

import numpy as np

from beside import SECONDS
from sardonyx.provider import HOST, Bound, Capability, Claims, Layout


class Slow:
    name, preferred_layout, memory = "SlowExecutionProvider", Layout.NCHW, HOST

    def capabilities(self, view):
        return Claims([Capability((node,)) for node in view.nodes if node.op_type == "Relu"])

    def compile(self, partition, bodies):
        return Program()

    def save(self, partition, program):
        return b"slow"

    def load(self, partition, content):
        return Program()


class Program:
    makes_outputs = True

    def bind(self, shapes):
        return Bound((None,))

    def run(self, bound, inputs, outputs, scratch):
        time.sleep(SECONDS)
        return [np.maximum(inputs[0], 0)]
"""


@pytest.fixture
def provider_file(tmp_path: Path) -> Path:
    """A file with a provider that takes its time, which imports what lies beside it."""
    (tmp_path / "beside.py").write_text("SECONDS = 0.02")
    file = tmp_path / "slow_provider.py"
    file.write_text(SLOW)
    return file


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of loaded files are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "beside", raising=False)


def test_bench_runs_a_provider_of_a_file(invoke: Callable[..., Result], model_file: Path, provider_file: Path) -> None:
    """The process of the engine loads it, too: no other takes its place unsaid."""
    quick = ("--count", "2", "--warmup", "0", "--starts", "1", "--turns", "1", "--json")
    done = invoke("bench", model_file, "--load", provider_file, "--provider", "slow", *quick)
    assert json.loads(done.stdout)["engines"][0]["latency_ms"]["min"] > 20


def test_placements_of_a_provider_of_a_file_are_measured(
    invoke: Callable[..., Result], model_file: Path, provider_file: Path, tmp_path: Path
) -> None:
    """By its name, which may be short."""
    arguments = ("--load", provider_file, "--provider", "Slow", "-o", tmp_path / "p.json", "--json")
    facts = json.loads(invoke("profile", model_file, "--placement", *arguments).stdout)
    assert facts["runs_ms"]["SlowExecutionProvider"] > 20


def test_a_provider_of_a_file_compiles_ahead(invoke: Callable[..., Result], model_file: Path, provider_file: Path) -> None:
    """With what it keeps of its programs."""
    done = invoke("compile", model_file, "--load", provider_file, "--provider", "SlowExecutionProvider", "--json")
    assert json.loads(done.stdout)["programs"]["SlowExecutionProvider"] == 1
