"""Following the rules that match around one node."""

from __future__ import annotations

from typing import Any

import pytest
from support.evaluate import evaluate_node
from support.optimizing import model_of
from support.rule_recipes import RECIPES

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.contract import Context, Level
from sardonyx.optimize.fusion_report import Attempt, FusionReport, Outcome
from sardonyx.optimize.fusion_tracer import FusionTracer
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.pipeline import known_items, optimize
from sardonyx.optimize.report import NodeLabel, Report
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.target import Target
from sardonyx.optimize.watch import Watch

NORM = """s: float[4] = ... 2 b: float[4] = ... 3 m: float[4] = ... 4 v: float[4] = [1, 1, 1, 1]
    c = Conv(x, w) n = BatchNormalization(c, s, b, m, v)"""
OPEN = f"graph(x: float[1, 3, 8, 8], w: float[4, 3, 3, 3]) -> (y) {{ {NORM} y = Relu(n) }}"
CLOSED = f"graph(x: float[1, 3, 8, 8]) -> (y) {{ w: float[4, 3, 3, 3] = ... 1 {NORM} y = Relu(n) }}"


def traced(text: str, node: str, level: Level = Level.ALL, **options: Any) -> FusionReport:
    tracer = FusionTracer(node)
    optimize(model_of(text), level, evaluate=evaluate_node, tracer=tracer, **options)
    return tracer.report("m")


def attempt_of(report: FusionReport, name: str) -> Attempt:
    return next(attempt for attempt in report.attempts if attempt.optimization == name)


@pytest.mark.parametrize("node", ["c", "n"])
def test_constants_that_a_pattern_demands_are_named(node: str) -> None:
    """Convolution and normalization match, but the filters are an input."""
    attempt = attempt_of(traced(OPEN, node), "fuse_conv_batchnorm")
    assert (attempt.outcome, attempt.pattern_size) == (Outcome.STOPPED, 2)
    assert [label.operator for label in attempt.matched] == ["BatchNormalization", "Conv"]
    assert attempt.place == "input W of Conv c"
    assert attempt.expected == "a constant (w of the pattern)"
    assert attempt.found == "w, an input of the graph, float[4, 3, 3, 3]"


def test_values_that_others_read_are_named() -> None:
    """A match whose inner value has another reader cannot be replaced."""
    attempt = attempt_of(
        traced(CLOSED.replace("-> (y)", "-> (y, z)").replace("y =", "z = Sigmoid(c) y ="), "n"), "fuse_conv_batchnorm"
    )
    assert attempt.outcome is Outcome.DECLINED
    assert attempt.reason == "c between the nodes is read by Sigmoid z too, so that the node which makes it must stay"
    attempt = attempt_of(traced(CLOSED.replace("-> (y)", "-> (y, c)"), "n"), "fuse_conv_batchnorm")
    assert attempt.reason.startswith("c between the nodes is an output of the graph, so")


def test_the_reason_of_a_check_is_given() -> None:
    """As the rule says it."""
    report = traced("graph(x: float[2, 4]) -> (y) { k: float[3, 1, 4] = ... 1 g = Sigmoid(x) m = Mul(x, g) y = Mul(m, k) }", "g")
    assert attempt_of(report, "fuse_swish").outcome is Outcome.FIRED
    text = "graph(x: float[2, 4]) -> (y) { a: float[2, 4] = ... 1 s = Mul(x, a) g = Sigmoid(s) y = Mul(x, g) }"
    declined = attempt_of(traced(text, "g"), "fuse_swish")
    assert (declined.outcome, declined.reason) == (Outcome.DECLINED, "alpha is not one number")


def test_the_closest_alternative_is_shown() -> None:
    """Of the orders in which factors may stand, the one that matched most."""
    text = """graph(x: float[2, 8]) -> (y) { r: float[] = 1.5 one: float[] = 1 half: float[] = 0.5
        d = Div(x, r) e = Erf(d) a = Add(e, one) g = Mul(x, a) y = Mul(g, half) }"""
    attempt = attempt_of(traced(text, "e"), "fuse_gelu")
    assert (attempt.place, attempt.expected) == ("input B of Div d", "a constant of one element, 1.414214")
    assert attempt.found == "r, a constant (1.5), float[]"


