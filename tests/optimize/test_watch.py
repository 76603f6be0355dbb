"""Rules are compared with what they replace; those that change results are left out."""

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import body, model_of, operators

from sardonyx.errors import Fail
from sardonyx.optimize.contract import Context, Level
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.report import Change, NodeLabel, Report
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.watch import Watch, found_by_running
from sardonyx.providers.reference.whole import run_model
from sardonyx.trace import observe

TEXT = "graph(x: float[2, n]) -> (y) { e = Exp(x) a = Neg(e) b = Relu(a) y = Exp(b) }"


def _relu_neg(op, x):
    return op.Relu(op.Neg(x))


def _rewritten(rules, text=TEXT, **options):
    model = model_of(text)
    INFER_SHAPES.run(model, Context())
    watch = Watch(Report(Level.ALL), run=run_model, **options)
    rewrite(model, RuleSet(rules), watch=watch)
    return model, watch


WRONG = Rule("use_abs", _relu_neg, lambda op, match, learned: op.Abs(match["x"]))
RIGHT = Rule("use_min", _relu_neg, lambda op, match, learned: op.Neg(op.Min(match["x"], np.float32(0))))


def test_a_rule_that_changes_results_is_undone_and_reported():
    """The graph stays, the rule is switched off, and the report has a model of just the replaced nodes."""
    events = []
    with observe(events.append):
        model, watch = _rewritten([WRONG])
    assert operators(model) == ["Exp", "Neg", "Relu", "Exp"]
    (problem,) = watch.report.problems
    assert problem.optimization == "use_abs"
    assert "changes results: it gives numbers up to" in problem.message
    assert body(problem.before) == "graph before(e: float[2, n]) -> (b: float[2, n]) {\n    a = Neg(e)\n    b = Relu(a)\n}\n"
    assert body(problem.after) == "graph after(e: float[2, n]) -> (b: float[2, n]) {\n    b = Abs(e)\n}\n"
    assert watch.disabled == {"use_abs"}
    assert [event.details["optimization"] for event in events if event.name == "optimize.left_out"] == ["use_abs"]


def test_the_model_of_a_problem_shows_it():
    """The two models of a problem give different numbers for the same input."""
    _, watch = _rewritten([WRONG])
    feed = {"e": np.ones((2, 3), np.float32)}
    before, after = watch.report.problems[0].before, watch.report.problems[0].after
    assert evaluate_model(before, feed)[0].max() != evaluate_model(after, feed)[0].max()


def test_the_next_rule_takes_its_place():
    """When a rule is left out those after it are tried."""
    model, watch = _rewritten([WRONG, RIGHT])
    assert operators(model) == ["Exp", "Min", "Neg", "Exp"]
    assert watch.report.verified == {"use_min": 1}


def test_a_rule_that_is_off_does_not_fire():
    """A disabled rule is passed over."""
    model = model_of(TEXT)
    rewrite(model, RuleSet([RIGHT]), watch=Watch(Report(Level.ALL), ["use_min"]))
    assert operators(model) == ["Exp", "Neg", "Relu", "Exp"]


def test_a_replacement_that_fails_to_run_is_a_change():
    """A replacement that the reference kernels refuse is left out."""
    rule = Rule("unknown", _relu_neg, lambda op, match, learned: op.Unknown(match["x"], _domain="my"))
    _, watch = _rewritten([rule], "graph(x: float[2, 3]) -> (y) { a = Neg(x) b = Relu(a) y = Exp(b) }")
    assert "changes results: it fails: " in watch.report.problems[0].message


def test_movement_is_exact():
    """A rule that only moves elements must be equal, whatever tolerance it states."""
    rule = Rule("turn", lambda op, x: op.Transpose(x), lambda op, match, learned: op.Identity(match["x"]), tolerance=1e9)
    _, watch = _rewritten([rule], "graph(x: float[3, 3]) -> (y) { y = Transpose(x) }")
    assert [problem.optimization for problem in watch.report.problems] == ["turn"]


def test_a_stated_tolerance_counts():
    """A rule that computes may differ by what it states."""
    rule = Rule("near", lambda op, x: op.Neg(x), lambda op, match, learned: op.Mul(match["x"], np.float32(-1.001)), tolerance=0.01)
    _, watch = _rewritten([rule])
    assert watch.report.problems == []
    assert watch.report.verified == {"near": 1}


@pytest.mark.parametrize("kind", ["", ": float"])
def test_what_cannot_be_compared_fires_and_is_listed(kind):
    """Where the types are unknown the rule fires, and the report says that it was not compared."""
    model, watch = _rewritten([WRONG], f"graph(x{kind}) -> (y) {{ a = Neg(x) y = Relu(a) }}")
    assert operators(model) == ["Abs"]
    assert "of which no random one can be drawn" in watch.report.unverified["use_abs"]


def test_what_the_reference_refuses_is_listed():
    """Where the replaced nodes themselves cannot be computed the rule fires, and the report says why."""
    text = "graph(x: float[2]) -> (y) { r = my.Unknown(x) a = Neg(r) y = Relu(a) }"
    rule = Rule("any", lambda op, x: op.Relu(op.Neg(op.Unknown(x, _domain="my"))), lambda op, match, learned: op.Abs(match["x"]))
    _, watch = _rewritten([rule], text)
    assert "no reference kernel" in watch.report.unverified["any"]


def test_changes_are_listed_when_asked_for():
    """With records each firing is listed with the nodes that went and came."""
    _, watch = _rewritten([RIGHT], records=True)
    assert watch.report.changes == [
        Change("use_min", (NodeLabel("Relu", "b"), NodeLabel("Neg", "a")), (NodeLabel("Min", ""), NodeLabel("Neg", "b")))
    ]


def test_what_is_drawn_anew_in_each_run_is_not_compared():
    """Random numbers differ without anybody's fault: the rule fires, and the report says why it was not compared."""
    rule = Rule(
        "any",
        lambda op, x: op.Neg(op.Add(op.RandomUniform(shape=[3]), x)),
        lambda op, match, learned: op.Neg(op.Add(op.RandomUniform(shape=[3]), match["x"])),
    )
    text = "graph(x: float[3]) -> (y) { r = RandomUniform() {shape = [3]} a = Add(r, x) n = Neg(a) y = Exp(n) }"
    model = model_of(text)
    INFER_SHAPES.run(model, Context())
    watch = Watch(Report(Level.ALL), run=run_model)
    with pytest.raises(Fail, match="does not come to an end"):
        rewrite(model, RuleSet([rule]), watch=watch)
    assert watch.report.problems == []
    assert watch.report.unverified == {"any": "the results differ from run to run"}


@pytest.mark.parametrize(
    ("operator", "judged"),
    [("Bernoulli(x)", False), ("Bernoulli(x) {seed = 1.0}", True), ("Dropout(x)", True), ("Relu(x)", True)],
)
def test_only_what_draws_other_numbers_at_each_run_is_not_judged(operator: str, judged: bool) -> None:
    """Few coins may be the same twice by chance; Dropout draws none but in training."""
    before, after = (model_of(f"graph(x: float[2]) -> (y: float[2]) {{ y = {text} }}") for text in (operator, "Neg(x)"))
    feed = {"x": np.ones(2, np.float32)}
    found, reason = found_by_running(run_model, before, after, feed, run_model(before, feed), 1e-5)
    assert (found is not None, reason is None) == (judged, judged)
