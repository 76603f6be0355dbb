"""The rewrite engine: what fires, where, and what it leaves behind."""

import numpy as np
import pytest
from support.optimizing import apply_rule, body, declines, model_of, operators

from sardonyx.dtypes import DataType
from sardonyx.errors import Fail, OptimizationError
from sardonyx.ir import TensorType, Value
from sardonyx.ir.verify import verify
from sardonyx.optimize.edit import PROVIDER_KEY
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rule import Rule
from sardonyx.trace import observe


def _relu_neg(op, x):
    return op.Relu(op.Neg(x))


NEG_ABS = Rule("use_abs", _relu_neg, lambda op, match, learned: op.Abs(match["x"]))


def test_match_is_replaced_and_removed():
    """The matched nodes go, the new one takes over name, users and type."""
    model, fired = apply_rule(NEG_ABS, "graph(x: float[2]) -> (y: float[2]) { a = Neg(x) b = Relu(a) y = Exp(b) }", compare=False)
    assert fired == 1
    assert body(model) == "graph(x: float[2]) -> (y: float[2]) {\n    b = Abs(x)\n    y = Exp(b)\n}\n"


def test_output_of_the_graph_keeps_its_name():
    """A replaced graph output is given out under the same name."""
    model, _ = apply_rule(NEG_ABS, "graph(x: float[2]) -> (y: float[2]) { a = Neg(x) y = Relu(a) }", compare=False)
    assert body(model) == "graph(x: float[2]) -> (y: float[2]) {\n    y = Abs(x)\n}\n"


def test_inner_value_with_another_user_declines():
    """An inner value that something else reads keeps the rule from firing."""
    assert declines(NEG_ABS, "graph(x: float[2]) -> (y, z) { a = Neg(x) y = Relu(a) z = Exp(a) }") == "no match"


def test_inner_value_that_is_an_output_declines():
    """An inner value that the graph gives out keeps the rule from firing."""
    assert declines(NEG_ABS, "graph(x: float[2]) -> (a, y) { a = Neg(x) y = Relu(a) }") == "no match"


def test_inner_value_read_by_a_subgraph_declines():
    """A capture by a subgraph counts as a user."""
    text = """graph(x: float[2], c: bool[]) -> (y, z) {
        a = Neg(x)
        y = Relu(a)
        z = If(c) {then_branch = graph() -> (t) { t = Exp(a) }, else_branch = graph() -> (x) {}}
    }"""
    assert declines(NEG_ABS, text) == "no match"


def test_shared_inner_node_stays_for_its_other_users():
    """With _shared the inner node may have other users, and stays for them."""
    rule = Rule("r", lambda op, x: op.Relu(op.Neg(x, _shared=True)), NEG_ABS.replace)
    model, fired = apply_rule(rule, "graph(x: float[2]) -> (y, z) { a = Neg(x) y = Relu(a) z = Exp(a) }", compare=False)
    assert fired == 1
    assert sorted(operators(model)) == ["Abs", "Exp", "Neg"]


def test_matches_inside_subgraphs():
    """Nodes of a subgraph are rewritten, with inputs captured from outside."""
    text = """graph(x: float[2], c: bool[]) -> (z) {
        z = If(c) {then_branch = graph() -> (t) { a = Neg(x) t = Relu(a) }, else_branch = graph() -> (x) {}}
    }"""
    model, fired = apply_rule(NEG_ABS, text, compare=False)
    assert fired == 1
    assert [node.op_type for node in next(iter(model.graph)).subgraphs[0]] == ["Abs"]


def test_nodes_of_two_graphs_are_no_match():
    """A pattern does not reach from a subgraph into the graph around it."""
    text = """graph(x: float[2], c: bool[]) -> (z) {
        a = Neg(x)
        z = If(c) {then_branch = graph() -> (t) { t = Relu(a) }, else_branch = graph() -> (x) {}}
    }"""
    assert declines(NEG_ABS, text) == "no match"


def test_reason_of_check_is_told_to_observers():
    """A check that declines with a reason leaves the graph alone and tells observers why."""
    rule = Rule("r", _relu_neg, NEG_ABS.replace, lambda match: "not today")
    assert declines(rule, "graph(x: float[2]) -> (y) { a = Neg(x) y = Relu(a) }") == "not today"


def test_firing_is_told_to_observers():
    """Each firing is an event with the rule and the names of the nodes."""
    events = []
    with observe(events.append):
        apply_rule(NEG_ABS, "graph(x: float[2]) -> (y) { a = Neg(x) @n1 y = Relu(a) @n2 }", compare=False)
    (fire,) = [event for event in events if event.name == "rewrite.fire"]
    assert fire.details == {"rule": "use_abs", "nodes": ["n2", "n1"], "operators": ["Relu", "Neg"]}


