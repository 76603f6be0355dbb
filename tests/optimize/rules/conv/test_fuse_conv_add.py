"""Constants per channel fold into the convolution before a Add."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.fuse_conv_add import FUSE_CONV_ADD


def text(lines, outputs="y"):
    return f"graph(x: float[2, 4, 5, 5], u: float[1]) -> ({outputs}) {{ {lines} }}"


@pytest.mark.parametrize(
    "lines",
    [
        "w: float[6, 4, 3, 3] = ... 1 k: float[1, 6, 1, 1] = ... 2 c = Conv(x, w) y = Add(c, k)",
        "w: float[6, 4, 3, 3] = ... 1 b: float[6] = ... 3 k: float[6, 1, 1] = ... 2 c = Conv(x, w, b) y = Add(k, c)",
        "w: float[6, 4, 3, 3] = ... 1 k: float[] = 0.75 c = Conv(x, w) y = Add(c, k)",
        "w: float[4, 3, 3, 3] = ... 1 b: float[6] = ... 3 k: float[] = 2.5 c = ConvTranspose(x, w, b) {group = 2} y = Add(c, k)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """A constant on either side, scalar or per channel, is absorbed."""
    model, fired = apply_rule(FUSE_CONV_ADD, text(lines))
    assert fired == 1
    assert len(operators(model)) == 1


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            "w: float[6, 4, 3, 3] = ... k: float[1, 6, 1, 3] = ... c = Conv(x, w) y = Add(c, k)",
            "the summand has shape (1, 6, 1, 3)",
        ),
        ("w: float[6, 4, 3, 3] = ... k: float[1, 1, 6, 1, 1] = ... c = Conv(x, w) y = Add(c, k)", "the summand has shape (1, 1, 6"),
        ("w: float[6, 4, 3, 3] = ... c = Conv(x, w) y = Add(c, u)", "no match"),
        ("w: float[6, 4, 3, 3] = ... k: float[] = 2.0 c = Conv(x, w) y = Add(c, k) z = Relu(c)", "no match"),
        ("w: float[6, 4, 3, 3] = ... k: float[] = 2.0 c = Conv(x, w) y = Add(c, k) z = Relu(w)", "the weights have other users"),
        ("w: float[6, 4, 3, 3] = ... k: float[] = 2.0 b = Relu(u) c = Conv(x, w, b) y = Add(c, k)", "no match"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_CONV_ADD, text(lines, "y, z" if "z =" in lines else "y"))
