"""Rules and passes of other packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.kept_decisions import folder
from support.models import model

from sardonyx.errors import Fail, OptimizationError
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.optimize.contract import Level
from sardonyx.session.extensions import installed_passes, installed_rules, usable_passes, usable_rules
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions

__all__ = ["folder"]

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

import sardonyx

@sardonyx.op("plugged", "Double", shape=lambda x: x)
def double(x):
    return x + x
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
    assert report.fired["plugged_rule"] == 1
    assert "plugged_pass" in report.passes
    assert InferenceSession(BYTES, disabled_optimizers=["plugged_rule"]).optimization_report.fired == {}


def test_operators_of_a_package_are_known_to_every_session(installed: Path) -> None:
    """What an entry point of sardonyx.operators names runs without a word of the session's options."""
    installed.write_text("[sardonyx.operators]\nours = plugged_rules:double\n")
    text = "ir_version 10\nopset 21, plugged 1\ngraph main(x: float[2]) -> (y: float[2]) {\ny = plugged.Double(x)\n}"
    session = InferenceSession(to_bytes(parse_model(text)))
    assert session.run(None, {"x": np.float32([1, 2])})[0].tolist() == [2, 4]


def test_an_entry_point_of_operators_that_names_none_is_an_error(installed: Path) -> None:
    """It says which package names what."""
    installed.write_text("[sardonyx.operators]\nours = plugged_rules:NO_RULE\n")
    with pytest.raises(Fail, match="which plugged names as 'ours' of sardonyx.operators, holds 'text', which is none"):
        InferenceSession(BYTES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sardonyx.rules]\nours = plugged_rules:MISSING\n", "MISSING, which plugged names as 'ours' of sardonyx.rules, cannot be"),
        ("[sardonyx.passes]\nours = plugged_rules:NO_RULE\n", "holds 'text', which is none"),
    ],
)
def test_what_cannot_be_loaded_is_named(installed: Path, text: str, message: str) -> None:
    """An entry point that names nothing, or no rule, is an error with the package and the name; with "skip" a warning."""
    installed.write_text(text)
    with pytest.raises(OptimizationError, match=message):
        InferenceSession(BYTES, SessionOptions())
    options = SessionOptions()
    options.optimizer_failure = "skip"
    with pytest.warns(UserWarning, match=message):
        InferenceSession(BYTES, options)


class _Duck:
    """As much of a rule or pass as is given."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


def _rule(**attributes: Any) -> _Duck:
    given = {"name": "own", "pattern": lambda op, x: op.Relu(x), "replace": print, "check": print, "level": Level.BASIC}
    return _Duck(**{**given, **attributes})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (_rule(name=None), "the rule None has no name"),
        (_rule(name="fold_constants"), "the rule 'fold_constants' has the name of a built-in rule or pass"),
        (_rule(replace=5), "the rule 'own' has no function replace"),
        (_rule(level="high"), "the rule 'own' has the level 'high'"),
        (_rule(tolerance="much"), "the rule 'own' has the tolerance 'much'"),
        (_rule(pattern=lambda op, x: 1 // 0), "the rule 'own' raises when its attributes are read: ZeroDivisionError"),
    ],
)
def test_rules_that_cannot_take_part_are_told(rule: Any, message: str) -> None:
    """The others stay."""
    told: list[str] = []
    good = _rule()
    assert usable_rules([rule, good], told.append) == [good]
    assert len(told) == 1
    assert told[0].startswith(message)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (_Duck(name="own", run=None), "the pass 'own' has no function run"),
        (_Duck(run=print), "the pass <"),
    ],
)
def test_passes_that_cannot_take_part_are_told(item: Any, message: str) -> None:
    """The others stay."""
    told: list[str] = []
    good = _Duck(name="own", run=print)
    assert usable_passes([item, good], told.append) == [good]
    assert told[0].startswith(message)


def test_a_session_goes_on_without_a_rule_that_cannot_take_part() -> None:
    """Where that is asked for; else it is an error that names it."""
    options = SessionOptions()
    options.add_rule(_rule(pattern=lambda op, x: 1 // 0))
    with pytest.raises(OptimizationError, match="the rule 'own' raises when its attributes are read"):
        InferenceSession(BYTES, options)
    options.optimizer_failure = "skip"
    with pytest.warns(UserWarning, match="the rule 'own' raises when its attributes are read.*the session goes on without it"):
        InferenceSession(BYTES, options)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (lambda op, x: op.Tanh(op.Sqtr(x)), "can never match: operator Sqtr is unknown .* did you mean Sqrt"),
        (lambda op, x: op.Anything(op.Relu(x), _domain="my.domain"), None),
        (
            lambda op, x: op.BiasGeluu(x, _domain="com.microsoft"),
            "operator com.microsoft.BiasGeluu is unknown .* did you mean BiasGelu",
        ),
        (lambda op, x: op.Tanh(op.Softmax(x, axes=1)), "can never match: Softmax has no attribute axes; did you mean axis"),
        (lambda op, x: op.Relu(x, slope=0.1), "can never match: Relu has no attribute slope; it has"),
        (lambda op, x: op.Squeeze(x, axes=[1]), None),
        (lambda op, x: op.BiasGelu(x, x, anything=1, _domain="com.microsoft"), None),
    ],
)
def test_a_misspelt_operator_or_attribute_in_a_pattern_is_refused(pattern: Callable[..., Any], message: str | None) -> None:
    """It would match nothing, in silence; domains of others may have any operators, and operators of others any attributes."""
    options = SessionOptions()
    options.add_rule(_rule(pattern=pattern))
    if message is None:
        InferenceSession(BYTES, options)
        return
    with pytest.raises(OptimizationError, match=f"the rule 'own' {message if message.startswith('can') else '.*' + message}"):
        InferenceSession(BYTES, options)


def test_sessions_with_operators_of_a_package_are_made_where_programs_are_kept(installed: Path, folder: Path) -> None:
    """Each session compiles anew what a package's operator is in; results stay the same."""
    installed.write_text("[sardonyx.operators]\nours = plugged_rules:double\n")
    text = "ir_version 10\nopset 21, plugged 1\ngraph main(x: float[2]) -> (y: float[2]) {\na = plugged.Double(x)\ny = Neg(a)\n}"
    for _ in range(2):
        session = InferenceSession(to_bytes(parse_model(text)))
        np.testing.assert_array_equal(np.asarray(session.run(None, {"x": np.array([1, 2], np.float32)})[0]), [-2, -4])
