"""Concatenation of integers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_quantized_concat import FUSE_QUANTIZED_CONCAT


def text(parts="x, w, x", kind="uint8", other="uint8"):
    return f"""graph(a: uint8[2,3], b: {other}[2,4], f: float[2,3]) -> (y) {{ s: float[] = 0.05 z: uint8[] = 3 t: float[] = 0.02
        v: {other}[] = 12 r: float[] = 0.03 o: {kind}[] = 10 x = DequantizeLinear(a, s, z) w = DequantizeLinear(b, t, v)
        c = Concat({parts}) {{axis = 1}} y = QuantizeLinear(c, r, o) }}"""


def test_fires_with_the_same_integers():
    """Each part is brought to the scale of the result."""
    model, fired = apply_rule(FUSE_QUANTIZED_CONCAT, text())
    assert fired == 1
    assert operators(model) == ["QLinearConcat"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"parts": "x, f"}, "a part is not dequantized"),
        ({"kind": "int8"}, "of another type"),
        ({"other": "int8"}, "of another type"),
        ({"kind": "int16"}, "y is int16"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_QUANTIZED_CONCAT, text(**given))
