"""Quantization that nothing computes with."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.drop_quantization_pairs import DROP_QUANTIZATION_PAIRS


def text(scales="s, z", kind="float"):
    return f"""graph(x: {kind}[9]) -> (y: {kind}[9]) {{ s: {kind}[] = 0.01 z: uint8[] = 128 t: {kind}[] = 0.02
        a = QuantizeLinear(x, s, z) y = DequantizeLinear(a, {scales}) }}"""


def test_fires_and_agrees_within_a_step():
    """Numbers within the range are no longer rounded."""
    model, fired = apply_rule(DROP_QUANTIZATION_PAIRS, text(), rtol=0.6)
    assert fired == 1
    assert operators(model) == ["Identity"]


@pytest.mark.parametrize("given", [{"scales": "t, z"}, {"scales": "s"}, {"kind": "float16"}])
def test_declines(given):
    """Other scales or zero points."""
    assert "differ" in declines(DROP_QUANTIZATION_PAIRS, text(**given))
