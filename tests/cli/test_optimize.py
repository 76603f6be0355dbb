"""`sardonyx optimize`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support.models import model

from sardonyx.cli.optimize import describe_changes
from sardonyx.formats.onnx import load, save
from sardonyx.optimize.report import Change, NodeLabel

TEXT = """graph(x: float[n, 4]) -> (y: float[n, 4]) {
    w: float[4, 4] = ... 1
    a = Transpose(x) @first
    b = Transpose(a) @second
    c = MatMul(b, w)
    i = Identity(c)
    y = Relu(i)
}"""


@pytest.fixture
def turned(tmp_path: Path) -> Path:
    """A file with a model that has two transposes and an Identity too many."""
    path = tmp_path / "turned.onnx"
    save(model(TEXT), path)
    return path


def test_the_optimized_model_is_saved(invoke: Callable[..., Result], turned: Path, tmp_path: Path) -> None:
    """With fewer nodes; what was done is told."""
    result = invoke("optimize", turned, "-o", tmp_path / "out.onnx")
    assert result.exit_code == 0, result.output
    assert [node.op_type for node in load(tmp_path / "out.onnx").graph] == ["MatMul", "Relu"]
    assert "5 -> 2 nodes in" in result.output
    assert f"savedas{tmp_path / 'out.onnx'}" in "".join(result.output.split())  # a long path is folded
    assert "rules: merge_transposes 1" in result.output


def test_diff_names_what_changed_what(invoke: Callable[..., Result], turned: Path) -> None:
    """Each rule and pass with the operators that went and came; without -o nothing is saved."""
    lines = invoke("optimize", turned, "--diff").output.splitlines()
    assert lines[lines.index("merge_transposes") + 1] == "    removes 2 Transpose"
    assert lines[lines.index("merge_transposes") + 2] == "    at second"
    assert lines[lines.index("eliminate_identities") + 1] == "    removes Identity"
    assert sorted(path.name for path in turned.parent.iterdir()) == ["turned.onnx"]


def test_json_has_the_report(invoke: Callable[..., Result], turned: Path) -> None:
    """Counts, operators, what fired, and with --diff each change."""
    facts = json.loads(invoke("optimize", turned, "--json", "--diff", "--verify").stdout)
    assert (facts["level"], facts["nodes_before"], facts["nodes_after"]) == ("ALL", 5, 2)
    assert facts["operators"] == {"MatMul": 1, "Relu": 1}
    assert facts["fired"] == {"merge_transposes": 1}
    assert facts["verified"]["merge_transposes"] == 1
    assert facts["changes"][0]["removed"] == [{"operator": "Identity", "name": "i"}]


def test_levels_and_names(invoke: Callable[..., Result], turned: Path) -> None:
    """--level and --disable limit what is done; an unknown name is told."""
    assert "5 -> 5 nodes" in invoke("optimize", turned, "--level", "none").output
    without = ("--disable", "TransposeOptimizer", "--disable", "MatmulTransposeFusion")
    assert "5 -> 4 nodes" in invoke("optimize", turned, *without).output
    result = invoke("optimize", turned, "--disable", "merge_transpose")
    assert result.exit_code == 1
    assert "did you mean merge_transposes" in result.stderr


def test_dimensions_can_be_fixed(invoke: Callable[..., Result], turned: Path, tmp_path: Path) -> None:
    """--dim gives a symbolic dimension its size."""
    invoke("optimize", turned, "-o", tmp_path / "out.onnx", "--dim", "n=7")
    assert load(tmp_path / "out.onnx").graph.inputs[0].shape == (7, 4)
    assert "expected NAME=SIZE, got 'n'" in invoke("optimize", turned, "--dim", "n").stderr


def test_data_goes_beside_the_model(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """--external-data names the file for the weights."""
    source = tmp_path / "m.onnx"
    save(model("graph(x: float[2, 64]) -> (y: float[2, 64]) { w: float[64, 64] = ... 1 y = MatMul(x, w) }"), source)
    invoke("optimize", source, "-o", tmp_path / "out.onnx", "--external-data", "out.bin")
    assert (tmp_path / "out.bin").stat().st_size == 64 * 64 * 4
    assert load(tmp_path / "out.onnx").graph.initializers["w"].shape == (64, 64)


def test_verify_says_how_much_was_compared(invoke: Callable[..., Result], turned: Path) -> None:
    """With --verify the changes that were compared are counted."""
    assert "changes keep results" in invoke("optimize", turned, "--verify").output


def test_a_missing_model_is_told(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """As one line, with exit status 1."""
    result = invoke("optimize", tmp_path / "none.onnx")
    assert result.exit_code == 1
    assert "none.onnx" in result.stderr


def test_equal_changes_are_told_once() -> None:
    """With how often, and the first places; many operators are cut short."""
    changes = [Change("fuse_gelu", (NodeLabel("Mul", ""), NodeLabel("Erf", "")), (NodeLabel("Gelu", f"g{i}"),)) for i in range(5)]
    lines = describe_changes(changes)
    assert [line.strip() for line in lines[1:]] == ["Erf, Mul -> Gelu", "\x1b[2m    at g0, g1, g2, and 2 more\x1b[0m"]
    assert "fuse_gelu, 5 times" in lines[0]
    many = Change("fold", tuple(NodeLabel(f"Op{i}", "") for i in range(12)), ())
    assert describe_changes([many])[1].endswith("Op7, 4 others")
    assert describe_changes([Change("make", (), (NodeLabel("Cast", "c"),))])[1] == "    adds Cast"


def test_a_model_can_be_raised(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """--opset lets newer operators stand in the saved model; what cannot be raised is told."""
    source, target = tmp_path / "old.onnx", tmp_path / "out.onnx"
    save(model("graph(x: float[2, 4]) -> (y: float[2, 4]) { a = Softplus(x) b = Tanh(a) y = Mul(x, b) }", opset=13), source)
    invoke("optimize", source, "-o", target)
    assert [node.op_type for node in load(target).graph] == ["Softplus", "Tanh", "Mul"]
    invoke("optimize", source, "-o", target, "--opset", "24", "--force")
    saved = load(target)
    assert ([node.op_type for node in saved.graph], saved.opset_imports[""]) == (["Mish"], 24)
    save(model("graph(x: float[2, 4]) -> (y) { y = Softmax(x) }", opset=11), source)
    assert "means something else in opset 24" in invoke("optimize", source, "--opset", "24").stderr


def test_without_an_output_nothing_is_saved_and_said_to_be(invoke: Callable[..., Result], turned: Path) -> None:
    """In JSON, `saved` is null."""
    assert "nothing was saved; -o OUT.onnx saves the optimized model" in invoke("optimize", turned).stdout
    assert json.loads(invoke("optimize", turned, "--json").stdout)["saved"] is None


def test_a_file_is_overwritten_only_on_request(invoke: Callable[..., Result], turned: Path, tmp_path: Path) -> None:
    """The model itself least of all; nor its data file."""
    before = turned.read_bytes()
    assert "exists already; give --force" in invoke("optimize", turned, "-o", turned).stderr
    assert turned.read_bytes() == before
    (tmp_path / "out.data").write_bytes(b"precious")
    refused = invoke("optimize", turned, "-o", tmp_path / "out.onnx", "--external-data", "out.data")
    assert "out.data exists already" in refused.stderr
    assert invoke("optimize", turned, "-o", turned, "--force").exit_code == 0
    assert turned.read_bytes() != before


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--opset", "99"), "opset 99 of ai.onnx is not known; the newest is"),
        (("--dim", "m=3"), "have no symbolic dimension 'm'; there are n"),
        (("--disable", "fuse_gelo"), "did you mean fuse_gelu?"),
    ],
)
def test_names_and_versions_that_are_not_known_are_errors(
    option: tuple[str, str], message: str, invoke: Callable[..., Result], turned: Path
) -> None:
    """With what is known."""
    result = invoke("optimize", turned, *option)
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_version_below_the_models_is_told(invoke: Callable[..., Result], turned: Path) -> None:
    """Since --opset does nothing then."""
    result = invoke("optimize", turned, "--opset", "1")
    assert result.exit_code == 0
    assert "which is newer than 1: --opset only raises it" in result.stderr
