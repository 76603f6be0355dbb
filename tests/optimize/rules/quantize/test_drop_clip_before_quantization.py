"""Limits that quantization sets anyway."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.drop_clip_before_quantization import (
    DROP_CLIP_BEFORE_QUANTIZATION,
    DROP_RELU_BEFORE_QUANTIZATION,
)


def text(call, kind="uint8", zero=0, outputs="y", more=""):
    return f"""graph(x: float[99], u: float[]) -> ({outputs}) {{ s: float[] = 0.01 z: {kind}[] = {zero}
        n: float[] = 0.0 h: float[] = 6.0 m: float[] = 1.0 a = {call} y = QuantizeLinear(a, s, z) {more} }}"""


@pytest.mark.parametrize(
    ("call", "kind", "zero"),
    [
        ("Clip(x, n, h)", "uint8", 0),
        ("Clip(x, n)", "uint8", 0),
        ("Clip(x, _, h)", "int8", 5),
        ("Clip(x)", "uint8", 128),
        ("Clip(x, n, h)", "int8", -128),
    ],
)
def test_clip_goes(call, kind, zero):
    """Its limits are at the ends of the range or beyond."""
    model, fired = apply_rule(DROP_CLIP_BEFORE_QUANTIZATION, text(call, kind, zero))
    assert fired == 1
    assert operators(model) == ["QuantizeLinear"]


@pytest.mark.parametrize(("kind", "zero"), [("uint8", 0), ("int8", -128)])
def test_relu_goes(kind, zero):
    """The least integer stands for 0."""
    model, fired = apply_rule(DROP_RELU_BEFORE_QUANTIZATION, text("Relu(x)", kind, zero))
    assert fired == 1
    assert operators(model) == ["QuantizeLinear"]


@pytest.mark.parametrize(
    ("call", "given", "reason"),
    [
        ("Clip(x, n, m)", {}, "within"),
        ("Clip(x, n, h)", {"zero": 9}, "within"),
        ("Clip(x, u, h)", {}, "no match"),
        ("Clip:6(x) {min = 0.0}", {}, "the limits are attributes"),
        ("Clip(x, n)", {"outputs": "y, w", "more": "w = Neg(a)"}, "no match"),
    ],
)
def test_clip_stays(call, given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(DROP_CLIP_BEFORE_QUANTIZATION, text(call, **given))


def test_relu_stays():
    """Integers below the zero point stand for negative numbers."""
    assert "within" in declines(DROP_RELU_BEFORE_QUANTIZATION, text("Relu(x)", "uint8", 3))