def test_what_check_learns_reaches_replace():
    """Anything that check returns, other than None and a string, is handed to replace."""
    rule = Rule("r", _relu_neg, lambda op, match, learned: op.LeakyRelu(match["x"], alpha=learned), lambda match: 0.25)
    model, _ = apply_rule(rule, "graph(x: float[2]) -> (y) { a = Neg(x) y = Relu(a) }", compare=False)
    assert next(iter(model.graph)).get("alpha") == 0.25


@pytest.mark.parametrize("said", [True, False])
def test_a_check_that_says_true_or_false_is_an_error(said):
    """Either may be meant as "fire": a text declines, None fires."""
    rule = Rule("unclear", _relu_neg, lambda op, match, learned: op.Abs(match["x"]), lambda match: said)
    with pytest.raises(
        OptimizationError, match=f"rule unclear at .*: check returned {said}; return a text that says why to decline"
    ):
        apply_rule(rule, "graph(x: float[2]) -> (y: float[2]) { a = Neg(x) y = Relu(a) }", compare=False)


def test_rule_fires_on_what_another_made():
    """New nodes and their users are looked at again."""
    rule = Rule("halve", lambda op, x: op.Neg(op.Neg(x)), lambda op, match, learned: op.Abs(match["x"]))
    other = Rule("merge", lambda op, x: op.Abs(op.Abs(x)), lambda op, match, learned: op.Abs(match["x"]))
    model = model_of("graph(x: float[2]) -> (y) { a = Abs(x) b = Neg(a) c = Neg(b) d = Abs(c) y = Exp(d) }")
    fired = rewrite(model, RuleSet([other, rule]))
    verify(model)
    assert fired == {"halve": 1, "merge": 2}
    assert operators(model) == ["Abs", "Exp"]


def test_node_freed_of_another_user_is_looked_at_again():
    """When a firing takes away the second user of an inner value, the pattern that needed it for itself fires."""
    drop = Rule("drop", lambda op, x: op.Sqrt(op.Exp(x)), lambda op, match, learned: op.Cos(op.constant(np.zeros(2, np.float32))))
    model = model_of("graph(x: float[2]) -> (y, z) { a = Neg(x) y = Relu(a) b = Exp(a) z = Sqrt(b) }")
    assert rewrite(model, RuleSet([NEG_ABS, drop])) == {"drop": 1, "use_abs": 1}
    verify(model)


def test_a_pattern_is_matched_again_when_its_deepest_input_changes():
    """When a firing takes away another user of what the deepest node of a pattern reads, its check is asked anew."""
    own = Rule("own", _relu_neg, NEG_ABS.replace, lambda match: None if match["x"].use_count == 1 else "shared")
    drop = Rule("drop", lambda op, x: op.Sqrt(op.Cos(x)), lambda op, match, learned: op.constant(np.ones(2, np.float32)))
    model = model_of("graph(x: float[2]) -> (y, z) { a = Exp(x) b = Neg(a) y = Relu(b) c = Cos(a) z = Sqrt(c) }")
    assert rewrite(model, RuleSet([own, drop])) == {"drop": 1, "own": 1}
    verify(model)


def test_rule_that_feeds_itself_is_named():
    """A rule without end raises Fail with its name."""
    rule = Rule("swap", lambda op, x: op.Neg(x), lambda op, match, learned: op.Neg(match["x"]))
    with pytest.raises(Fail, match="rule swap does not come to an end"):
        rewrite(model_of("graph(x: float[2]) -> (y) { y = Neg(x) }"), RuleSet([rule]))


