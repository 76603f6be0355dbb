"""Slices that undo a Concat."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.drop_slice_of_concat import DROP_SLICE_OF_CONCAT


def text(lines, outputs="y"):
    return f"""graph(a: float[n, 2], b: float[n, 3], c: float[n, m], s: int64[1]) -> ({outputs}) {{
        zero: int64[1] = [0] one: int64[1] = [1] two: int64[1] = [2] five: int64[1] = [5] far: int64[1] = [9223372036854775807]
        low: int64[1] = [-3] minus: int64[1] = [-2] d = Neg(b) {lines} }}"""


@pytest.mark.parametrize(
    "lines",
    [
        "j = Concat(a, d, c) {axis = 1} y = Slice(j, two, five, one)",
        "j = Concat(a, d, c) {axis = -1} y = Slice(j, two, five, one, one)",
        "j = Concat(a, d) {axis = 1} y = Slice(j, two, far, one)",
        "j = Concat(d, a) {axis = 1} y = Slice(j, zero, minus, one)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """A part in the middle, at the end, and at the start with an end counted from behind."""
    model, fired = apply_rule(DROP_SLICE_OF_CONCAT, text(lines))
    assert fired == 1
    assert "Concat" not in operators(model)


def test_concat_with_other_users():
    """It stays for these."""
    lines = "j = Concat(a, d) {axis = 1} y = Slice(j, two, far, one) z = Neg(j)"
    model, fired = apply_rule(DROP_SLICE_OF_CONCAT, text(lines, "y, z"))
    assert fired == 1
    assert operators(model) == ["Neg", "Concat", "Neg"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("j = Concat(a, d) {axis = 1} y = Slice(j, one, five, one)", "is not one of the parts"),
        ("j = Concat(c, d) {axis = 1} y = Slice(j, two, five, one)", "is not one of the parts"),
        ("j = Concat(a, d) {axis = 1} y = Slice(j, two, five, zero)", "another axis"),
        ("j = Concat(a, d) {axis = 1} y = Slice(j, low, five, one)", "starts from behind"),
        ("j = Concat(a, c) {axis = 1} y = Slice(j, zero, low, one)", "ends from behind"),
        ("j = Concat(a, d) {axis = 1} y = Slice(j, zero, two, one, two)", "with steps"),
        ("j = Concat(a, d) {axis = 1} y = Slice(j, s, two, one)", "no constants"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(DROP_SLICE_OF_CONCAT, text(lines))
