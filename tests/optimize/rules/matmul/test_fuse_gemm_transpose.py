"""Transposed operands of Gemm."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.fuse_gemm_transpose import FUSE_GEMM_TRANSPOSE


@pytest.mark.parametrize(
    "lines",
    [
        "t = Transpose(a) {perm = [1, 0]} y = Gemm(t, b)",
        "t = Transpose(a) y = Gemm(t, b, c) {beta = 2.0}",
        "t = Transpose(d) y = Gemm(t, b, c) {transA = 1}",
        "t = Transpose(b) s = Transpose(a) y = Gemm(s, t, c) {transB = 1}",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """The transposes go, and transA and transB are turned round."""
    text = f"graph(a: float[4, 3], b: float[4, 5], c: float[5], d: float[3, 4]) -> (y) {{ {lines} }}"
    model, fired = apply_rule(FUSE_GEMM_TRANSPOSE, text)
    assert fired >= 1
    assert operators(model) == ["Gemm"]


def test_transpose_of_one_value_by_itself():
    """Where both operands are the same value, only the transposed one is turned."""
    model, fired = apply_rule(FUSE_GEMM_TRANSPOSE, "graph(a: float[4, 3]) -> (y) { t = Transpose(a) y = Gemm(t, a) }")
    assert fired == 1
    assert next(iter(model.graph)).get("transA") == 1


@pytest.mark.parametrize(
    "text",
    [
        "graph(a: float[4, 4], b: float[4, 5]) -> (y) { t = Transpose(a) {perm = [0, 1]} y = Gemm(t, b) }",
        "graph(a: float, b: float[4, 5]) -> (y) { t = Transpose(a) y = Gemm(t, b) }",
    ],
)
def test_declines(text):
    """A transpose that moves nothing, or of unknown rank, is left alone."""
    assert "does not exchange" in declines(FUSE_GEMM_TRANSPOSE, text)
