"""Factors of products."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.fuse_matmul_multiply import FOLD_GEMM_SCALES, FUSE_MATMUL_MULTIPLY


def text(lines, inputs="x: float[m, 3]", outputs="y"):
    return f"""graph({inputs}, v: float[3, 4], u: float[4]) -> ({outputs}) {{ w: float[3, 4] = ... 1 t: float[4, 3] = ... 1
        b: float[4] = ... 2 k: float[4] = [1.5, -2.0, 0.5, 3.0] n: float[] = 0.25
        z: float[] = 0.0 f: float[1, 1, 1] = 2.0 {lines} }}"""


@pytest.mark.parametrize(
    ("lines", "inputs"),
    [
        ("p = MatMul(x, w) y = Mul(p, n)", "x: float[2, m, 3]"),
        ("p = MatMul(x, w) y = Div(p, k)", "x: float[2, m, 3]"),
        ("p = Gemm(x, w) y = Mul(k, p)", "x: float[m, 3]"),
        ("p = Gemm(x, t, b) {transB = 1, alpha = 0.5, beta = 3.0} y = Mul(p, k)", "x: float[m, 3]"),
        ("one: float[] = 1.0 p = Gemm(x, w, one) y = Mul(p, k)", "x: float[m, 3]"),
    ],
)
def test_fires_with_the_same_numbers(lines, inputs):
    """A number, or one for each column, of MatMul and of Gemm with all that it has."""
    model, fired = apply_rule(FUSE_MATMUL_MULTIPLY, text(lines, inputs))
    assert fired == 1
    assert operators(model) in (["MatMul"], ["Gemm"])


@pytest.mark.parametrize(
    "lines",
    [
        "y = Gemm(x, w) {alpha = 0.5}",
        "y = Gemm(x, w, b) {beta = 2.0}",
        "y = Gemm(x, t, b) {transB = 1, alpha = 3.0, beta = 2.0}",
        "c = Neg(b) y = Gemm(x, w, c) {alpha = 0.5}",
    ],
)
def test_alpha_and_beta(lines):
    """Constants take alpha and beta in."""
    model, fired = apply_rule(FOLD_GEMM_SCALES, text(lines))
    assert fired == 1
    node = list(model.graph)[-1]
    assert (node.get("alpha"), node.get("beta")) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("p = MatMul(x, v) y = Mul(p, n)", "no match"),
        ("p = MatMul(x, w) y = Mul(p, u)", "no match"),
        ("p = MatMul(x, w) y = Mul(p, f)", "the factor has shape (1, 1, 1)"),
        ("p = MatMul(x, w) y = Div(p, z)", "the factor is not finite"),
        ("p = MatMul(x, w) y = Mul(p, n) o = Neg(w)", "the weights have other users"),
        ("p = MatMul(x, w) y = Mul(p, n) o = Neg(p)", "no match"),
        ("p = Gemm(x, w, u) y = Mul(p, n)", "no match"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_MATMUL_MULTIPLY, text(lines, outputs="y, o" if "o =" in lines else "y"))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("y = Gemm(x, w, b)", "alpha and beta are 1"),
        ("y = Gemm(x, w) {beta = 2.0}", "alpha and beta are 1"),
        ("y = Gemm(x, w, b) {beta = 0.0}", "beta is 0"),
        ("c = Neg(b) y = Gemm(x, w, c) {alpha = 2.0, beta = 2.0}", "beta scales"),
        ("y = Gemm(x, v) {alpha = 2.0}", "no match"),
        ("y = Gemm(x, w) {alpha = 2.0} o = Neg(w)", "the weights have other users"),
    ],
)
def test_alpha_and_beta_stay(lines, reason):
    """Where there is nothing to fold, or no constant to fold it into."""
    assert reason in declines(FOLD_GEMM_SCALES, text(lines, outputs="y, o" if "o =" in lines else "y"))


def test_a_factor_stays_where_the_product_is_quantized():
    """It is the scale of sums of integers, which stay exact."""
    lines = "s: float[] = 1.0 p = MatMul(x, w) m = Mul(p, k) y = QuantizeLinear(m, s)"
    assert declines(FUSE_MATMUL_MULTIPLY, text(lines)) == "the product is quantized"
