"""Two pairs of quantization in a row."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.merge_quantizations import MERGE_QUANTIZATIONS


def text(first=("uint8", 0.1, 128), second=("uint8", 0.1, 128), outputs="y", more=""):
    (t, s, z), (u, r, v) = first, second
    return f"""graph(x: float[99]) -> ({outputs}) {{ s: float[] = {s} z: {t}[] = {z} r: float[] = {r} v: {u}[] = {v}
        a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z)
        c = QuantizeLinear(b, r, v) y = DequantizeLinear(c, r, v) {more} }}"""


def test_equal_pairs_become_one_with_the_same_numbers():
    """The second changes nothing."""
    model, fired = apply_rule(MERGE_QUANTIZATIONS, text(), rtol=0)
    assert fired == 1
    assert operators(model) == ["QuantizeLinear", "DequantizeLinear"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"first": ("int8", 0.1, 0)}, "two scales, zero points or types"),
        ({"first": ("uint8", 0.02, 128)}, "two scales, zero points or types"),
        ({"first": ("uint8", 0.1, 100)}, "two scales, zero points or types"),
        ({"first": ("uint4", 0.1, 0)}, "the first pair has no one scale of 8 or 16 bits"),
        ({"first": ("uint8", 0.0, 0)}, "the first pair has no one scale"),
        ({"outputs": "y, w", "more": "w = Neg(b)"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Two types, scales or zero points, types below a byte, no scale, results that others read."""
    assert reason in declines(MERGE_QUANTIZATIONS, text(**given))
