"""Rules as a pass."""

from collections import Counter

from support.optimizing import model_of, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.apply_rules import ApplyRules
from sardonyx.optimize.rule import Rule

ABS = Rule("use_abs", lambda op, x: op.Relu(op.Neg(x)), lambda op, match, learned: op.Abs(match["x"]))


def test_firings_are_counted_and_reported_as_change():
    """The pass says whether a rule fired, and counts where it is told to."""
    fired: Counter[str] = Counter()
    what = ApplyRules([ABS], fired)
    model = model_of("graph(x) -> (y) { a = Neg(x) y = Relu(a) }")
    assert what.run(model, Context())
    assert not what.run(model, Context())
    assert fired == {"use_abs": 1}
    assert operators(model) == ["Abs"]


def test_no_rules_do_nothing():
    """Without rules nothing changes."""
    assert not ApplyRules([]).run(model_of("graph(x) -> (x) {}"), Context())


def test_one_rule_alone():
    """`only` takes one rule, and counts nothing for the whole."""
    fired: Counter[str] = Counter()
    other = Rule("use_exp", lambda op, x: op.Exp(x), lambda op, match, learned: op.Abs(match["x"]))
    alone = ApplyRules([ABS, other], fired).only("use_exp")
    model = model_of("graph(x) -> (y) { a = Neg(x) b = Relu(a) y = Exp(b) }")
    assert alone.run(model, Context())
    assert operators(model) == ["Neg", "Relu", "Abs"]
    assert not fired
