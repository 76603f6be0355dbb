"""Queries, keys and values from packed weights."""

import pytest
from support.optimizing import apply_pass, operators

from sardonyx.optimize.passes.fuse_nbits_qkv import FUSE_NBITS_QKV

OPSET = "24, com.microsoft 1"
BLOCKS = "K = 32, bits = 4, block_size = 32"
QUERIES, KEYS, VALUES = ("MatMulNBits(x, a, s) {N = 4, %s}", "MatMulNBits(x, b, t) {N = 2, %s}", "MatMulNBits(x, c, t) {N = 2, %s}")


def text(x="x = RMSNormalization(h, w)", parts=(QUERIES, KEYS, VALUES), more="", result="", kind="float"):
    nodes = " ".join(f"y{place} = com.microsoft.{part % BLOCKS}" for place, part in enumerate(parts))
    return f"""graph(h: {kind}[n, 3, 32], r: {kind}[n, 3, 32], o: {kind}[32]) -> (y0, y1, y2 {result}) {{ w: {kind}[32] = ... 1
        a: uint8[4, 1, 16] = ... 2 b: uint8[2, 1, 16] = ... 3 c: uint8[2, 1, 16] = ... 4 s: {kind}[4] = [0.1, 0.2, 0.3, 0.4]
        t: {kind}[2] = [0.1, 0.2] z: uint8[2] = ... 6 d: {kind}[2] = ... 5 {x} {nodes} {more} }}"""


RESIDUAL = "m = Add(h, r) x = RMSNormalization(m, w)"


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ({}, (4, 2)),
        ({"parts": (KEYS, VALUES, QUERIES)}, (4, 2)),
        ({"parts": (KEYS, QUERIES, VALUES)}, (4, 2)),
        ({"parts": (KEYS, VALUES, KEYS)}, (2, 2)),
        ({"x": RESIDUAL}, (4, 2)),
        ({"x": RESIDUAL, "result": ", m"}, (4, 2)),
        ({"parts": (QUERIES, KEYS.replace("t)", "t, _, _, d)"), VALUES)}, (4, 2)),
    ],
)
def test_fires_with_the_same_numbers(given, sizes):
    """Products in any order; a residual, whose sum others may read; biases."""
    model, changed = apply_pass(FUSE_NBITS_QKV, text(**given), opset=OPSET, rtol=1e-5)
    assert changed
    assert operators(model) == ["MatMulNBitsQkv"]
    (node,) = model.graph
    assert (node.get("Nq"), node.get("Nkv")) == sizes


def test_what_reads_the_sum_first_comes_after():
    """The node stands where the sum stood."""
    model, _ = apply_pass(FUSE_NBITS_QKV, text(f"m = Add(h, r) e = Neg(m) {RESIDUAL[13:]}", result=", e"), opset=OPSET, rtol=1e-5)
    assert operators(model) == ["MatMulNBitsQkv", "Neg"]


@pytest.mark.parametrize(
    "given",
    [
        {"parts": (QUERIES, KEYS.replace("t)", "t, z)"), VALUES)},
        {"more": "e = Neg(x)", "result": ", e"},
        {"result": ", x"},
        {"parts": (QUERIES, KEYS.replace("x", "h"), VALUES)},
        {"x": "x = RMSNormalization(h, o) {axis = 1}"},
        {"x": "x = Neg(h)"},
        {"kind": "double"},
        {"x": "v = Abs(w) x = RMSNormalization(h, v)"},
        {"x": "x = LayerNormalization(h, w)"},
    ],
)
def test_declines(given):
    """Zero points, other readers and inputs, other normalizations, other types."""
    assert not apply_pass(FUSE_NBITS_QKV, text(**given), opset=OPSET, compare=False)[1]
