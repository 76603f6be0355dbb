"""`sardonyx diff`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from support.models import model
from support.planted import chain, rows

from sardonyx import InferenceSession
from sardonyx.formats.onnx import load, save

PROVIDER = """
from support.planted import PlantedProvider


class Wrong(PlantedProvider):
    name = "Wrong"

    def __init__(self):
        super().__init__("Add20", name="Wrong")
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A model of 90 nodes, and a file with a provider that runs one of them wrongly."""
    monkeypatch.chdir(tmp_path)
    held, provider = tmp_path / "chain.onnx", tmp_path / "wrong_provider.py"
    save(chain(30), held)
    provider.write_text(PROVIDER)
    np.savez(tmp_path / "rows.npz", **rows())
    return held, provider


def test_a_planted_error_is_found_and_written(invoke: Callable[..., Result], files: tuple[Path, Path]) -> None:
    """As a model of one node with its inputs, which shows it again; the status is 1."""
    options = ("--load", files[1], "--b", "provider=Wrong,level=none")
    result = invoke("diff", files[0], *options, "--dim", "n=4")
    assert result.exit_code == 1, result.output
    assert "first node that differs: 'Add20' (Add, number 61)" in result.output
    assert "b is wrong" in result.output
    assert len(load("chain.diff.onnx").graph) == 1
    command = f"sardonyx diff {Path.cwd()}/chain.diff.onnx --input {Path.cwd()}/chain.diff.npz --a level=none,provider=Reference"
    assert f"{command} --b provider=Wrong,level=none --load {files[1]}" in result.output
    again = invoke("diff", "chain.diff.onnx", "--input", "chain.diff.npz", *options, "--json", "-o", "again.onnx")
    facts = json.loads(again.stdout)
    assert facts["outputs"][0]["max_abs"] == pytest.approx(1e-2, rel=1e-3)
    assert facts["small_model"] == ["again.onnx", "again.npz"]


def test_what_agrees_has_status_0(invoke: Callable[..., Result], files: tuple[Path, Path]) -> None:
    """And writes nothing."""
    result = invoke("diff", files[0], "--input", "rows.npz", "--outputs", "s1,s2")
    assert result.exit_code == 0, result.output
    assert "nothing differs" in result.output
    assert not list(Path.cwd().glob("*.diff*"))


def test_outputs_only_are_compared_where_that_is_asked_for(invoke: Callable[..., Result], files: tuple[Path, Path]) -> None:
    """No node is searched for; the user's limit holds."""
    result = invoke(
        "diff", files[0], "--load", files[1], "--b", "provider=Wrong,level=none", "--outputs-only", "--rtol", 0, "--json"
    )
    assert json.loads(result.stdout)["found"] is None
    assert result.exit_code == 1


@pytest.mark.parametrize("arguments", [("--b", "levle=none"), ("--input", "chain.onnx"), ("--outputs", "nothing")])
def test_trouble_has_status_2(invoke: Callable[..., Result], files: tuple[Path, Path], arguments: tuple[str, ...]) -> None:
    """With a message."""
    result = invoke("diff", files[0], *arguments)
    assert result.exit_code == 2
    assert result.stderr


