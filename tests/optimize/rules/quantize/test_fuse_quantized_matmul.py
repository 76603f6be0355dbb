"""Products of integer matrices."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_quantized_matmul import FUSE_QUANTIZED_MATMUL, FUSE_QUANTIZED_MATMUL_TO_FLOAT


def text(columns=False, axis=1, quantized=True, a="2,5", b_zero=True):
    n, scales, zeros = ("3", "[0.1, 0.2, 0.3]", "[1, 2, 3]") if columns else ("", "0.1", "1")
    end = "q = QuantizeLinear(c, ys, yz) y = DequantizeLinear(q, ys, yz)" if quantized else "y = Neg(c)"
    return f"""graph(x: uint8[{a}]) -> (y) {{ xs: float[] = 0.1 xz: uint8[] = 3 w: int8[5,3] = ... 7 ws: float[{n}] = {scales}
        wz: int8[{n}] = {zeros} ys: float[] = 0.1 yz: uint8[] = 128 xd = DequantizeLinear(x, xs, xz)
        wd = DequantizeLinear(w, ws{", wz" if b_zero else ""}) {{axis = {axis}}} c = MatMul(xd, wd) {end} }}"""


@pytest.mark.parametrize("given", [{}, {"columns": True}, {"a": "4,2,5"}, {"b_zero": False}])
def test_quantized_product_agrees_within_a_step(given):
    """One scale for all or one per column; zero points may be left out."""
    model, fired = apply_rule(FUSE_QUANTIZED_MATMUL, text(**given), rtol=0.02)
    assert fired == 1
    assert operators(model) == ["QLinearMatMul", "DequantizeLinear"]


@pytest.mark.parametrize("given", [{}, {"columns": True}, {"a": "4,2,5"}, {"b_zero": False}])
def test_float_product_has_the_same_numbers(given):
    """The sums are exact in both."""
    model, fired = apply_rule(FUSE_QUANTIZED_MATMUL_TO_FLOAT, text(quantized=False, **given))
    assert fired == 1
    assert operators(model) == ["MatMulIntegerToFloat", "Neg"]


def test_declines():
    """Scales by row of b; a product that is quantized, or is not."""
    by_row = text(columns=True, axis=0, a="2,3").replace("int8[5,3]", "int8[3,3]")
    assert "those of columns" in declines(FUSE_QUANTIZED_MATMUL, by_row)
    assert declines(FUSE_QUANTIZED_MATMUL, text(quantized=False)) == "no match"
    assert declines(FUSE_QUANTIZED_MATMUL_TO_FLOAT, text()) == "the product is quantized"
