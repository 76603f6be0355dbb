"""The package in `examples/template`, found by the entry points of its pyproject."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sardonyx import InferenceSession, SessionOptions
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

TEMPLATE = Path(__file__).parent.parent.parent / "examples" / "template"
X = np.float32([[3, -4], [0, 0]])


def _bytes(graph: str) -> bytes:
    return to_bytes(parse_model(f"ir_version 10\nopset 21, template 1\ngraph main{graph}"))


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package on sys.path, with the metadata that an installer writes."""
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("".join(groups))
    monkeypatch.syspath_prepend(str(TEMPLATE / "src"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "sardonyx_template"]:
        del sys.modules[name]


def test_its_operator_runs(template: None) -> None:
    """Rows of length 1; a row of zeros stays."""
    session = InferenceSession(_bytes("(x: float[n, 2]) -> (y: float[n, 2]) {\ny = template.Normalize(x)\n}"))
    np.testing.assert_allclose(session.run(None, {"x": X})[0], np.float32([[0.6, -0.8], [0, 0]]), rtol=1e-6)


def test_its_expression_is_compiled_and_its_rule_fires(template: None) -> None:
    """The Relu goes, and the attribute stays."""
    graph = "(x: float[n, 2]) -> (y: float[n, 2]) {\na = Relu(x)\ny = template.SquaredRelu(a) {scale = 2.0}\n}"
    session = InferenceSession(_bytes(graph))
    assert session.optimization_report.fired == {"drop_relu_before_squared_relu": 1}
    assert [(item.op_type, item.provider) for item in session.explain()] == [("template.SquaredRelu", "CPUExecutionProvider")]
    assert session.run(None, {"x": X})[0].tolist() == [[18, 0], [0, 0]]


def test_its_pass_names_nodes(template: None) -> None:
    """By their first output."""
    session = InferenceSession(_bytes("(x: float[n, 2]) -> (y: float[n, 2]) {\ny = template.Normalize(x)\n}"))
    assert session.optimization_report.passes["name_nodes"].changes == 1
    assert [item.node for item in session.explain()] == ["y"]


def test_its_operator_runs_between_parts_of_its_provider(template: None) -> None:
    """Copies lead out of the provider's memory and back."""
    graph = "(x: float[n, 2]) -> (y: float[n, 2]) {\na = Neg(x)\nb = template.Normalize(a)\ny = Abs(b)\n}"
    session = InferenceSession(_bytes(graph), providers=["TemplateExecutionProvider"])
    providers = [item.provider for item in session.explain()]
    assert providers == ["TemplateExecutionProvider", "CustomOperators", "TemplateExecutionProvider"]
    np.testing.assert_allclose(session.run(None, {"x": X})[0], np.float32([[0.6, 0.8], [0, 0]]), rtol=1e-6)


def test_its_executor_starts_its_device_first(template: None) -> None:
    """Whose copies and programs have a higher rank than those of the host."""
    graph = "(x: float[n, 2]) -> (y: float[n, 2]) {\na = template.Normalize(x)\nb = Neg(x)\ny = Add(a, b)\n}"
    options = SessionOptions()
    options.add_session_config_entry("session.executor", "devices_first")
    session = InferenceSession(_bytes(graph), options, providers=["TemplateExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": X})[0], np.float32([[-2.4, 3.2], [0, 0]]), rtol=1e-6)
