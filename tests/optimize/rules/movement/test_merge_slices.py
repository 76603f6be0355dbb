"""Slices of slices."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.merge_slices import MERGE_SLICES

CONSTANTS = """zero: int64[1] = [0] one: int64[1] = [1] two: int64[1] = [2] last: int64[1] = [-1] far: int64[1] = [999]
    down: int64[1] = [-1] low: int64[1] = [-999] small: int32[1] = [1]"""


def text(lines, outputs="y", shape="n, 5, 6"):
    return f"graph(x: float[{shape}], s: int64[1]) -> ({outputs}) {{ {CONSTANTS} {lines} }}"


@pytest.mark.parametrize(
    "lines",
    [
        "a = Slice(x, zero, two, one) y = Slice(a, one, far, two, two)",
        "a = Slice(x, zero, far, one, two) y = Slice(a, one, far, last, two)",
        "a = Slice(x, last, low, last, down) b = Slice(a, one, two, one) y = Slice(b, zero, two, zero)",
        "a = Slice(x, small, small, small) y = Slice(a, one, far, two, two)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """Slices along different axes are one."""
    model, fired = apply_rule(MERGE_SLICES, text(lines))
    assert fired >= 1
    assert operators(model) == ["Slice"]


def test_inner_slice_with_other_users():
    """It stays for these."""
    model, fired = apply_rule(MERGE_SLICES, text("a = Slice(x, zero, two, one) y = Slice(a, one, far, two) z = Neg(a)", "y, z"))
    assert fired == 1
    assert sorted(operators(model)) == ["Neg", "Slice", "Slice"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("a = Slice(x, zero, far, one) y = Slice(a, one, two, one)", "both slice along the axes [1]"),
        ("a = Slice(x, s, far, one) y = Slice(a, one, two, two)", "no constants"),
        ("a = Slice(x, zero, two) y = Slice(a, one, two, one)", "no constants"),
        ("a = Slice:9(x) {starts = [0], ends = [2]} y = Slice(a, one, two, one)", "no constants"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(MERGE_SLICES, text(lines))


def test_declines_negative_axes_of_unknown_rank():
    """They could be the same."""
    lines = text("a = Slice(x, zero, far, last) y = Slice(a, one, two, two)").replace("x: float[n, 5, 6]", "x: float")
    assert "no constants" in declines(MERGE_SLICES, lines, infer=False)
