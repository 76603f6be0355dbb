"""Activations of products of matrices."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.fuse_matmul_activation import FUSE_MATMUL_ACTIVATION

OPSET = "21, com.microsoft 1"


def text(activation="Relu(p)", product="MatMul(a, b)", kind="float", result="y"):
    return f"""graph(a: {kind}[2, n, 5], b: {kind}[5, 4], c: {kind}[4, 5]) -> ({result}) {{ p = {product} y = {activation} }}"""


@pytest.mark.parametrize(
    "activation",
    [
        "Relu(p)",
        "Sigmoid(p)",
        "Tanh(p)",
        "Softplus(p)",
        "Softsign(p)",
        "Elu(p) {alpha = 0.5}",
        "LeakyRelu(p) {alpha = 0.1}",
        "HardSigmoid(p) {alpha = 0.3}",
        "ThresholdedRelu(p) {alpha = 0.3}",
        "Softmax(p)",
        "Softmax(p) {axis = 2}",
    ],
)
@pytest.mark.parametrize("product", ["MatMul(a, b)", "com.microsoft.FusedMatMul(a, c) {transB = 1, alpha = 0.5}"])
def test_fires_with_the_same_numbers(activation, product):
    """Each activation, of both products."""
    model, fired = apply_rule(FUSE_MATMUL_ACTIVATION, text(activation, product), opset=OPSET)
    assert fired == 1
    assert operators(model) == ["FusedMatMulActivation"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"activation": "Softmax(p) {axis = 1}"}, "expected the last"),
        ({"activation": "Erf(p)"}, "no match"),
        ({"result": "y, p"}, "no match"),
        ({"kind": "double"}, "expected float"),
    ],
)
def test_declines(given, reason):
    """Another axis, other activations, other users, other types."""
    assert reason in declines(FUSE_MATMUL_ACTIVATION, text(**given), opset=OPSET)
