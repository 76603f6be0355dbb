"""Quantization by the range of a tensor."""

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.expand_dynamic_quantization import EXPAND_DYNAMIC_QUANTIZATION

TEXT = "graph(x: float[n, 5]) -> (y: uint8[n, 5], s: float[], z: uint8[]) { y, s, z = DynamicQuantizeLinear(x) }"


def test_fires_with_the_same_integers():
    """Scale and zero point are equal to the last bit."""
    model, fired = apply_rule(EXPAND_DYNAMIC_QUANTIZATION, TEXT)
    assert fired == 1
    assert "DynamicQuantizeLinear" not in operators(model)


@pytest.mark.parametrize(
    "numbers",
    [
        [0.0] * 5,
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [-5.0, -1.0, -2.0, -3.0, -1.5],
        [1e-3, -1e3, 7.0, 0.0, 1e3],
    ],
)
def test_ranges(numbers):
    """Of zeros, and on one side of zero."""
    model, _ = apply_rule(EXPAND_DYNAMIC_QUANTIZATION, TEXT, compare=False)
    y, scale, zero = evaluate_model(model, {"x": np.array([numbers], np.float32)})
    assert 0 <= int(zero) <= 255
    np.testing.assert_allclose((y.astype(np.float32) - zero) * scale, [numbers], atol=float(scale) / 2 * 1.001)


def test_declines_tensors_without_elements():
    """There is no least."""
    assert "has a 0" in declines(EXPAND_DYNAMIC_QUANTIZATION, TEXT.replace("n, 5", "0, 5"))


def test_other_types_are_cast_first():
    """Scale and zero point have their types whatever x has."""
    model, fired = apply_rule(EXPAND_DYNAMIC_QUANTIZATION, TEXT.replace("x: float[", "x: float16["))
    assert fired == 1
    assert "Cast" in operators(model)


def test_declines_narrow_scales():
    """The reference provider rounds a scale of float16 before it divides by it."""
    assert "float16" in declines(
        EXPAND_DYNAMIC_QUANTIZATION, TEXT.replace("x: float[", "x: float16[").replace("s: float[", "s: float16[")
    )