def test_nan_on_both_sides_is_led_back_to_its_node(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """Nothing differs, and yet the result is of no use."""
    save(model("graph(x: float[n]) -> (y: float[n]) {\na = Exp(x) @exp\ny = Sub(a, a) @sub\n}"), tmp_path / "m.onnx")
    result = invoke("diff", tmp_path / "m.onnx", "--input", "x=[1, 100]")
    assert result.exit_code == 0, result.output
    assert "agrees, 1 NaN or infinite in a" in result.output
    assert "a: infinities first at 'exp' (Exp, number 0)" in result.output
    assert "a: 1 of 2 elements, made of finite inputs, the largest 100; the largest number of its type is 3.4e+38" in result.output
    assert "a: NaN first at 'sub' (Sub, number 1)" in result.output
    fed = invoke("diff", tmp_path / "m.onnx", "--input", "x=[1, NaN]", "--json")
    assert json.loads(fed.stdout)["not_finite"] == []
    said = invoke("diff", tmp_path / "m.onnx", "--input", "x=[1, NaN]").output
    assert "no node makes the NaN and infinities of a: they are in its inputs or weights" in said


def test_recorded_values_are_compared(invoke: Callable[..., Result], files: tuple[Path, Path]) -> None:
    """Of a file that has the inputs, too, or with inputs beside it; what is not fed is not drawn."""
    values = dict(zip(["s3", "r3", "r29"], InferenceSession(files[0]).run(["s3", "r3", "r29"], rows()), strict=True))
    values["r3"] = values["r3"] + np.float32(0.01)
    np.savez("recorded.npz", **values, **rows())
    result = invoke("diff", files[0], "--a", "recorded.npz")
    assert result.exit_code == 1, result.output
    assert "first value that differs: r3, of 'Tanh3' (Tanh, number 11)" in result.output
    assert "of its inputs agree: s3" in result.output
    np.savez("outputs.npz", **values)
    assert "outputs.npz has no input 'x': feed by --input" in invoke("diff", files[0], "--a", "outputs.npz").stderr
    assert invoke("diff", files[0], "--a", "outputs.npz", "--input", "rows.npz", "--atol", "0.1").exit_code == 0
    missing = invoke("diff", files[0], "--a", "nothing.npz")
    assert (missing.exit_code, missing.stderr) == (2, "NoSuchFile: there is no file 'nothing.npz' to compare with\n")
    np.save("single.npy", np.zeros(2))
    (Path.cwd() / "single.npy").rename("single.npz")
    assert "single.npz holds one array without a name" in invoke("diff", files[0], "--a", "single.npz").stderr


def test_another_model_is_compared(invoke: Callable[..., Result], files: tuple[Path, Path]) -> None:
    """By values of the same names; its path is in the report."""
    other = chain(30)
    other.graph.initializers["b7"].constant = other.graph.initializers["b8"].constant
    save(other, Path("other.onnx"))
    result = invoke("diff", files[0], "--a", "other.onnx", "--dim", "n=4", "--json")
    facts = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (facts["a"], facts["first"]["value"], facts["first"]["agreeing"]) == ("other.onnx", "s7", ["p7"])


OPERATOR = """
import sardonyx


@sardonyx.op("", "Tanh", outputs=["x"], shape=lambda x: x)
def tanh(x):
    return x
"""


def test_an_operator_of_one_side_is_judged_by_the_other(invoke: Callable[..., Result], files: tuple[Path, Path]) -> None:
    """With --load both sides have it, which is said."""
    Path("tanh.py").write_text(OPERATOR)
    both = invoke("diff", files[0], "--load", "tanh.py", "--outputs-only")
    assert both.exit_code == 0, both.output
    assert "a and b both know the files of --load; --load-b lets b alone know one" in both.output
    alone = invoke("diff", files[0], "--load-b", "tanh.py")
    assert alone.exit_code == 1, alone.output
    assert "first node that differs: 'Tanh0' (Tanh, number 2)" in alone.output
    assert "--b default --load-b tanh.py" in alone.output


def test_two_models_are_compared(invoke: Callable[..., Result], files: tuple[Path, Path], tmp_path: Path) -> None:
    """The first is right, as `--a` would have it."""
    changed = tmp_path / "changed.onnx"
    save(load(files[0]), changed)
    done = invoke("diff", files[0], changed, "--json")
    assert (done.exit_code, json.loads(done.stdout)["agrees"]) == (0, True)
    assert json.loads(done.stdout) == json.loads(invoke("diff", changed, "--a", files[0], "--json").stdout)
    both = invoke("diff", files[0], changed, "--a", "onnxruntime")
    assert (both.exit_code, "give --a or two models, not both" in both.stderr) == (2, True)
