"""Gated layers with packed weights."""

import pytest
from support.optimizing import apply_pass, operators

from sardonyx.optimize.passes.fuse_nbits_mlp import FUSE_NBITS_MLP

OPSET = "24, com.microsoft 1"
OPTIONS = "{K = 32, N = 4, bits = 4, block_size = 32}"


def text(
    x="x = RMSNormalization(h, w) {epsilon = 0.01}",
    gate=f"MatMulNBits(x, a, s) {OPTIONS}",
    up=f"MatMulNBits(x, b, s) {OPTIONS}",
    activation="Swish(g)",
    product="Mul(e, u)",
    more="",
    result="y",
    kind="float",
):
    return f"""graph(h: {kind}[n, 3, 32], r: {kind}[n, 3, 32], o: uint8[4, 1, 16]) -> ({result}) {{ w: {kind}[32] = ... 1
        a: uint8[4, 1, 16] = ... 2 b: uint8[4, 1, 16] = ... 3 s: {kind}[4] = [0.1, 0.2, 0.3, 0.4] d: {kind}[4] = ... 5
        z: uint8[4] = ... 6 {x} g = com.microsoft.{gate} u = com.microsoft.{up}
        e = {activation} y = {product} {more} }}"""


RESIDUAL = "t = Add(h, r) x = RMSNormalization(t, w) {epsilon = 0.01}"
SKIP = "x, m, i, t = com.microsoft.SkipSimplifiedLayerNormalization(h, r, w) {epsilon = 0.01}"


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, ["MatMulNBitsMlp"]),
        ({"product": "Mul(u, e)"}, ["MatMulNBitsMlp"]),
        ({"x": RESIDUAL}, ["MatMulNBitsMlp"]),
        ({"x": RESIDUAL, "more": "v = Neg(t)", "result": "y, v"}, ["MatMulNBitsMlp", "Neg"]),
        ({"x": RESIDUAL, "result": "y, t"}, ["MatMulNBitsMlp"]),
        ({"x": "x = com.microsoft.SkipSimplifiedLayerNormalization(h, r, w)"}, ["MatMulNBitsMlp"]),
        ({"x": SKIP, "more": "v = Neg(t)", "result": "y, v"}, ["MatMulNBitsMlp", "Neg"]),
        ({"gate": f"MatMulNBits(x, a, s, _, _, d) {OPTIONS}"}, ["MatMulNBitsMlp"]),
        ({"activation": "com.microsoft.QuickGelu(g) {alpha = 1.0}"}, ["MatMulNBitsMlp"]),
        ({"x": "x = SimplifiedLayerNormalization(h, w)"}, ["MatMulNBitsMlp"]),
    ],
)
def test_fires_with_the_same_numbers(given, left):
    """A residual or none, whose sum others may read; biases; all ways to write the parts."""
    model, changed = apply_pass(FUSE_NBITS_MLP, text(**given), opset=OPSET, rtol=1e-5)
    assert changed
    assert operators(model) == left


@pytest.mark.parametrize(
    "given",
    [
        {"gate": f"MatMulNBits(x, a, s, z) {OPTIONS}"},
        {"gate": f"MatMulNBits(x, o, s) {OPTIONS}", "x": "x = Neg(h)"},
        {"up": f"MatMulNBits(h, b, s) {OPTIONS}"},
        {"activation": "Swish(g) {alpha = 1.5}"},
        {"activation": "Sigmoid(g)"},
        {"result": "y, g"},
        {"result": "y, x"},
        {"x": "x = RMSNormalization(h, w) {axis = 1}"},
        {"kind": "double"},
        {"x": "x = Neg(h)"},
        {"product": "Mul(e, e)"},
    ],
)
def test_declines(given):
    """Zero points, other inputs, other activations, other readers, other normalizations, other types."""
    assert not apply_pass(FUSE_NBITS_MLP, text(**given), opset=OPSET, compare=False)[1]
