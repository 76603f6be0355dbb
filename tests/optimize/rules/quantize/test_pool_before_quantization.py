"""Pools of quantized numbers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.dtypes import DataType
from sardonyx.optimize.rules.quantize.pool_before_quantization import DEQUANTIZE_BEFORE_POOL, POOL_BEFORE_QUANTIZATION


def text(scale="float[] = 0.05", outputs="y", places="", more=""):
    return f"""graph(x: float[1,2,8,8]) -> ({outputs}) {{ s: {scale} z: uint8[] = 100
        a = QuantizeLinear(x, s{", z" if scale.startswith("float[]") else ""})
        y{places} = MaxPool(a) {{kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}} {more} }}"""


def test_fires_with_the_same_integers():
    """Rounding keeps the order."""
    model, fired = apply_rule(POOL_BEFORE_QUANTIZATION, text())
    assert fired == 1
    assert operators(model) == ["MaxPool", "QuantizeLinear"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"scale": "float[2] = [0.05, 0.1]"}, "no single scale"),
        ({"scale": "float[] = -0.05"}, "above 0"),
        ({"outputs": "y, i", "places": ", i"}, "no match"),
        ({"outputs": "y, v", "more": "v = Identity(a)"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(POOL_BEFORE_QUANTIZATION, text(**given))


def chain(scale="float[] = 0.05"):
    """A pool of a pool, both of which are read as numbers."""
    pool = "{kernel_shape = [3, 3], pads = [1, 1, 1, 1]}"
    zero = ", z" if scale.startswith("float[]") else ""
    return f"""graph(x: uint8[1,2,8,8]) -> (u, v) {{ s: {scale} z: uint8[] = 100 a = MaxPool(x) {pool} b = MaxPool(a) {pool}
        c = DequantizeLinear(a, s{zero}) d = DequantizeLinear(b, s{zero}) u = Neg(c) v = Neg(d) }}"""


def test_numbers_are_pooled_in_chains():
    """No pool of integers is left, and the numbers are the same."""
    model, fired = apply_rule(DEQUANTIZE_BEFORE_POOL, chain(), rtol=0)
    assert fired == 3
    assert {value.dtype for node in model.graph if node.op_type == "MaxPool" for value in node.inputs} == {DataType.FLOAT}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"scale": "float[2] = [0.05, 0.1]"}, "no single scale"),
        ({"scale": "float[] = -0.05"}, "above 0"),
    ],
)
def test_declines_to_dequantize(given, reason):
    """Each case that the second rule leaves alone."""
    assert reason in declines(DEQUANTIZE_BEFORE_POOL, chain(**given))
