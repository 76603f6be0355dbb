"""A bias after a product with packed weights."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_nbits_bias import FUSE_NBITS_BIAS


def text(order="p, c", inputs="a, b, s", bias="float[4] = [1, 2, 3, 4]"):
    return f"""graph(a: float[2,32]) -> (y) {{ b: uint8[4,1,16] = ... 7
        s: float[4] = [0.1, 0.2, 0.3, 0.4] z: uint8[4] = [1, 2, 3, 4]
        c: {bias} p = com.microsoft.MatMulNBits({inputs}) {{K = 32, N = 4, bits = 4, block_size = 32}} y = Add({order}) }}"""


@pytest.mark.parametrize("given", [{}, {"order": "c, p"}, {"inputs": "a, b, s, z"}])
def test_fires_with_the_same_numbers(given):
    """With and without zero points."""
    model, fired = apply_rule(FUSE_NBITS_BIAS, text(**given), opset="21, com.microsoft 1")
    assert fired == 1
    assert operators(model) == ["MatMulNBits"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"bias": "float[] = 1.0"}, "expected float (4,)"),
        ({"inputs": "a, b, s, _, _, c"}, "no match"),
        ({"order": "p, p"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Another shape, a second bias, no constant."""
    assert reason in declines(FUSE_NBITS_BIAS, text(**given), opset="21, com.microsoft 1")
