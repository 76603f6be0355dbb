"""Quantized operators in float."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.expand_quantized import EXPAND_QUANTIZED

CONSTANTS = """as: float[] = 0.05 az: uint8[] = 3 bs: float[] = 0.02 bz: uint8[] = 128 ys: float[] = 0.04 yz: uint8[] = 100
    w: int8[2,3,3,3] = ... 7 ws: float[2] = [0.05, 0.025] wz: int8[2] = [0, 0] c: int32[2] = [100, -400] one: float[] = 0.05
    m: int8[3,2] = ... 8 mt: int8[2,3] = ... 8 mz: int8[] = 1 f: float[2] = [0.5, 1.0]"""


def text(line, fed="a: uint8[1,3,6,6], b: uint8[1,3,6,6], k: bool[6], x: float[4,3], d: uint8[4,3]", float_result=False):
    end = "y = Neg(q)" if float_result else "y = DequantizeLinear(q, ys, yz)"
    return f"graph({fed}) -> (y) {{ {CONSTANTS} q = {line} {end} }}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("QLinearConv(a, as, az, w, ws, wz, ys, yz, c) {pads = [1, 1, 1, 1]}", "Conv"),
        ("QLinearConv(a, as, az, w, one, mz, ys, yz)", "Conv"),
        ("com.microsoft.QLinearConv(a, as, az, w, ws, wz, ys, yz, c)", "Conv"),
        ("QLinearMatMul(d, as, az, m, ws, wz, ys, yz)", "MatMul"),
        ("QLinearMatMul(d, as, az, m, one, mz, ys, yz)", "MatMul"),
        ("com.microsoft.QGemm(d, as, az, m, ws, wz, c, ys, yz)", "Gemm"),
        ("com.microsoft.QGemm(d, as, az, mt, ws, wz, c, ys, yz) {transB = 1, alpha = 0.5}", "Gemm"),
        ("com.microsoft.QLinearAdd(a, as, az, b, bs, bz, ys, yz)", "Add"),
        ("com.microsoft.QLinearMul(a, as, az, b, bs, bz, ys, yz)", "Add"),
        ("com.microsoft.QLinearMul(a, as, _, b, bs, bz, ys)", "Add"),
        ("com.microsoft.QLinearAveragePool(a, as, az, ys, yz) {kernel_shape = [2, 2]}", "AveragePool"),
        ("com.microsoft.QLinearGlobalAveragePool(a, as, az, ys, yz) {channels_last = 0}", "GlobalAveragePool"),
        ("com.microsoft.QLinearLeakyRelu(a, as, az, ys, yz) {alpha = 0.2}", "LeakyRelu"),
        ("com.microsoft.QLinearSigmoid(a, as, az, ys, yz)", "Sigmoid"),
        ("com.microsoft.QLinearSoftmax(a, as, az, ys, yz) {axis = 1, opset = 12}", "Softmax"),
        ("com.microsoft.QLinearSoftmax(a, as, az, ys, yz) {opset = 12}", "Softmax"),
        ("com.microsoft.QLinearConcat(ys, yz, a, as, az, b, bs, bz) {axis = 1}", "Concat"),
        ("com.microsoft.QLinearWhere(k, a, as, az, b, bs, bz, ys, yz)", "Where"),
    ],
)
def test_quantized_results_agree_within_a_step(line, expected):
    """Each operator is computed with the floats that its integers stand for."""
    model, fired = apply_rule(EXPAND_QUANTIZED, text(line), opset="21, com.microsoft 1", rtol=0.04)
    assert fired == 1
    assert expected in operators(model)
    assert operators(model)[-2:] == ["QuantizeLinear", "DequantizeLinear"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("com.microsoft.QGemm(d, as, az, m, ws, wz, c)", "Gemm"),
        ("com.microsoft.MatMulIntegerToFloat(d, m, as, ws, az, wz)", "MatMul"),
        ("com.microsoft.MatMulIntegerToFloat(d, m, as, one, _, mz, f)", "Add"),
        ("com.microsoft.DynamicQuantizeMatMul(x, m, ws, wz)", "MatMul"),
        ("com.microsoft.DynamicQuantizeMatMul(x, m, one, mz, f)", "Add"),
    ],
)
def test_float_results_have_the_same_numbers(line, expected):
    """But for the rounding of floats."""
    model, fired = apply_rule(EXPAND_QUANTIZED, text(line, float_result=True), opset="21, com.microsoft 1")
    assert fired == 1
    assert operators(model)[-2:] == [expected, "Neg"]


@pytest.mark.parametrize(
    ("line", "fed", "reason"),
    [
        ("com.microsoft.QLinearGlobalAveragePool(a, as, az, ys, yz) {channels_last = 1}", None, "the channels are last"),
        ("QLinearMatMul(d, r, t, m, one, mz, ys, yz)", "d: uint8[4,3], r: float[4], t: uint8[4]", "is not one scale"),
        ("QLinearConv(a, as, az, w, ws, wz, ys, yz, e)", "a: uint8[1,3,6,6], e: int32[2]", "no constants"),
        ("QLinearMatMul(d, as, az, n, ws, wz, ys, yz)", "d: uint8[2,4,3], n: int8[2,3,2]", "matrix's columns"),
    ],
)
def test_declines(line, fed, reason):
    """Each case that the rule leaves alone."""
    given = text(line) if fed is None else text(line, fed)
    assert reason in declines(EXPAND_QUANTIZED, given, opset="21, com.microsoft 1")


def test_products_are_the_same_to_the_last_bit():
    """They are rounded where the quantized operator rounds."""
    line = "com.microsoft.QLinearMul(a, as, az, b, bs, bz, ys, yz)"
    model, fired = apply_rule(EXPAND_QUANTIZED, text(line), opset="21, com.microsoft 1", rtol=0)
    assert fired == 1
    assert operators(model)[-2:] == ["QuantizeLinear", "DequantizeLinear"]


def test_scales_that_are_made_by_the_model():
    """Then products are of numbers."""
    line = "com.microsoft.QLinearMul(a, r, az, b, bs, bz, ys, yz)"
    fed = "a: uint8[1,3,6,6], b: uint8[1,3,6,6], r: float[]"
    model, fired = apply_rule(EXPAND_QUANTIZED, text(line, fed), opset="21, com.microsoft 1", compare=False)
    assert fired == 1
    assert operators(model)[:3] == ["DequantizeLinear", "DequantizeLinear", "Mul"]
