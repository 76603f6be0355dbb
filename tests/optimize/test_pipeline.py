"""Levels, reports, and what happens when a pass fails."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, evaluate_node
from support.optimizing import model_of, operators

from sardonyx.errors import Fail, InvalidArgument, OptimizationError
from sardonyx.ir import Node
from sardonyx.optimize.contract import Level
from sardonyx.optimize.pipeline import ABOVE_BASIC, PASSES, RULES, known_names, optimize
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.target import Target
from sardonyx.trace import observe

TEXT = """opset 21
graph(x: float[2, 3, 8, 8]) -> (y: float[2, 96]) {
    w: float[6, 3, 5, 5] = ... 1
    s: float[6] = ... 2
    v: float[6] = [1, 2, 3, 4, 5, 6]
    c = Conv(x, w) {strides = [1, 1], group = 1}
    n = BatchNormalization(c, s, s, s, v)
    i = Identity(n)
    r = f.Act(i)
    b = Shape(r)
    z: int64[] = 0
    k: int64[1] = [0]
    g = Gather(b, z)
    u = Unsqueeze(g, k)
    m: int64[1] = [-1]
    t = Concat(u, m) {axis = 0}
    y = Reshape(r, t)
    dead = Neg(r)
}
function f.Act(a) -> (b) { b = Relu(a) }
"""


def test_all_stages_work_together():
    """Functions, folding, identities, fusion and dead code leave three nodes with the same numbers."""
    model, reference = model_of(TEXT), model_of(TEXT)
    report = optimize(model, Level.ALL, evaluate=evaluate_node, check=True)
    assert operators(model) == ["Conv", "Relu", "Reshape"]
    optimize(reference, Level.DISABLE, evaluate=None, check=True)
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)}
    np.testing.assert_allclose(evaluate_model(model, feeds)[0], evaluate_model(reference, feeds)[0], rtol=1e-4, atol=1e-5)
    assert report.fired == {"fuse_conv_batchnorm": 1}
    assert (report.nodes_before, report.nodes_after) == (10, 3)
    assert "fuse_conv_batchnorm: fired 1 times" in str(report)


def test_disable_only_inlines_and_infers():
    """Level 0 inlines functions and infers shapes and changes nothing else."""
    model = model_of(TEXT)
    report = optimize(model, Level.DISABLE, evaluate=evaluate_node)
    assert list(report.passes) == ["inline_functions", "expand_gradients", "infer_shapes"]
    assert operators(model).count("Identity") == 1
    assert not model.functions
    assert next(iter(model.graph)).output.shape == (2, 6, 4, 4)


@pytest.mark.parametrize(("level", "expected"), [(0, "DISABLE"), (1, "BASIC"), (3, "LAYOUT"), (4, "LAYOUT"), (99, "ALL")])
def test_numbers_between_levels_count_as_the_lower(level, expected):
    """A number that is no level counts as the next lower one."""
    assert optimize(model_of("graph(x) -> (x) {}"), level, evaluate=None).level.name == expected


def test_passes_and_rules_can_be_disabled():
    """What is named in disabled does not run."""
    model = model_of(TEXT)
    report = optimize(model, 99, evaluate=evaluate_node, disabled={"fuse_conv_batchnorm", "eliminate_dead_nodes"})
    assert "BatchNormalization" in operators(model)
    assert "Neg" in operators(model)
    assert "eliminate_dead_nodes" not in report.passes


def test_unknown_names_in_disabled_are_refused():
    """A name that nothing has raises InvalidArgument with a guess and the known names."""
    with pytest.raises(InvalidArgument, match=r"no pass or rule is named 'fold_constant'; did you mean fold_constants\? docs/opt"):
        optimize(model_of(TEXT), 99, evaluate=None, disabled={"fold_constant"})


def test_extra_rules_and_passes_take_part():
    """Rules and passes of a user run with ours, and can be disabled by name."""
    rule = Rule("use_abs", lambda op, x: op.Relu(op.Neg(x)), lambda op, match, learned: op.Abs(match["x"]), level=Level.EXTENDED)
    text = "graph(x: float[1]) -> (y) { a = Neg(x) b = Relu(a) y = Exp(b) }"
    model = model_of(text)
    assert optimize(model, Level.BASIC, evaluate=None, extra_rules=[rule]).fired == {}
    assert optimize(model, Level.EXTENDED, evaluate=None, extra_rules=[rule]).fired == {"use_abs": 1}
    report = optimize(model_of(text), Level.ALL, evaluate=None, extra_passes=[_Pass("nothing", lambda model: False)])
    assert report.passes["nothing"].runs == 1
    report = optimize(model_of(text), Level.ALL, evaluate=None, extra_rules=[rule], disabled={"use_abs"})
    assert report.fired == {}


class _Pass:
    """A pass made of a function."""

    def __init__(self, name, function):
        self.name, self._function = name, function

    def run(self, model, context):
        return self._function(model)


def test_pass_that_raises_is_named():
    """An exception in a pass becomes Fail with the pass's name."""
    with pytest.raises(Fail, match=r"optimization broken failed: ZeroDivisionError: .*; disable it by its name"):
        optimize(model_of(TEXT), 1, evaluate=None, extra_passes=[_Pass("broken", lambda model: 1 // 0)])


def test_pass_that_breaks_the_model_is_named():
    """With check, a pass that leaves an invalid graph is named."""

    def spoil(model):
        last = list(model.graph)[-1]
        model.graph.insert_before(next(iter(model.graph)), Node("Relu", [last.output], 1, version=21))
        return True

    with pytest.raises(OptimizationError, match="optimization spoil"):
        optimize(model_of("graph(x) -> (y) { y = Neg(x) }"), 1, evaluate=None, extra_passes=[_Pass("spoil", spoil)], check=True)


def test_pass_that_always_changes_ends():
    """A pass that reports a change each time is run a bounded number of times."""
    report = optimize(model_of("graph(x) -> (x) {}"), 1, evaluate=None, extra_passes=[_Pass("restless", lambda model: True)])
    assert report.passes["restless"].runs == 10


def test_each_pass_is_a_span():
    """Observers are told of the whole optimization and of each pass."""
    events = []
    with observe(events.append):
        optimize(model_of(TEXT), 1, evaluate=evaluate_node)
    assert events[-1].name == "optimize"
    assert {event.details["optimization"] for event in events if event.name == "optimize.pass"} >= {"infer_shapes", "apply_rules"}


def test_names_are_unique():
    """No two passes or rules have one name, so that disabling means one thing."""
    assert len(set(known_names())) == len(known_names())
    assert set(PASSES) == set(RULES)


def test_model_can_be_kept_fit_for_saving():
    """With keeps_opset no node is newer than the opset that the model imports; what onnxruntime has at any is made."""
    text = """opset 14
    graph(x: float[2, 4]) -> (y) { g: float[4] = ... 1 e: float[] = 0.1 two: float[] = 2.0
        m = ReduceMean(x) {axes = [1]} d = Sub(x, m) q = Pow(d, two) v = ReduceMean(q) {axes = [1]} p = Add(v, e)
        s = Sqrt(p) n = Div(d, s) y = Mul(n, g) }"""
    model = model_of(text.replace("y = Mul(n, g)", "l = Mul(n, g) f = Softplus(l) t = Tanh(f) y = Mul(l, t)"))
    optimize(model, Level.ALL, evaluate=None, target=Target(keeps_opset=True))
    assert {node.version for node in model.graph} == {14}
    assert operators(model) == ["LayerNormalization", "Softplus", "Tanh", "Mul"]
    optimize(model, Level.ALL, evaluate=None)
    assert operators(model) == ["LayerNormalization", "Mish"]
    assert not set(model.graph.initializers) - {"g"}


def test_what_is_not_renamed_is_not_made():
    """Without `write_older` a model that keeps its opset gets nothing newer."""
    text = """opset 14
    graph(q: float[b, 3, s, 8], k: float[b, 3, 8, t], v: float[b, 3, t, 8]) -> (y) {
        p = MatMul(q, k) w = Softmax(p) y = MatMul(w, v) }"""
    made = []
    for disabled in ([], ["write_older"]):
        model = model_of(text)
        optimize(model, Level.ALL, evaluate=None, target=Target(keeps_opset=True), disabled=disabled)
        made.append(operators(model))
    assert "MultiHeadAttention" in made[0]
    assert made[1] == ["MatMul", "Softmax", "MatMul"]


@pytest.mark.parametrize(("loops", "after"), [(0, ["Neg", "Abs", "Abs"]), (1, ["Neg", "Abs"]), (2, ["Abs"])])
def test_how_often_levels_repeat(loops, after):
    """What a higher level leaves goes through BASIC again with 1, and with 2 through the higher level too."""
    rules = [
        Rule("a", lambda op, x: op.Ceil(op.Exp(x)), lambda op, match, learned: op.Abs(op.Abs(match["x"])), level=Level.EXTENDED),
        Rule("b", lambda op, x: op.Abs(op.Abs(x)), lambda op, match, learned: op.Abs(match["x"])),
    ]
    if loops == 2:
        rules.append(Rule("c", lambda op, x: op.Abs(op.Neg(x)), lambda op, match, learned: op.Abs(match["x"]), level=Level.LAYOUT))
    model = model_of("graph(x: float[1]) -> (y) { a = Neg(x) b = Exp(a) y = Ceil(b) }")
    optimize(model, Level.ALL, evaluate=None, extra_rules=rules, disabled=["eliminate_identities"], loops=loops)
    assert operators(model) == after


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a = Unsqueeze(x, i) y = Unsqueeze(a, i)", ["Unsqueeze", "Unsqueeze"]),
        ("a = And(b, t) y = Not(a)", ["And", "Not"]),
        ("s = Shape(x) a = Expand(x, s) y = Neg(a)", ["Shape", "Expand", "Neg"]),
    ],
)
def test_basic_alone_keeps_what_tools_look_for(text, kept):
    """A higher level does away with it."""
    graph = f"graph(x: float[n], b: bool[n]) -> (y) {{ i: int64[1] = [1] t: bool[] = true {text} }}"
    alone, further = model_of(graph), model_of(graph)
    optimize(alone, Level.BASIC, evaluate=None)
    optimize(further, Level.EXTENDED, evaluate=None)
    assert operators(alone) == kept
    assert len(further.graph) < len(kept)


def test_basic_alone_does_not_merge_weights():
    """Those of two layers may be equal by chance; scalars are merged."""
    text = """graph(x: float[2]) -> (y) {
        k: float[2] = [1, 2] l: float[2] = [1, 2] m: float[] = 3 n: float[] = 3
        a = Add(x, k) b = Mul(a, l) c = Pow(b, m) y = Max(c, n)
    }"""
    alone, further = model_of(text), model_of(text)
    optimize(alone, Level.BASIC, evaluate=None)
    optimize(further, Level.EXTENDED, evaluate=None)
    assert (len(alone.graph.initializers), len(further.graph.initializers)) == (3, 2)


def test_basic_alone_takes_no_operators_apart_in_a_file():
    """Tools look for those of com.microsoft too; where the model is only run, they are."""
    text = "graph(x: float[2]) -> (y) { y = com.microsoft.FastGelu(x) }"
    saved, run = model_of(text), model_of(text)
    optimize(saved, Level.BASIC, evaluate=None, target=Target.file())
    optimize(run, Level.BASIC, evaluate=None)
    assert operators(saved) == ["FastGelu"]
    assert operators(run) != ["FastGelu"]


def test_the_rules_that_basic_alone_is_spared_exist():
    """By their names."""
    assert set(known_names()) >= ABOVE_BASIC