def test_exception_in_a_rule_is_named():
    """What a rule raises becomes Fail with the rule's name and the node."""
    rule = Rule("broken", lambda op, x: op.Neg(x), lambda op, match, learned: 1 // 0)
    with pytest.raises(Fail, match=r"rule broken at .*Neg.*ZeroDivisionError"):
        rewrite(model_of("graph(x: float[2]) -> (y) { y = Neg(x) @n }"), RuleSet([rule]))


def test_replacement_of_another_type_is_refused():
    """A rule that would change the element type of a value raises Fail."""
    rule = Rule("wrong", lambda op, x: op.Neg(x), lambda op, match, learned: op.Cast(match["x"], to=11))
    with pytest.raises(Fail, match=r"rule wrong .* has type double, expected float"):
        apply_rule(rule, "graph(x: float[2]) -> (y: float[2]) { y = Neg(x) }")


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        (lambda op, match, learned: op.Flatten(match["x"]), r"has shape \(n, 12\), expected \(n, 3, 4\)"),
        (lambda op, match, learned: op.ReduceSum(match["x"], np.array([2])), r"has shape \(n, 3, 1\), expected \(n, 3, 4\)"),
        (lambda op, match, learned: op.Add(match["x"], np.zeros((9, 1, 1, 1), np.float32)), r"has shape \(9, n, 3, 4\), expected"),
        (lambda op, match, learned: 5, "replace returned 5, expected a value"),
    ],
)
def test_replacement_of_another_shape_is_refused(replace, message):
    """A rule that would change the rank or a size of a value raises Fail."""
    rule = Rule("wrong", lambda op, x: op.Neg(x), replace)
    with pytest.raises(Fail, match=f"rule wrong .* {message}"):
        apply_rule(rule, "graph(x: float[n, 3, 4]) -> (y) { y = Neg(x) }")


def test_replacement_of_one_shape_for_some_sizes_is_left_out():
    """Where only the sizes of an input decide whether the shape stays, the rule does not fire, and the model is made."""
    rule = Rule("wide", lambda op, x: op.Neg(x), lambda op, match, learned: op.Add(match["x"], np.zeros((9, 1), np.float32)))
    assert "shape (9, 3), which may be other than (n, 3)" in declines(rule, "graph(x: float[n, 3]) -> (y) { y = Neg(x) }")


def test_what_a_model_says_of_its_outputs_need_not_hold():
    """Shapes are compared with what inference finds."""
    rule = Rule("right", lambda op, x: op.Neg(x), lambda op, match, learned: op.Mul(match["x"], np.float32(-1)))
    model = model_of("graph(x: float[2, 3]) -> (y) { y = Neg(x) }")
    model.graph.outputs[0].type = TensorType(DataType.FLOAT, (6,))
    assert rewrite(model, RuleSet([rule])) == {"right": 1}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (lambda op, x: 1 // 0, "the pattern of rule odd cannot be read: ZeroDivisionError"),
        (lambda op, x: x, "the pattern of rule odd cannot be read: InvalidArgument: .* must be a call"),
    ],
)
def test_a_pattern_that_cannot_be_read_names_its_rule(pattern, message):
    """It is read when the rules are put together."""
    with pytest.raises(OptimizationError, match=message) as caught:
        RuleSet([Rule("odd", pattern, lambda op, match, learned: match["x"])])
    assert caught.value.optimization == "odd"


def test_a_rule_that_makes_ever_more_nodes_is_named():
    """Long before it has fired as often as it may."""
    rule = Rule("wide", lambda op, x: op.Neg(x), lambda op, match, learned: op.Sum(*[op.Neg(match["x"]) for _ in range(99)]))
    with pytest.raises(Fail, match="rule wide does not come to an end: wide 81 times"):
        rewrite(model_of("graph(x: float[2]) -> (y) { y = Neg(x) }"), RuleSet([rule]))


def test_replacement_that_reads_what_it_replaces_is_refused():
    """A new node that reads the replaced value would be a cycle and raises Fail."""
    rule = Rule("cycle", lambda op, x: op.Neg(x), lambda op, match, learned: op.Abs(match.outputs[0]))
    with pytest.raises(Fail, match="reads the value that it replaces"):
        rewrite(model_of("graph(x: float[2]) -> (y) { y = Neg(x) }"), RuleSet([rule]))


def test_number_of_results_must_agree():
    """A replacement with too few values raises Fail."""
    rule = Rule("few", lambda op, x: op.outputs(op.Split(x), 2), lambda op, match, learned: match["x"])
    with pytest.raises(Fail, match="replace returned 1 values for 2"):
        rewrite(model_of("graph(x: float[2]) -> (y, z) { y, z = Split(x) }"), RuleSet([rule]))


def test_several_results_may_come_from_inner_nodes():
    """A pattern may give out an inner value, whose users before the root are put behind the new node."""

    def pattern(op, x, y):
        total = op.Add(x, y)
        return op.Softmax(total), total

    def replace(op, match, learned):
        return op.outputs("Fused", 2, match["x"], match["y"], _domain="test")

    rule = Rule("fuse", pattern, replace)
    text = "graph(x: float[2], y: float[2]) -> (s, e) { t = Add(x, y) e = Exp(t) s = Softmax(t) }"
    model, fired = apply_rule(rule, text, compare=False)
    assert fired == 1
    assert operators(model) == ["Fused", "Exp"]


