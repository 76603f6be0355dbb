"""Paddings fold into convolutions and poolings."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.fuse_pad import FUSE_PAD


def text(lines, outputs="y"):
    return f"""graph(x: float[2, 3, 6, 7], u: int64[8]) -> ({outputs}) {{
        w: float[4, 3, 3, 3] = ... 1 b: float[4] = ... 2 p: int64[8] = [0, 0, 1, 2, 0, 0, 0, 1] z: float[] = 0.0
        o: float[] = 1.0 n: float[] = -inf l: float[] = -3.4028235e38
        {lines} }}"""


@pytest.mark.parametrize(
    "lines",
    [
        "a = Pad(x, p) y = Conv(a, w)",
        "a = Pad(x, p, z) y = Conv(a, w, b) {pads = [1, 0, 2, 0], strides = [2, 1]}",
        "a = Pad:2(x) {pads = [0, 0, 1, 2, 0, 0, 0, 1]} y = Conv(a, w)",
        "a = Pad(x, p) y = AveragePool(a) {kernel_shape = [3, 3]}",
        "a = Pad(x, p) y = AveragePool(a) {kernel_shape = [2, 2], strides = [2, 2], count_include_pad = 1}",
        "a = Pad(x, p, n) y = MaxPool(a) {kernel_shape = [3, 3], strides = [2, 2]}",
        "a = Pad(x, p, l) y = MaxPool(a) {kernel_shape = [3, 3], pads = [1, 0, 0, 0]}",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """Zeros around a convolution or pooling become its pads."""
    model, fired = apply_rule(FUSE_PAD, text(lines))
    assert fired == 1
    assert len(operators(model)) == 1


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ('a = Pad(x, p) {mode = "reflect"} y = Conv(a, w)', "no match"),
        ("a = Pad(x, p, o) y = Conv(a, w)", "the value is not that"),
        ("a = Pad:2(x) {pads = [0, 0, 1, 2, 0, 0, 0, 1], value = 1.0} y = Conv(a, w)", "the value is not that"),
        ("a = Pad(x, u) y = Conv(a, w)", "the pads are no constant"),
        ("q: int64[8] = [0, 0, -1, 0, 0, 0, 0, 0] a = Pad(x, q) y = Conv(a, w)", "not of the spatial axes alone, or negative"),
        ("q: int64[8] = [1, 0, 0, 0, 0, 0, 0, 0] a = Pad(x, q) y = Conv(a, w)", "not of the spatial axes alone, or negative"),
        ('a = Pad(x, p) y = Conv(a, w) {auto_pad = "SAME_UPPER"}', "auto_pad is SAME_UPPER"),
        ("a = Pad(x, p) y = AveragePool(a) {kernel_shape = [2, 2], pads = [1, 0, 0, 0]}", "the pooling pads too"),
        ("a = Pad(x, p) y = AveragePool(a) {kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1}", "or rounds up"),
        ("a = Pad(x, p) y = AveragePool:6(a) {kernel_shape = [2, 2]}", "the pooling has no count_include_pad"),
        ("a = Pad(x, p) y = MaxPool(a) {kernel_shape = [3, 3]}", "the value is not that"),
        ("a = Pad(x, p, n) y = MaxPool(a) {kernel_shape = [2, 2]}", "may lie in the padding"),
        ("a = Pad(x, p, n) y = MaxPool(a) {kernel_shape = [3, 3], ceil_mode = 1}", "rounds up"),
        ("a = Pad(x, p, n) y = MaxPool(a) {kernel_shape = [3, 3], dilations = [1, 2]}", "may lie in the padding"),
        ("q: int64[2] = [1, 1] ax: int64[1] = [2] a = Pad(x, q, _, ax) y = Conv(a, w)", "the padding has axes"),
        ("a = Pad(x, p) y = Conv(a, w) v = Neg(a)", "no match"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_PAD, text(lines, "y, v" if "v =" in lines else "y"))
