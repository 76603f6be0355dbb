"""Passes are timed, named when they fail, proved and left out."""

import numpy as np
import pytest
from support.evaluate import evaluate_node
from support.optimizing import model_of, operators

from sardonyx.dtypes import DataType
from sardonyx.errors import NoSuchFile, OptimizationError
from sardonyx.ir import Node, Tensor, TensorType
from sardonyx.optimize.contract import Level
from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.report import NodeLabel
from sardonyx.optimize.rule import Rule
from sardonyx.providers.reference.whole import run_model

TEXT = "graph(x: float[2, n]) -> (y) { e = Exp(x) a = Neg(e) b = Relu(a) y = Exp(b) }"


class _Pass:
    """A pass made of a function."""

    def __init__(self, name, function, level=Level.BASIC):
        self.name, self._function, self.level = name, function, level

    def run(self, model, context):
        return self._function(model)


def _replaced(op_type):
    def run(model):
        found = [node for node in model.graph if node.op_type == "Relu"]
        for node in found:
            new = model.graph.insert_before(node, Node(op_type, node.inputs, 1, version=21))
            node.output.replace_all_uses_with(new.output)
            model.graph.remove(node)
        return bool(found)

    return run


def _optimized(passes=(), rules=(), text=TEXT, **options):
    model = model_of(text)
    return model, optimize(model, Level.ALL, evaluate=evaluate_node, extra_passes=passes, extra_rules=rules, **options)


def _spoiled(model):
    last = list(model.graph)[-1]
    model.graph.insert_before(next(iter(model.graph)), Node("Relu", [last.output], 1, version=21))
    return True


def _renamed(model):
    model.graph.outputs[0].name = "z"
    return True


def _raising(op, match, learned):
    raise NoSuchFile("weights.bin is missing")


def _rule(name, replace):
    return Rule(name, lambda op, x: op.Relu(op.Neg(x)), replace)


def _retyped(model):
    model.graph.inputs[0].type = TensorType(DataType.FLOAT, (7, 7))
    return True


def _renaming(op, match, learned):
    op.graph.inputs[0].name = "other"
    return op.Abs(match["x"])


