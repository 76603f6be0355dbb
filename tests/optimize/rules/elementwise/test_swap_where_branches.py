"""Where of a negated condition."""

from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.elementwise.swap_where_branches import SWAP_WHERE_BRANCHES


def test_fires_with_the_same_numbers():
    """The negation goes and the branches change places."""
    text = "graph(c: bool[5], x: float[5], z: float[]) -> (y) { n = Not(c) y = Where(n, x, z) }"
    model, fired = apply_rule(SWAP_WHERE_BRANCHES, text, rtol=0)
    assert fired == 1
    assert operators(model) == ["Where"]


def test_negation_stays_for_others():
    """Not stays where something else reads it."""
    text = "graph(c: bool[5], x: float[5], z: float[]) -> (y, n) { n = Not(c) y = Where(n, x, z) }"
    model, fired = apply_rule(SWAP_WHERE_BRANCHES, text, rtol=0)
    assert fired == 1
    assert operators(model) == ["Not", "Where"]


def test_declines_a_plain_condition():
    """A condition that is not negated is left alone."""
    assert declines(SWAP_WHERE_BRANCHES, "graph(c: bool[5], x: float[5], z: float[]) -> (y) { y = Where(c, x, z) }") == "no match"
