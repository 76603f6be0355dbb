"""Scaled products of integer matrices."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_matmul_integer import FUSE_MATMUL_INTEGER, FUSE_MATMUL_INTEGER_BIAS


def text(zeros=", az, bz", scale="float[3] = [0.1, 0.2, 0.3]", fed="float[]", to=1, order="m, k", outputs="y", more=""):
    return f"""graph(a: uint8[2,5], r: {fed}) -> ({outputs}) {{ b: int8[5,3] = ... 7 s: {scale} az: uint8[] = 3 bz: int8[] = 1
        t = MatMulInteger(a, b{zeros}) m = Cast(t) {{to = {to}}} k = Mul(r, s) y = Mul({order}) {more} }}"""


@pytest.mark.parametrize("given", [{}, {"zeros": ""}, {"scale": "float[] = 0.5"}, {"order": "k, m"}, {"fed": "float[1]"}])
def test_scales_fuse_with_the_same_numbers(given):
    """With and without zero points, scales of b for all or by column, factors in either order."""
    model, fired = apply_rule(FUSE_MATMUL_INTEGER, text(**given))
    assert fired == 1
    assert operators(model) == ["MatMulIntegerToFloat"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"fed": "float[3]"}, "the scale of a"),
        ({"scale": "float[2,1] = [[0.1], [0.2]]"}, "the scale of b"),
        ({"to": 11}, "no match"),
        ({"outputs": "y, v", "more": "v = Neg(t)"}, "no match"),
    ],
)
def test_declines_scales(given, reason):
    """Each case that the rule leaves alone."""
    body = text(**given).replace("r: float[]", "r: double[]").replace("s: float", "s: double") if "to" in given else text(**given)
    assert reason in declines(FUSE_MATMUL_INTEGER, body)


def biased(bias="c: float[3] = [1, 2, 3]", inputs="a, b, r, s", fed=""):
    return f"""graph(a: uint8[2,5], r: float[]{fed}) -> (y) {{ b: int8[5,3] = ... 7 s: float[] = 0.5 az: uint8[] = 3 {bias}
        t = com.microsoft.MatMulIntegerToFloat({inputs}) y = Add(t, c) }}"""


@pytest.mark.parametrize("inputs", ["a, b, r, s", "a, b, r, s, az"])
def test_bias_fuses_with_the_same_numbers(inputs):
    """It is the last input."""
    model, fired = apply_rule(FUSE_MATMUL_INTEGER_BIAS, biased(inputs=inputs), opset="21, com.microsoft 1")
    assert fired == 1
    assert operators(model) == ["MatMulIntegerToFloat"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"bias": "c: float[] = 1.0"}, "expected (3,)"),
        ({"bias": "", "fed": ", c: float[3]"}, "no match"),
        ({"inputs": "a, b, r, s, _, _, c"}, "no match"),
    ],
)
def test_declines_biases(given, reason):
    """One number, no constant, or a second one."""
    assert reason in declines(FUSE_MATMUL_INTEGER_BIAS, biased(**given), opset="21, com.microsoft 1")
