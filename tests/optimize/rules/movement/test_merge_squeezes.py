"""Squeezes and unsqueezes that cancel."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.merge_squeezes import MERGE_SQUEEZES


@pytest.mark.parametrize(
    "lines",
    [
        "n: int64[2] = [0, 2] a = Unsqueeze(r, n) b = Squeeze(a, n)",
        "n: int64[1] = [1] a = Squeeze(r, n) b = Unsqueeze(a, n)",
        "n: int64[] = 1 a = Unsqueeze(r, n) b = Squeeze(a, n)",
        "n: int64[1] = [-1] m: int64[1] = [3] a = Unsqueeze(r, n) b = Squeeze(a, m)",
        "a = Unsqueeze:11(r) {axes = [0]} b = Squeeze:11(a) {axes = [0]}",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """Axes that are added and removed again, or the other way round, in either form, go."""
    model, fired = apply_rule(MERGE_SQUEEZES, f"graph(x: float[3, 1, 2]) -> (y) {{ r = Relu(x) {lines} y = Neg(b) }}")
    assert fired == 1
    assert operators(model) == ["Relu", "Neg"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("n: int64[1] = [0] m: int64[1] = [2] a = Unsqueeze(x, n) y = Squeeze(a, m)", "the axes [0] and [2] differ"),
        ("n: int64[1] = [0] a = Unsqueeze(x, n) y = Squeeze(a)", "missing"),
        ("a = Unsqueeze(x, k) y = Squeeze(a, k)", "no constants"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(MERGE_SQUEEZES, f"graph(x: float[3, 1, 2], k: int64[1]) -> (y) {{ {lines} }}")