def test_several_results_do_not_fire_across_a_path_outside():
    """Where the root also depends on an inner value by way of another node, fusing would make a cycle, so it does not fire."""

    def pattern(op, x, y):
        total = op.Add(x, x)
        return op.Mul(total, y), total

    rule = Rule("fuse", pattern, lambda op, match, learned: op.outputs("Fused", 2, match["x"], match["y"], _domain="test"))
    assert declines(rule, "graph(x: float[2]) -> (s) { t = Add(x, x) e = Exp(t) s = Mul(t, e) }") == "no match"


def test_new_nodes_are_read_under_the_version_of_the_root():
    """New nodes take the root's version in its domain, the import's in others."""
    rule = Rule("r", _relu_neg, lambda op, match, learned: op.Abs(op.Gelu(match["x"], _domain="com.microsoft")))
    text = "opset 21, com.microsoft 4\ngraph(x: float[2]) -> (y) { a = Neg(x) y = Relu:9(a) }"
    model, _ = apply_rule(rule, text, compare=False)
    assert [(node.op_type, node.version) for node in model.graph] == [("Gelu", 4), ("Abs", 9)]


def test_output_replaced_by_an_input_gets_an_identity():
    """Where an output would become an input of the graph, an Identity keeps both names."""
    rule = Rule("r", _relu_neg, lambda op, match, learned: match["x"])
    model, _ = apply_rule(rule, "graph(x: float[2]) -> (y: float[2]) { a = Neg(x) y = Relu(a) }", compare=False)
    assert body(model) == "graph(x: float[2]) -> (y: float[2]) {\n    y = Identity(x)\n}\n"


def test_unused_new_nodes_are_removed():
    """Nodes that replace made and did not use do not stay."""

    def replace(op, match, learned):
        op.Exp(match["x"])
        return op.Abs(match["x"])

    model, _ = apply_rule(Rule("r", _relu_neg, replace), "graph(x: float[2]) -> (y) { a = Neg(x) y = Relu(a) }", compare=False)
    assert operators(model) == ["Abs"]


def test_constants_get_names_that_nothing_has():
    """A constant of a rule is named unlike any other value of the model."""
    rule = Rule("r", _relu_neg, lambda op, match, learned: op.Add(match["x"], op.constant(np.ones(2, np.float32), "x")))
    model, _ = apply_rule(rule, "graph(x: float[2]) -> (y) { a = Neg(x) y = Relu(a) }", compare=False)
    assert list(model.graph.initializers) == ["x_1"]


def test_numbers_in_replace_become_constants():
    """A Python or NumPy number as an input of a new node is a constant."""
    rule = Rule("r", _relu_neg, lambda op, match, learned: op.Mul(match["x"], np.float32(2)))
    model, _ = apply_rule(rule, "graph(x: float[2]) -> (y) { a = Neg(x) y = Relu(a) }", compare=False)
    node = next(iter(model.graph))
    assert isinstance(node.inputs[1], Value)
    assert node.inputs[1].constant.numpy().tolist() == 2.0


def test_opset_can_be_kept():
    """With keep_opset a rule whose nodes need a newer opset leaves the graph as it was."""
    rule = Rule("use_mish", _relu_neg, lambda op, match, learned: op.Neg(op.Mish(match["x"])))
    text = "opset 14\ngraph(x: float[2]) -> (y) { a = Neg(x) y = Relu(a) }"
    model, events = model_of(text), []
    with observe(events.append):
        assert not rewrite(model, RuleSet([rule]), keep_opset=True)
    verify(model)
    assert operators(model) == ["Neg", "Relu"]
    assert events[-1].details["reason"] == "Mish needs opset 18, which the model does not import"
    assert rewrite(model, RuleSet([rule])) == {"use_mish": 1}


def test_nodes_that_are_placed_apart_are_not_replaced():
    """By metadata that name two providers; where they name one, the new node inherits it."""
    text = "graph(x: float[2]) -> (y: float[2]) { a = Neg(x) y = Relu(a) }"
    for other, expected in (("B", ["Neg", "Relu"]), ("A", ["Abs"])):
        model = model_of(text)
        for node, provider in zip(model.graph, ("A", other), strict=True):
            node.metadata = {PROVIDER_KEY: provider}
        rewrite(model, RuleSet([NEG_ABS]))
        assert [node.op_type for node in model.graph] == expected
        assert next(iter(model.graph)).metadata == {PROVIDER_KEY: "A"}
