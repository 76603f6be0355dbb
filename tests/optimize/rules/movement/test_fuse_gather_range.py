"""Ranges that are gathered."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.fuse_gather_range import FUSE_GATHER_RANGE


def text(lines, shape="n, 5"):
    return f"""graph(x: float[{shape}], i: int64[]) -> (y) {{ zero: int64[] = 0 one: int64[] = 1 two: int64[] = 2 four: int64[] = 4
        minus: int64[] = -2 fzero: float[] = 0.0 {lines} }}"""


@pytest.mark.parametrize("opset", ["11", "13", "21"])
@pytest.mark.parametrize(
    "lines",
    [
        "r = Range(one, four, one) y = Gather(x, r) {axis = 1}",
        "s = Shape(x) n = Gather(s, zero) r = Range(zero, n, one) y = Gather(x, r)",
        "r = Range(two, two, one) y = Gather(x, r) {axis = -1}",
    ],
)
def test_fires_with_the_same_numbers(lines, opset):
    """Constant limits, and limits that are sizes."""
    model, fired = apply_rule(FUSE_GATHER_RANGE, text(lines), opset=opset)
    assert fired == 1
    assert operators(model)[-1] == "Slice"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("r = Range(minus, two, one) y = Gather(x, r)", "the start may be negative"),
        ("r = Range(zero, i, one) y = Gather(x, r)", "the limit may be negative"),
        ("r = Range(zero, four, two) y = Gather(x, r)", "no match"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert declines(FUSE_GATHER_RANGE, text(lines)) == reason
