"""Gemm of integers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_quantized_gemm import FUSE_QUANTIZED_GEMM, FUSE_QUANTIZED_GEMM_TO_FLOAT


def text(bias=True, turned=0, axis=1, quantized=True, attributes="", c_scale="[0.01, 0.02, 0.03]"):
    end = "q = QuantizeLinear(g, ys, yz) y = DequantizeLinear(q, ys, yz)" if quantized else "y = Neg(g)"
    shape = "3,5" if turned else "5,3"
    return f"""graph(x: uint8[2,5]) -> (y) {{ xs: float[] = 0.1 xz: uint8[] = 3
        w: int8[{shape}] = ... 7 ws: float[3] = [0.1, 0.2, 0.3]
        wz: int8[3] = [0, 0, 0] c: int32[3] = [10, -20, 30] cs: float[3] = {c_scale} cz: int32[3] = [0, 0, 0]
        ys: float[] = 0.1 yz: uint8[] = 128 xd = DequantizeLinear(x, xs, xz) wd = DequantizeLinear(w, ws, wz) {{axis = {axis}}}
        cd = DequantizeLinear(c, cs, cz) {{axis = 0}}
        g = Gemm(xd, wd{", cd" if bias else ""}) {{transB = {turned}{attributes}}} {end} }}"""


@pytest.mark.parametrize("given", [{}, {"bias": False}, {"turned": 1, "axis": 0}])
def test_quantized_product_agrees_within_a_step(given):
    """With and without bias, b as it is or transposed."""
    model, fired = apply_rule(FUSE_QUANTIZED_GEMM, text(**given), rtol=0.02)
    assert fired == 1
    assert operators(model)[-2:] == ["QGemm", "DequantizeLinear"]


@pytest.mark.parametrize("given", [{}, {"bias": False, "attributes": ", alpha = 2.0"}])
def test_float_product_has_the_same_numbers(given):
    """The sums are exact in both."""
    model, fired = apply_rule(FUSE_QUANTIZED_GEMM_TO_FLOAT, text(quantized=False, **given))
    assert fired == 1
    assert operators(model)[-2:] == ["QGemm", "Neg"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"axis": 0, "turned": 0}, "scales along axis 0"),
        ({"attributes": ", alpha = 2.0"}, "is scaled"),
        ({"attributes": ", beta = 2.0"}, "is scaled"),
        ({"c_scale": "[0.01, 0.01, 0.01]"}, "not in steps"),
        ({"quantized": False}, "no match"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    square = text(**given).replace("[5,3]", "[3,3]").replace("[2,5]", "[2,3]") if "turned" in given else text(**given)
    assert reason in declines(FUSE_QUANTIZED_GEMM, square)


def test_declines_what_is_quantized():
    """The other form takes it."""
    assert declines(FUSE_QUANTIZED_GEMM_TO_FLOAT, text()) == "the product is quantized"
