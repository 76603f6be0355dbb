"""Projections with packed weights as their parts."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.expand_nbits_projections import (
    EXPAND_NBITS_MLP,
    EXPAND_NBITS_MLP_SUM,
    EXPAND_NBITS_QKV,
    EXPAND_NBITS_QKV_SUM,
)

OPSET = "23, com.microsoft 1"
OPTIONS = "K = 32, bits = 4, block_size = 32, epsilon = 0.01"
MLP = f'{{{OPTIONS}, N = 4, activation = "silu"}}'
QKV = f"{{{OPTIONS}, Nq = 4, Nkv = 2}}"


def text(call, outputs="y", kind="float"):
    return f"""graph(x: {kind}[n, 3, 32], r: {kind}[n, 3, 32]) -> ({outputs}) {{ g: {kind}[32] = ... 1 a: uint8[4, 1, 16] = ... 2
        b: uint8[4, 1, 16] = ... 3 c: uint8[2, 1, 16] = ... 4 s: {kind}[4] = [0.1, 0.2, 0.3, 0.4] t: {kind}[2] = [0.1, 0.2]
        d: {kind}[4] = ... 5 {outputs} = com.microsoft.{call} }}"""


@pytest.mark.parametrize(
    ("rule", "call", "outputs", "made"),
    [
        (EXPAND_NBITS_MLP, f"MatMulNBitsMlp(x, _, _, a, s, _, b, s) {MLP}", "y", ["MatMulNBits", "Swish", "MatMulNBits", "Mul"]),
        (EXPAND_NBITS_MLP, f"MatMulNBitsMlp(x, _, g, a, s, d, b, s, d) {MLP}", "y", ["RMSNormalization"]),
        (EXPAND_NBITS_MLP, f"MatMulNBitsMlp(x, r, g, a, s, _, b, s) {MLP}", "y", ["Add", "RMSNormalization"]),
        (EXPAND_NBITS_MLP_SUM, f"MatMulNBitsMlp(x, r, g, a, s, _, b, s) {MLP}", "y, z", ["Add", "RMSNormalization"]),
        (EXPAND_NBITS_QKV, f"MatMulNBitsQkv(x, _, g, a, s, _, c, t, _, c, t) {QKV}", "q, k, v", ["RMSNormalization"]),
        (EXPAND_NBITS_QKV, f"MatMulNBitsQkv(x, r, g, a, s, d, c, t, _, c, t) {QKV}", "q, k, v", ["Add", "RMSNormalization"]),
        (EXPAND_NBITS_QKV_SUM, f"MatMulNBitsQkv(x, r, g, a, s, d, c, t, _, c, t) {QKV}", "q, k, v, z", ["Add", "RMSNormalization"]),
    ],
)
def test_fires_with_the_same_numbers(rule, call, outputs, made):
    """With and without biases, a residual, a normalization, and the sum."""
    model, fired = apply_rule(rule, text(call, outputs), opset=OPSET)
    assert fired == 1
    assert set(made) <= set(operators(model)) <= {"Add", "MatMulNBits", "Mul", "RMSNormalization", "Swish"}


@pytest.mark.parametrize(
    ("call", "outputs", "kind", "reason"),
    [
        ("MatMulNBitsMlp(x, _, g, a, s, _, b, s) " + MLP.replace("silu", "gelu"), "y", "float", "the activation is"),
        (f"MatMulNBitsMlp(x, _, g, a, s, _, b, s) {MLP}", "y", "float16", "another type than float"),
        (f"MatMulNBitsMlp(x, r, g, a, s, _, b, s) {MLP}", "y, z", "float", "no match"),
    ],
)
def test_declines(call, outputs, kind, reason):
    """Other activations, other types, a sum that is used."""
    assert reason in declines(EXPAND_NBITS_MLP, text(call, outputs, kind), opset=OPSET)
