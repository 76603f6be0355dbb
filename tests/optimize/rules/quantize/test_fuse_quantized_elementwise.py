"""Sums, products, pools and activations of integers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_quantized_elementwise import FUSE_QUANTIZED_BINARY, FUSE_QUANTIZED_UNARY


def text(line, shape="1,2,6,6", kind="uint8", outputs="y", more=""):
    return f"""graph(a: uint8[{shape}], b: uint8[{shape}]) -> ({outputs}) {{ s: float[] = 0.05 z: uint8[] = 3 t: float[] = 0.02
        v: uint8[] = 128 r: float[] = 0.02 o: {kind}[] = 100 x = DequantizeLinear(a, s, z) w = DequantizeLinear(b, t, v)
        c = {line} q = QuantizeLinear(c, r, o) y = DequantizeLinear(q, r, o) {more} }}"""


@pytest.mark.parametrize("name", ["Add", "Mul"])
def test_binary_operators_agree_within_a_step(name):
    """Each becomes its quantized form."""
    model, fired = apply_rule(FUSE_QUANTIZED_BINARY, text(f"{name}(x, w)"), rtol=0.02)
    assert fired == 1
    assert operators(model) == [f"QLinear{name}", "DequantizeLinear"]


@pytest.mark.parametrize(
    "line",
    [
        "Sigmoid(x)",
        "LeakyRelu(x) {alpha = 0.2}",
        "Softmax(x) {axis = 1}",
        "Softmax(x)",
        "Softmax:11(x)",
        "GlobalAveragePool(x)",
        "AveragePool(x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1}",
    ],
)
def test_unary_operators_agree_within_a_step(line):
    """Each becomes its quantized form, with its attributes."""
    model, fired = apply_rule(FUSE_QUANTIZED_UNARY, text(line), rtol=0.02)
    assert fired == 1
    assert operators(model)[-2:] == ["QLinear" + line.split("(")[0].split(":")[0], "DequantizeLinear"]


@pytest.mark.parametrize(
    ("rule", "line", "given", "reason"),
    [
        (FUSE_QUANTIZED_BINARY, "Add(x, w)", {"kind": "int8"}, "of two types"),
        (FUSE_QUANTIZED_BINARY, "Sub(x, w)", {}, "no match"),
        (FUSE_QUANTIZED_BINARY, "Add(x, w)", {"outputs": "y, m", "more": "m = Neg(c)"}, "no match"),
        (FUSE_QUANTIZED_UNARY, "Sigmoid(x)", {"kind": "int16"}, "y is int16"),
        (FUSE_QUANTIZED_UNARY, "Sigmoid(x)", {"kind": "int8"}, "of two types"),
        (FUSE_QUANTIZED_UNARY, "AveragePool(x) {kernel_shape = [2, 2], dilations = [2, 2]}", {}, "dilations"),
    ],
)
def test_declines(rule, line, given, reason):
    """Each case that the rules leave alone."""
    assert reason in declines(rule, text(line, **given))
