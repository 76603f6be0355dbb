"""Batch normalizations fold into products."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.fuse_matmul_batchnorm import FUSE_MATMUL_BATCHNORM

STATISTICS = """
    s: float[4] = [1.0, -0.5, 2.0, 0.1]
    t: float[4] = [0.0, 1.0, -1.0, 0.5]
    m: float[4] = [0.1, 0.2, -0.3, 0.0]
    v: float[4] = [1.0, 0.5, 2.0, 0.01]
    w: float[3, 4] = ... 1
    wt: float[4, 3] = ... 2
    b: float[4] = ... 3
    b2: float[1, 4] = ... 4
"""
NORMALIZED = "y = BatchNormalization(c, s, t, m, v)"


def text(lines, inputs="x: float[5, 3]", outputs="y"):
    return f"graph({inputs}) -> ({outputs}) {{ {STATISTICS} {lines} }}"


@pytest.mark.parametrize(
    "lines",
    [
        "c = Gemm(x, w)",
        "c = Gemm(x, w, b)",
        "c = Gemm(x, wt, b2) {transB = 1, alpha = 0.5, beta = 2.0}",
        "one: float[] = 3.0 c = Gemm(x, w, one) {beta = 0.0}",
    ],
)
def test_gemm(lines):
    """Gemm of any form absorbs the normalization."""
    model, fired = apply_rule(FUSE_MATMUL_BATCHNORM, text(f"{lines} {NORMALIZED}"))
    assert fired == 1
    assert operators(model) == ["Gemm"]


@pytest.mark.parametrize("lines", ["c = MatMul(x, w)", "p = MatMul(x, w) c = Add(p, b)", "p = MatMul(x, w) c = Add(b2, p)"])
def test_matmul(lines):
    """MatMul is left with one row to add."""
    model, fired = apply_rule(FUSE_MATMUL_BATCHNORM, text(f"{lines} {NORMALIZED}"))
    assert fired == 1
    assert operators(model) == ["MatMul", "Add"]


@pytest.mark.parametrize(
    ("lines", "inputs"),
    [
        ("p = MatMul(x, w) c = Transpose(p) {perm = [0, 2, 1]}", "x: float[2, 5, 3]"),
        ("p = MatMul(x, w) q = Add(p, b) c = Transpose(q) {perm = [0, 3, 1, 2]}", "x: float[2, 5, 6, 3]"),
    ],
)
def test_transposed(lines, inputs):
    """A transpose that makes the columns the channels stays behind the product."""
    model, fired = apply_rule(FUSE_MATMUL_BATCHNORM, text(f"{lines} {NORMALIZED}", inputs))
    assert fired == 1
    assert operators(model) == ["MatMul", "Add", "Transpose"]


@pytest.mark.parametrize("move", ["Reshape(p, n)", "Flatten(p) {axis = 2}"])
def test_reshaped_to_rows(move):
    """A reshape that makes the columns the second of two dimensions stays behind the product."""
    lines = f"n: int64[2] = [-1, 4] p = MatMul(x, w) c = {move} {NORMALIZED}"
    model, fired = apply_rule(FUSE_MATMUL_BATCHNORM, text(lines, "x: float[2, 5, 3]"))
    assert fired == 1
    assert operators(model)[:2] == ["MatMul", "Add"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("c = MatMul(x, w) y = BatchNormalization(c, s, t, m, v) {training_mode = 1} z = Relu(x)", "training mode"),
        (f"c = MatMul(x, w) {NORMALIZED} z = Relu(c)", "no match"),
        (f"c = MatMul(x, w) {NORMALIZED} z = Relu(w)", "the weights have other users"),
        (f"a = Relu(w) c = MatMul(x, a) {NORMALIZED} z = Relu(x)", "no match"),
        (f"full: float[5, 4] = ... c = Gemm(x, w, full) {NORMALIZED} z = Relu(x)", "what is added has shape (5, 4)"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_MATMUL_BATCHNORM, text(lines, outputs="y, z"))


@pytest.mark.parametrize("lines", ["c = MatMul(x, w)", "p = MatMul(x, w) c = Transpose(p) {perm = [1, 0, 2]}"])
def test_declines_columns_that_are_no_channels(lines):
    """Of three dimensions the second is normalized, not the last."""
    reason = declines(FUSE_MATMUL_BATCHNORM, text(f"{lines} {NORMALIZED}", "x: float[4, 4, 3]"))
    assert reason == "the columns of the product are not the channels"