def test_what_replaces_the_node_is_followed() -> None:
    """The convolution that a normalization was folded into meets further rules, some of which are not tried."""
    report = traced(CLOSED, "c")
    fired = attempt_of(report, "fuse_conv_batchnorm")
    assert (fired.outcome, [label.operator for label in fired.made]) == (Outcome.FIRED, ["Conv"])
    not_tried = attempt_of(report, "fuse_conv_activation")
    assert (not_tried.outcome, not_tried.reason) == (Outcome.NOT_TRIED, "no provider prefers FusedConv, which it makes")
    fused = attempt_of(traced(CLOSED, "c", target=Target(frozenset(["FusedConv"]))), "fuse_conv_activation")
    assert fused.outcome is Outcome.FIRED


def test_rules_above_the_level_and_disabled_ones_are_listed() -> None:
    """Where their whole pattern is there."""
    text = "graph(x: float[2, 4]) -> (y) { g = Sigmoid(x) y = Mul(x, g) }"
    assert attempt_of(traced(text, "g", Level.BASIC), "fuse_swish").reason == (
        "it is of level EXTENDED, and the model is optimized to BASIC"
    )
    assert attempt_of(traced(text, "g", disabled=["fuse_swish"]), "fuse_swish").reason == "it is disabled by its name"


def test_passes_that_change_the_node_are_listed() -> None:
    """One that removes it, and one that puts another in its place, which is followed."""
    report = traced("graph(x: float[2, 4]) -> (y) { i = Identity(x) y = Relu(i) }", "i")
    assert [(item.optimization, item.outcome) for item in report.attempts] == [("eliminate_identities", Outcome.CHANGED)]
    assert report.attempts[0].reason == "the node is no longer needed"
    text = """graph(x: float[2, 4]) -> (y) { a: int64[1] = [0] b: int64[1] = [2] c: int64[1] = [4] one: int64[1] = [1]
        l = Slice(x, a, b, one) r = Slice(x, b, c, one) m = Neg(l) n = Exp(r) y = Add(m, n) }"""
    changed = attempt_of(traced(text, "l"), "split_parts")
    assert changed.matched == (NodeLabel("Slice", "l"),)
    assert changed.made == (NodeLabel("Split", "l"),)


def test_a_value_names_the_node_that_makes_it() -> None:
    """Names of nodes come first."""
    text = "graph(x: float[2, 4]) -> (y) { a = Relu(x) @y y = Neg(a) @b }"
    assert traced(text, "y").node.operator == "Relu"
    assert traced(text, "a").node.operator == "Relu"
    assert traced(text, "b").node.operator == "Neg"


def test_unknown_names_get_near_ones() -> None:
    """With where to find all of them if none is near."""
    with pytest.raises(InvalidArgument, match=r"no node .* is named 'conv1'; near it are conv_1"):
        traced("graph(x) -> (y) { y = Relu(x) @conv_1 }", "conv1")
    with pytest.raises(InvalidArgument, match="sardonyx inspect --text MODEL"):
        traced("graph(x) -> (y) { y = Relu(x) @conv_1 }", "zzz")
    with pytest.raises(InvalidArgument, match="is named ''"):
        traced("graph(x) -> (y) { y = Relu(x) }", "")


def test_a_report_needs_an_optimization() -> None:
    """Before, nothing is known."""
    with pytest.raises(InvalidArgument, match="optimize a model first"):
        FusionTracer("x").report("m")


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_rules_fire_as_they_do_without(name: str) -> None:
    """Following changes neither whether a rule matches, nor how often it fires."""
    rule = next(item for item in known_items() if item.name == name)
    assert isinstance(rule, Rule)
    for text in RECIPES[name]:
        fired = []
        for followed in (False, True):
            model = model_of(text, "21, com.microsoft 1, ai.onnx.ml 4")
            INFER_SHAPES.run(model, Context())
            watch = Watch(Report(Level.ALL))
            if followed:
                watch.tracer = FusionTracer(next(value.name for node in model.graph for value in node.outputs if value.name))
                watch.tracer.begin(model)
            fired.append(rewrite(model, RuleSet([rule], watch.tracer), watch=watch))
        assert fired[0] == fired[1]
