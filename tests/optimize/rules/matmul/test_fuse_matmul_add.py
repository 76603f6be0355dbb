"""Products and what is added to them."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.fuse_matmul_add import FUSE_MATMUL_ADD


def text(lines, inputs="x: float[m, 3]", outputs="y"):
    return f"""graph({inputs}, c: float[m, 4], v: float[3, 4]) -> ({outputs}) {{
        w: float[3, 4] = ... 1 b: float[4] = ... 2 r: float[1, 4] = ... 3 s: float[1] = ... 4 {lines} }}"""


@pytest.mark.parametrize("opset", ["7", "13", "21"])
@pytest.mark.parametrize(
    "lines",
    [
        "p = MatMul(x, w) y = Add(p, b)",
        "p = MatMul(x, w) y = Add(r, p)",
        "p = MatMul(x, w) y = Add(p, c)",
    ],
)
def test_matmul(lines, opset):
    """A row, or a whole matrix, on either side of the sum."""
    model, fired = apply_rule(FUSE_MATMUL_ADD, text(lines), opset=opset)
    assert fired == 1
    assert operators(model) == ["Gemm"]


@pytest.mark.parametrize(
    "lines",
    [
        "p = Gemm(x, v) y = Add(p, b)",
        "p = Gemm(x, w) {alpha = 0.5, beta = 2.0} y = Add(p, b)",
        "p = Gemm(x, v) y = Sum(p, c)",
        "p = Gemm(x, v) y = Sum(c, p)",
    ],
)
def test_gemm_without_c(lines):
    """What is added becomes C, as it is; both sides may be values of the run."""
    model, fired = apply_rule(FUSE_MATMUL_ADD, text(lines))
    assert fired == 1
    assert operators(model) == ["Gemm"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("p = MatMul(x, v) y = Add(p, b)", "no match"),
        ("p = MatMul(x, w) y = Add(p, s)", "what is added has shape (1,)"),
        ("p = MatMul(x, w) q = Add(p, b) y = Neg(q) z = Relu(p)", "no match"),
        ("p = Gemm(x, v, b) y = Add(p, r)", "no match"),
        ("l: float[1, 3] = ... 1 p = MatMul(l, w) y = Add(p, c)", "what is added has shape (m, 4)"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_MATMUL_ADD, text(lines, outputs="y, z" if "z =" in lines else "y"))


@pytest.mark.parametrize(
    ("inputs", "opset", "reason"),
    [
        ("x: float[n, m, 3]", "21", "expected matrices"),
        ("x: float[m, 3]", "6", "opset 6 adds"),
    ],
)
def test_declines_more_dimensions_and_old_opsets(inputs, opset, reason):
    """Gemm multiplies matrices only; before opset 7 an attribute says how Add broadcasts."""
    assert reason in declines(FUSE_MATMUL_ADD, text("p = MatMul(x, w) y = Add(p, c)", inputs), opset=opset)


def test_declines_integers():
    """Gemm of integers is no kernel's strength."""
    lines = "graph(x: int32[m, 3]) -> (y) { w: int32[3, 4] = ... 1 b: int32[4] = ... 2 p = MatMul(x, w) y = Add(p, b) }"
    assert "adds int32" in declines(FUSE_MATMUL_ADD, lines)
