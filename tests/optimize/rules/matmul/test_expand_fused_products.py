"""Convolutions and products of com.microsoft."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.expand_fused_products import EXPAND_FUSED_PRODUCTS, EXPAND_TRANSPOSE_MATMUL


def text(call, kind="float"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[1, 3, 6, 6], z: {kind}[1, 4, 4, 4], a: {kind}[5, 3], b: {kind}[3, 4], t: {kind}[3, 5], s: {kind}[2, 3, 5],
        v: {kind}[3]) -> (y) {{ w: {kind}[4, 3, 3, 3] = ... 1 c: {kind}[4] = ... 2 y = com.microsoft.{call} }}"""


@pytest.mark.parametrize(
    ("call", "made"),
    [
        ("FusedConv(x, w)", ["Conv"]),
        ('FusedConv(x, w, c) {activation = "Relu"}', ["Conv", "Relu"]),
        ('FusedConv(x, w, c, z) {activation = "Relu", kernel_shape = [3, 3]}', ["Conv", "Add", "Relu"]),
        ('FusedConv(x, w, _, z) {activation = "LeakyRelu", activation_params = [0.25]}', ["Conv", "Add", "LeakyRelu"]),
        ('FusedConv(x, w, c) {activation = "Clip", activation_params = [0.0, 0.5]}', ["Conv", "Clip"]),
        ('FusedConv(x, w, c) {activation = "HardSigmoid", activation_params = [0.1, 0.4]}', ["Conv", "HardSigmoid"]),
        ('FusedGemm(a, b, c) {activation = "Tanh", alpha = 0.5}', ["Gemm", "Tanh"]),
        ('FusedGemm(t, b) {activation = "LeakyRelu", activation_alpha = 0.5, transA = 1}', ["Gemm", "LeakyRelu"]),
        ("FusedMatMul(a, b)", ["MatMul"]),
        ("FusedMatMul(t, b) {transA = 1, alpha = 0.5}", ["Transpose", "MatMul", "Mul"]),
        ("FusedMatMul(b, s) {transA = 1}", ["Transpose", "MatMul"]),
        ('FusedMatMulActivation(t, b) {transA = 1, alpha = 0.5, activation = "Relu"}', ["Transpose", "MatMul", "Mul", "Relu"]),
        ('FusedMatMulActivation(a, b) {activation = "Softmax", activation_axis = 0}', ["MatMul", "Softmax"]),
    ],
)
def test_fires_with_the_same_numbers(call, made):
    """Each with what it takes besides."""
    model, fired = apply_rule(EXPAND_FUSED_PRODUCTS, text(call))
    assert fired == 1
    assert operators(model) == made
    assert all(not node.domain for node in model.graph)


@pytest.mark.parametrize(
    "call",
    [
        'FusedConv(x, w, c) {activation = "Clip", activation_params = [0.0, 3.4e38]}',
        "FusedMatMul(t, b) {transA = 1, alpha = 0.5}",
    ],
)
def test_half(call):
    """Numbers of its own are as large as the type has them."""
    _, fired = apply_rule(EXPAND_FUSED_PRODUCTS, text(call, "float16"), rtol=4e-3)
    assert fired == 1


@pytest.mark.parametrize(
    ("call", "kind", "reason"),
    [
        ('FusedConv(x, w, c) {activation = "Selu"}', "float", "the activation is 'Selu'"),
        ('FusedConv(x, w, c) {activation = "Clip"}', "float", "the activation is 'Clip'"),
        ("FusedMatMul(v, b) {transA = 1}", "float", "a vector"),
        ('FusedMatMulActivation(a, b) {activation = "Selu"}', "float", "the activation is 'Selu'"),
        ("FusedMatMul(s, s) {transBatchA = 1}", "float", "no match"),
        ("FusedConv(x, w)", "double", "expected float or float16"),
    ],
)
def test_declines(call, kind, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_FUSED_PRODUCTS, text(call, kind), infer="transBatch" not in call)


def test_transposed_sides():
    """The older name of FusedMatMul."""
    text = """opset 21, com.microsoft 1
        graph(x: float[n, 3], z: float[4, 3]) -> (y) { y = com.microsoft.TransposeMatMul(x, z) {transB = 1, alpha = 0.5} }"""
    model, fired = apply_rule(EXPAND_TRANSPOSE_MATMUL, text)
    assert (fired, operators(model)) == (1, ["Transpose", "MatMul", "Mul"])
