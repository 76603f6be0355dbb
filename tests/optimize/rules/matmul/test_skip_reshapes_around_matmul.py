"""Products of tokens that are seen as rows of one matrix."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.skip_reshapes_around_matmul import SKIP_RESHAPES_AROUND_MATMUL

SYMBOLS = {"b": 2, "s": 3}


def text(product, outputs="y", back="[0, 5, 4]", x="b, 5, 6", more=""):
    return f"""graph(x: float[{x}], u: float[6, 4], f: float[s, 4]) -> ({outputs}) {{ r: int64[2] = [-1, 6] t: int64[3] = {back}
        k: int64[2] = [-1, 12] w: float[6, 4] = ... 1 v: float[4, 6] = ... 2 c: float[4] = ... 3 d: float[1, 4] = ... 4
        a = Reshape(x, r) p = {product} y = Reshape(p, t) {more} }}"""


@pytest.mark.parametrize(
    ("product", "left"),
    [
        ("Gemm(a, w)", ["MatMul"]),
        ("MatMul(a, w)", ["MatMul"]),
        ("Gemm(a, w, c)", ["MatMul", "Add"]),
        ("Gemm(a, v, d) {transB = 1}", ["MatMul", "Add"]),
    ],
)
def test_fires_with_the_same_numbers(product, left):
    """Gemm and MatMul, with or without what is added, the constant turned or not."""
    model, fired = apply_rule(SKIP_RESHAPES_AROUND_MATMUL, text(product, back="[-1, 5, 4]"), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model) == left


def test_first_reshape_with_other_users():
    """It stays for these, as where queries, keys and values are made of one matrix."""
    more = "q = Gemm(a, w, c) z = Reshape(q, t) o = Neg(a)"
    lines = text("Gemm(a, w, c)", "y, z, o", "[-1, 5, 4]", more=more)
    model, fired = apply_rule(SKIP_RESHAPES_AROUND_MATMUL, lines, symbols=SYMBOLS)
    assert fired == 2
    assert operators(model).count("Reshape") == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"product": "Gemm(a, u, c)"}, "no match"),
        ({"product": "Gemm(a, w, c) {alpha = 2.0}"}, "alpha or beta"),
        ({"product": "Gemm(a, w, c) {beta = 2.0}"}, "alpha or beta"),
        ({"product": "Gemm(a, w, c)", "back": "[5, -1, 4]"}, "which are not known to differ in the last dimension alone"),
        ({"product": "Gemm(a, w, c)", "x": "b, 5, 2, 3"}, "which are not known to differ"),
        ({"product": "Gemm(a, w, c)", "back": "[-1, 5, 4]", "outputs": "y, p"}, "no match"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    options = {"back": "[-1, 5, 4]"} | options
    assert reason in declines(SKIP_RESHAPES_AROUND_MATMUL, text(**options))


def test_declines_a_whole_matrix_that_is_added():
    """It would have to be reshaped as well."""
    lines = text("Gemm(a, w, f)", back="[-1, 5, 4]").replace("b, 5, 6", "1, 5, 6").replace("float[s, 4]", "float[5, 4]")
    assert "expected a row of 4" in declines(SKIP_RESHAPES_AROUND_MATMUL, lines)