class _Silent(Exception):
    def __str__(self):
        return str(1 // 0)


def _raising_silence(op, match, learned):
    raise _Silent


def _cyclic(op, match, learned):
    user, _ = match.outputs[0].uses[0]
    return op.Abs(user.outputs[0])


FAILING_PASSES = [
    _Pass("raises", lambda model: 1 // 0),
    _Pass("spoils", _spoiled),
    _Pass("renames", _renamed),
    _Pass("ill_typed", _replaced("Not")),
    _Pass("unknown", _replaced("Frobnicate")),
    _Pass("answers_nothing", lambda model: None),
    _Pass("empties", lambda model: setattr(model, "graph", None) or True),
    _Pass("retypes", _retyped),
]
FAILING_RULES = [
    _rule("raises", lambda op, match, learned: 1 // 0),
    _rule("cyclic", _cyclic),
    _rule("ill_typed", lambda op, match, learned: op.Reshape(match["x"], np.array([0.5]))),
    _rule("wrong_type", lambda op, match, learned: op.Cast(match["x"], to=7)),
    _rule("too_many", lambda op, match, learned: (match["x"], match["x"])),
    _rule("other_rank", lambda op, match, learned: op.Unsqueeze(match["x"], np.array([0]))),
    _rule("no_value", lambda op, match, learned: None),
    _rule("renames", _renaming),
    _rule("silent", _raising_silence),
    _rule("endless", lambda op, match, learned: op.Relu(op.Neg(match["x"]))),
]


@pytest.mark.parametrize("item", FAILING_PASSES, ids=lambda item: item.name)
def test_a_pass_that_fails_is_named(item):
    """A pass that raises, or leaves another interface or an invalid graph, is named in the error."""
    with pytest.raises(OptimizationError, match=item.name) as caught:
        _optimized([item])
    assert caught.value.optimization == item.name


@pytest.mark.parametrize("item", FAILING_PASSES, ids=lambda item: item.name)
def test_going_on_without_a_pass(item):
    """When asked to, the optimization goes on without it, on the model as it was."""
    model, report = _optimized([item], continue_on_error=True)
    assert operators(model) == ["Exp", "Neg", "Relu", "Exp"]
    assert [problem.optimization for problem in report.problems] == [item.name]
    assert [value.name for value in model.graph.outputs] == ["y"]


@pytest.mark.parametrize("rule", FAILING_RULES, ids=lambda rule: rule.name)
def test_a_rule_that_fails_is_named(rule):
    """A rule that raises, builds what is ill-typed, closes a cycle or never ends is named in the error."""
    with pytest.raises(OptimizationError, match=rule.name) as caught:
        _optimized(rules=[rule])
    assert caught.value.optimization == rule.name


@pytest.mark.parametrize("rule", FAILING_RULES, ids=lambda rule: rule.name)
def test_going_on_without_a_rule(rule):
    """When asked to, the optimization goes on without it, and with the other rules."""
    other = Rule("merge", lambda op, x: op.Exp(op.Exp(x)), lambda op, match, learned: op.Exp(op.Exp(op.Identity(match["x"]))))
    del other
    model, report = _optimized(rules=[rule], continue_on_error=True)
    assert operators(model) == ["Exp", "Neg", "Relu", "Exp"]
    assert [problem.optimization for problem in report.problems] == [rule.name]
    assert report.fired == {}


def _absolute(node):
    node.op_type = "Abs"


@pytest.mark.parametrize(
    "change",
    [
        _absolute,
        lambda node: setattr(node.inputs[1], "constant", Tensor.from_array(np.float32(7))),
    ],
)
@pytest.mark.parametrize("when", ["check", "replace"])
def test_a_rule_that_changes_other_nodes_is_found_where_results_are_compared(change, when):
    """Just its replacement would be right; the graph is put back."""
    text = "graph(x: float[2]) -> (y) { k: float[] = 2 a = Neg(x) b = Relu(a) y = Mul(b, k) }"

    def tamper(match):
        change(list(match.root.graph)[-1])

    rule = Rule(
        "tampers",
        lambda op, x: op.Relu(op.Neg(x)),
        lambda op, match, learned: tamper(match) if when == "replace" else op.Relu(op.Neg(match["x"])),
        lambda match: tamper(match) if when == "check" else None,
    )
    with pytest.raises(OptimizationError, match="rule tampers changes .*Mul|rule tampers changes .*Abs") as caught:
        _optimized(rules=[rule], text=text, verify=run_model)
    assert caught.value.optimization == "tampers"
    model, report = _optimized(rules=[rule], text=text, verify=run_model, continue_on_error=True)
    assert operators(model) == ["Neg", "Relu", "Mul"]
    assert [problem.optimization for problem in report.problems] == ["tampers"]


def test_other_errors_keep_their_class():
    """An error that says what is missing keeps its class, so that callers can tell."""
    with pytest.raises(NoSuchFile, match=r"weights.bin is missing"):
        _optimized(rules=[_rule("reads", _raising)])


def test_a_pass_that_changes_results_is_undone_and_reported():
    """With verify a pass is compared on the whole model; one that changes results is left out, with a model that shows it."""
    model, report = _optimized([_Pass("use_abs", _replaced("Abs"))], verify=run_model)
    assert operators(model) == ["Exp", "Neg", "Relu", "Exp"]
    (problem,) = report.problems
    assert problem.optimization == "use_abs"
    feed = {"a": -np.ones((2, 3), np.float32)}
    assert run_model(problem.before, feed)[0].max() != run_model(problem.after, feed)[0].max()


def test_a_pass_that_keeps_results_counts_as_verified():
    """With verify a pass that keeps results stays and is counted."""
    model, report = _optimized(
        [_Pass("use_leaky", lambda model: _replaced("LeakyRelu")(model))],
        verify=run_model,
        text="graph(x: float[2]) -> (y) { e = Exp(x) y = Relu(e) }",
    )
    assert report.verified["use_leaky"] == 1
    assert operators(model) == ["Exp", "LeakyRelu"]


def test_a_model_that_cannot_be_fed_is_listed():
    """Where no inputs can be drawn a pass stays, and the report says that it was not compared."""
    _, report = _optimized([_Pass("use_abs", _replaced("Abs"))], verify=run_model, text="graph(x: float) -> (y) { y = Relu(x) }")
    assert "no random one can be drawn" in report.unverified["use_abs"]


def test_the_models_own_faults_are_not_blamed_on_a_pass():
    """A model that is ill-typed from the start passes through."""
    model, report = _optimized([_Pass("touch", _replaced("Abs"))], text="graph(x: float[2]) -> (y) { a = Relu(x) y = Not(a) }")
    assert operators(model) == ["Abs", "Not"]
    assert report.problems == []


def test_changes_of_passes_are_listed_when_asked_for():
    """With records a pass is listed with the nodes that went and came."""
    _, report = _optimized([_Pass("use_abs", _replaced("Abs"))], records=True)
    (change,) = [change for change in report.changes if change.optimization == "use_abs"]
    assert change.removed == (NodeLabel("Relu", "b"),)
    assert [label.operator for label in change.added] == ["Abs"]


def test_a_pass_runs_at_its_level():
    """A pass with a level runs from that level on."""
    item = _Pass("use_abs", _replaced("Abs"), Level.EXTENDED)
    model = model_of(TEXT)
    optimize(model, Level.BASIC, evaluate=None, extra_passes=[item])
    assert "Relu" in operators(model)
    optimize(model, Level.EXTENDED, evaluate=None, extra_passes=[item])
    assert "Abs" in operators(model)


def test_the_model_of_a_problem_is_small():
    """Of a long model just the part is kept on which a pass goes wrong."""
    chain = " ".join(f"a{i} = Add(a{i - 1}, x)" for i in range(1, 20))
    text = f"graph(x: float[2, n]) -> (y) {{ a0 = Exp(x) {chain} n = Neg(a19) r = Relu(n) y = Exp(r) }}"
    _, report = _optimized([_Pass("use_abs", _replaced("Abs"))], verify=run_model, text=text)
    (problem,) = report.problems
    assert operators(problem.before) == ["Relu"]
    assert operators(problem.after) == ["Abs"]
    _, report = _optimized([_Pass("ill_typed", _replaced("Not"))], continue_on_error=True, text=text)
    assert operators(report.problems[0].before) == ["Relu"]
