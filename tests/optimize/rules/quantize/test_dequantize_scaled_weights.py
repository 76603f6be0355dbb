"""Weights that are cast and scaled."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.dequantize_scaled_weights import DEQUANTIZE_SCALED_WEIGHTS


def text(scale="s: float[] = 0.02", zero="", kind="int8", shape="6,4"):
    middle = "d = Sub(c, z) m = Mul(d, s)" if zero else "m = Mul(c, s)"
    return f"graph(x: float[3,6]) -> (y) {{ w: {kind}[{shape}] = ... 1 {scale} {zero} c = Cast(w) {{to = 1}} {middle} y = MatMul(x, m) }}"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"scale": "s: float[4] = ... 2"},
        {"scale": "s: float[1,4] = ... 2"},
        {"scale": "s: float[6,1] = ... 2"},
        {"kind": "uint8", "zero": "z: float[] = 128.0"},
        {"kind": "uint8", "scale": "s: float[4] = ... 2", "zero": "z: float[] = 128.0"},
        {"scale": "s: float[4] = ... 2", "zero": "z: float[1,4] = [[1.0, -2.0, 3.0, 100.0]]"},
    ],
)
def test_fires_with_the_same_numbers(given):
    """By one scale, by column and by row; with zero points."""
    model, fired = apply_rule(DEQUANTIZE_SCALED_WEIGHTS, text(**given), rtol=0)
    assert fired == 1
    assert operators(model) == ["DequantizeLinear", "MatMul"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "int16"}, "no constants of 8 bits"),
        ({"scale": "s: float[6,4] = ... 2"}, "go by no axis"),
        ({"scale": "s: float[2,1,1] = ... 2"}, "go by no axis"),
        ({"zero": "z: float[] = 0.5"}, "not all integers from -128 to 127"),
        ({"zero": "z: float[] = 200.0"}, "not all integers from -128 to 127"),
        ({"zero": "z: float[6,1] = ... 3", "scale": "s: float[4] = ... 2"}, "go otherwise than scales"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(DEQUANTIZE_SCALED_WEIGHTS, text(**given))
