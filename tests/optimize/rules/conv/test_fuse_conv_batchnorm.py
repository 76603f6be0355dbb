"""Batch normalizations fold into convolutions."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.fuse_conv_batchnorm import FUSE_CONV_BATCHNORM

STATISTICS = """
    s: float[4] = [1.0, -0.5, 2.0, 0.1]
    t: float[4] = [0.0, 1.0, -1.0, 0.5]
    m: float[4] = [0.1, 0.2, -0.3, 0.0]
    v: float[4] = [1.0, 0.5, 2.0, 0.01]
"""


def text(lines, statistics=STATISTICS, inputs="x: float[2, 4, 5, 5]", outputs="y"):
    return f"graph({inputs}) -> ({outputs}) {{ {statistics} {lines} }}"


@pytest.mark.parametrize(
    "lines",
    [
        "w: float[4, 4, 3, 3] = ... 1 c = Conv(x, w) y = BatchNormalization(c, s, t, m, v)",
        "w: float[4, 2, 3, 3] = ... 1 b: float[4] = ... 2 c = Conv(x, w, b) {group = 2, pads = [1, 1, 1, 1]}"
        " y = BatchNormalization(c, s, t, m, v) {epsilon = 0.1}",
        "w: float[4, 4, 3, 3] = ... 1 c = ConvTranspose(x, w) {strides = [2, 2]} y = BatchNormalization(c, s, t, m, v)",
        "w: float[4, 2, 3, 3] = ... 1 b: float[4] = ... 2 c = ConvTranspose(x, w, b) {group = 2} y = BatchNormalization(c, s, t, m, v)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """Conv and ConvTranspose, grouped or not, with or without bias, absorb the normalization."""
    model, fired = apply_rule(FUSE_CONV_BATCHNORM, text(lines))
    assert fired == 1
    assert operators(model) in (["Conv"], ["ConvTranspose"])


def test_fires_for_double():
    """Weights of double are folded in double."""
    statistics = STATISTICS.replace("float[", "double[")
    lines = "w: double[4, 4, 1] = ... 1 c = Conv(x, w) y = BatchNormalization(c, s, t, m, v) {epsilon = 0.5}"
    _, fired = apply_rule(FUSE_CONV_BATCHNORM, text(lines, statistics, "x: double[2, 4, 5]"), rtol=1e-13)
    assert fired == 1


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            "w: float[4, 4, 3, 3] = ... c = Conv(x, w) y = BatchNormalization(c, s, t, m, v) {training_mode = 1} z = Relu(x)",
            "training mode",
        ),
        ("w: float[4, 4, 3, 3] = ... c = Conv(x, w) y = BatchNormalization(c, s, t, m, v) z = Relu(c)", "no match"),
        (
            "w: float[4, 4, 3, 3] = ... c = Conv(x, w) y = BatchNormalization(c, s, t, m, v) z = Relu(w)",
            "the weights have other users",
        ),
        ("w: float[4, 4, 3, 3] = ... r = Relu(w) c = Conv(x, r) y = BatchNormalization(c, s, t, m, v) z = Relu(x)", "no match"),
        ("w: float[4, 4, 3, 3] = ... r = Relu(s) c = Conv(x, w) y = BatchNormalization(c, r, t, m, v) z = Relu(x)", "no match"),
        ("w: float[3, 4, 3, 3] = ... c = Conv(x, w) y = BatchNormalization(c, s, t, m, v) z = Relu(x)", "the 3 output channels"),
        (
            "w: float[4, 4, 3, 3] = ... n: float[4] = [1, 1, 1, -1] c = Conv(x, w) y = BatchNormalization(c, s, t, m, n) z = Relu(x)",
            "the variance is not positive",
        ),
        ("w: float[4, 4, 3, 3] = ... c = Conv(x, w) y, a, b, z, d = BatchNormalization:9(c, s, t, m, v)", "no match"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_CONV_BATCHNORM, text(lines, outputs="y, z"), infer=False)


def test_fires_for_float16():
    """Weights of float16 are folded in float64 and rounded once, also where the statistics are float."""
    lines = "w: float16[4, 4, 1] = ... 1 c = Conv(x, w) y = BatchNormalization(c, s, t, m, v)"
    _, fired = apply_rule(FUSE_CONV_BATCHNORM, text(lines, inputs="x: float16[1, 4, 2]"), rtol=5e-3)
    assert fired == 1


def test_declines_integer_weights():
    """Weights that are no floating-point numbers stay."""
    lines = "w: int8[4, 4, 1] = ... 1 c = Conv(x, w) y = BatchNormalization(c, s, t, m, v)"
    assert "the weights are int8" in declines(FUSE_CONV_BATCHNORM, text(lines, inputs="x: int8[1, 4, 2]"), infer=False)
