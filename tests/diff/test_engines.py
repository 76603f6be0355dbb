"""Engines that run a model under a configuration."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model
from support.planted import PlantedProvider

from sardonyx.codegen.target import host_target
from sardonyx.diff.configuration import parse_configuration
from sardonyx.diff.engines import engine_for, full_name
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.optimize.rule import Rule
from sardonyx.session.options import SessionOptions

GATE = "graph(x: float[n]) -> (y: float[n]) {\ng = Sigmoid(x) @gate\ny = Mul(x, g)\n}"
X = {"x": np.float32([-1, 0, 2])}
Y = X["x"] / (1 + np.exp(-X["x"]))


@pytest.mark.parametrize(
    "text", ["", "level=none,provider=Reference", f"isa={host_target().isa},threads=1", "session.executor=parallel"]
)
def test_sessions_run_a_model(text: str) -> None:
    """As it is optimized under the configuration."""
    (found,) = engine_for(parse_configuration(text)).load(model(GATE)).run(X)
    np.testing.assert_allclose(found, Y, rtol=1e-6)


def test_sessions_show_what_is_left_of_the_nodes() -> None:
    """With the provider of each, and the rules that fired."""
    loaded = engine_for(parse_configuration("provider=CPU")).load(model(GATE))
    assert loaded.steps == (("Swish", "CPUExecutionProvider"),)
    assert loaded.rules == ("fuse_swish",)
    assert engine_for(parse_configuration("disable=fuse_swish")).load(model(GATE)).rules == ()


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_other_engines_run_the_same_model(name: str) -> None:
    """Where they are installed."""
    pytest.importorskip(name)
    (found,) = engine_for(parse_configuration(f"{name},threads=1")).load(model(GATE)).run(X)
    np.testing.assert_allclose(found, Y, rtol=1e-5)


def test_what_another_engine_refuses_is_its_failure() -> None:
    """With its name before its message."""
    pytest.importorskip("onnxruntime")
    with pytest.raises(Fail, match="^onnxruntime: "):
        engine_for(parse_configuration("onnxruntime")).load(model("graph(x: float[n]) -> (y: float[n]) {\ny = none.Such(x)\n}"))


def test_providers_that_are_not_installed_are_handed_over() -> None:
    """And named by the configuration."""
    loaded = engine_for(parse_configuration("provider=Planted,level=none"), [PlantedProvider("gate")]).load(model(GATE))
    assert loaded.steps[0] == ("Sigmoid", "Planted")


def test_an_unknown_provider_is_refused_with_those_there_are() -> None:
    """Before anything runs."""
    with pytest.raises(InvalidArgument, match="no provider 'Cpu'; there are .*CPUExecutionProvider"):
        engine_for(parse_configuration("provider=Cpu"))


def test_options_hold_for_what_the_configuration_leaves_open() -> None:
    """They are copied."""
    options = SessionOptions()
    options.add_session_config_entry("optimization.disable_specified_optimizers", "fuse_swish")
    assert engine_for(parse_configuration("provider=CPU"), (), options).load(model(GATE)).rules == ()
    assert options.intra_op_num_threads == 0


def test_provider_names_may_be_short() -> None:
    """As in all commands."""
    assert full_name("CPU") == full_name("CPUExecutionProvider") == "CPUExecutionProvider"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("session.float32_precision=mediun", 'is "highest", "high" or "medium", got \'mediun\''),
        ("disable=fuse_gelo", "no pass or rule is named 'fuse_gelo'; did you mean fuse_gelu"),
    ],
)
def test_what_no_session_takes_is_refused_before_anything_runs(text: str, message: str) -> None:
    """Else it would be searched for as a failure of the model."""
    with pytest.raises(InvalidArgument, match=message):
        engine_for(parse_configuration(text))


def test_rules_of_the_options_may_be_disabled() -> None:
    """They have names of their own."""
    options = SessionOptions()
    options.add_rule(Rule("mine", lambda op, x: op.Neg(x), lambda op, match, learned: op.Abs(match["x"])))
    held = model("graph(x: float[n]) -> (y: float[n]) {\ny = Neg(x)\n}")
    loaded = engine_for(parse_configuration("disable=mine"), (), options).load(held)
    assert loaded.run({"x": np.float32([1])})[0].tolist() == [-1]
    assert engine_for(parse_configuration(""), (), options).load(held).run({"x": np.float32([1])})[0].tolist() == [1]
