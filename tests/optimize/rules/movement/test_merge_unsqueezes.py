"""Pairs of unsqueezes and of squeezes."""

import itertools

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.merge_unsqueezes import MERGE_UNSQUEEZES

FIRST = [[0], [1], [2], [-1], [0, 2]]
SECOND = [[0], [1], [-1], [1, 2], [0, -1]]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(FIRST, SECOND)))
def test_unsqueezes_merge_with_the_same_numbers(first, second):
    """Two unsqueezes at any places become one."""
    text = f"""graph(x: float[2, 3]) -> (y) {{ p: int64[{len(first)}] = {first} q: int64[{len(second)}] = {second}
        a = Unsqueeze(x, p) y = Unsqueeze(a, q) }}"""
    model, fired = apply_rule(MERGE_UNSQUEEZES, text)
    assert fired == 1
    assert operators(model) == ["Unsqueeze"]


@pytest.mark.parametrize(("first", "second"), [([0], [1]), ([2], [0]), ([-2], [0]), ([0, 2], [1]), ([4], [-2])])
def test_squeezes_merge_with_the_same_numbers(first, second):
    """Two squeezes at any places become one."""
    text = f"""graph(x: float[1, 2, 1, 1, 1]) -> (y) {{ p: int64[{len(first)}] = {first} q: int64[{len(second)}] = {second}
        a = Squeeze(x, p) y = Squeeze(a, q) }}"""
    model, fired = apply_rule(MERGE_UNSQUEEZES, text)
    assert fired == 1
    assert operators(model) == ["Squeeze"]


def test_axes_that_are_attributes_stay_attributes():
    """Before opset 13 axes are attributes, and so they are after."""
    text = "graph(x: float[2]) -> (y) { a = Unsqueeze(x) {axes = [1]} y = Unsqueeze(a) {axes = [0]} }"
    model, fired = apply_rule(MERGE_UNSQUEEZES, text, opset="11")
    assert fired == 1
    assert next(iter(model.graph)).get("axes") == (0, 2)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("a = Unsqueeze(x, k) y = Unsqueeze(a, n)", "no constants"),
        ("a = Squeeze(x) y = Squeeze(a)", "missing"),
        ("a = Unsqueeze(u, n) y = Unsqueeze(a, m)", "negative while the rank is unknown"),
        ("a = Unsqueeze(x, n) y = Squeeze(a, n)", "no match"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    text = f"graph(x: float[1, 1], u: float, k: int64[1]) -> (y) {{ n: int64[1] = [0] m: int64[1] = [-1] {lines} }}"
    assert reason in declines(MERGE_UNSQUEEZES, text)
