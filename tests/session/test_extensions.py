"""Rules and passes of other packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.models import model

from sardonyx.errors import OptimizationError
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.extensions import installed_passes, installed_rules
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions

PLUGIN = """
from sardonyx.optimize.rule import Rule

def pattern(op, x):
    return op.Relu(op.Neg(x))

def replace(op, match, learned):
    return op.Mul(op.Min(match["x"], op.CastLike([0.0], match["x"])), op.CastLike([-1.0], match["x"]))

RULES = [Rule("plugged_rule", pattern, replace)]

class Pass:
    name = "plugged_pass"

    def run(self, model, context):
        return False

PASS = Pass()
NO_RULE = "text"
"""
BYTES = to_bytes(model("graph(x: float[2]) -> (y: float[2]) { a = Neg(x) y = Relu(a) }"))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on sys.path with a package; a test names what it offers in `entry_points.txt`."""
    (tmp_path / "plugged_rules.py").write_text(PLUGIN)
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield info / "entry_points.txt"
    sys.modules.pop("plugged_rules", None)


def test_rules_and_passes_of_a_package_take_part(installed: Path) -> None:
    """What entry points name is found, fires in every session, and can be disabled by name."""
    installed.write_text("[sardonyx.rules]\nours = plugged_rules:RULES\n[sardonyx.passes]\nours = plugged_rules:PASS\n")
    assert [rule.name for rule in installed_rules(pytest.fail)] == ["plugged_rule"]
    assert [item.name for item in installed_passes(pytest.fail)] == ["plugged_pass"]
    report = InferenceSession(BYTES).optimization_report
    assert report.fired == {"plugged_rule": 1}
    assert "plugged_pass" in report.passes
    assert InferenceSession(BYTES, disabled_optimizers=["plugged_rule"]).optimization_report.fired == {}


@pytest.mark.parametrize(("text", "message"), [
    ("[sardonyx.rules]\nours = plugged_rules:MISSING\n", "MISSING, which plugged names as 'ours' of sardonyx.rules, cannot be"),
    ("[sardonyx.passes]\nours = plugged_rules:NO_RULE\n", "holds 'text', which is none"),
])  # fmt: skip
def test_what_cannot_be_loaded_is_named(installed: Path, text: str, message: str) -> None:
    """An entry point that names nothing, or no rule, is an error with the package and the name; with "skip" a warning."""
    installed.write_text(text)
    with pytest.raises(OptimizationError, match=message):
        InferenceSession(BYTES, SessionOptions())
    options = SessionOptions()
    options.optimizer_failure = "skip"
    with pytest.warns(UserWarning, match=message):
        InferenceSession(BYTES, options)
