"""HardSwish that is written out."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.activation.fuse_hard_swish import FUSE_HARD_SWISH

CLIPPED = "a = Add(x, three) c = Clip(a, zero, six)"


def text(lines, outputs="y"):
    return f"""graph(x: float[batch, 5]) -> ({outputs}) {{ three: float[] = 3.0 zero: float[] = 0.0 six: float[] = 6.0
        sixth: float[] = 0.16666667 five: float[] = 5.0 {lines} }}"""


@pytest.mark.parametrize(
    "lines",
    [
        "s = HardSigmoid(x) {alpha = 0.16666667} y = Mul(x, s)",
        "s = HardSigmoid(x) {alpha = 0.16666667, beta = 0.5} y = Mul(s, x)",
        f"{CLIPPED} d = Div(c, six) y = Mul(x, d)",
        f"{CLIPPED} d = Mul(c, sixth) y = Mul(d, x)",
        f"{CLIPPED} m = Mul(x, c) y = Div(m, six)",
        f"{CLIPPED} m = Mul(c, x) y = Mul(sixth, m)",
        f"{CLIPPED} d = Div(x, six) y = Mul(d, c)",
        "a = Add(three, x) c = Clip:6(a) {min = 0.0, max = 6.0} m = Mul(x, c) y = Div(m, six)",
        "a = Add(x, three) r = Relu(a) c = Min(r, six) m = Mul(x, c) y = Div(m, six)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """Each form becomes HardSwish."""
    model, fired = apply_rule(FUSE_HARD_SWISH, text(lines), opset="13")
    assert fired == 1
    assert operators(model) == ["HardSwish"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("s = HardSigmoid(x) y = Mul(x, s)", "HardSigmoid has other constants"),
        ("a = Add(x, three) c = Clip(a, zero, five) m = Mul(x, c) y = Div(m, six)", "Clip has other limits"),
        ("a = Add(x, three) c = Clip(a, zero) m = Mul(x, c) y = Div(m, six)", "Clip has other limits"),
        (f"{CLIPPED} m = Mul(x, c) y = Div(m, five)", "no match"),
    ],
)
def test_declines(lines, reason):
    """Other constants are another function."""
    assert declines(FUSE_HARD_SWISH, text(lines)) == reason


def test_declines_other_users():
    """A sigmoid that is used elsewhere would be computed twice."""
    lines = "s = HardSigmoid(x) {alpha = 0.16666667} y = Mul(x, s) z = Neg(s)"
    assert declines(FUSE_HARD_SWISH, text(lines, "y, z")) == "no match"


def test_declines_an_unknown_shape():
    """Nothing is known of the result either."""
    lines = text("s = HardSigmoid(x) {alpha = 0.16666667} y = Mul(x, s)").replace("x: float[batch, 5]", "x: float")
    assert "the result is" in declines(FUSE_HARD_SWISH, lines, infer=False)
