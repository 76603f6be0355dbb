"""Activations of products."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.fuse_gemm_activation import FUSE_GEMM_ACTIVATION

OPSET = "21, com.microsoft 1"


def text(activation, product="Gemm(a, b, c) {transB = 1, alpha = 0.5}", kind="float", result="y"):
    return f"""graph(a: {kind}[m, 3], b: {kind}[4, 3], c: {kind}[4]) -> ({result}) {{ p = {product} y = {activation} }}"""


@pytest.mark.parametrize(
    "activation", ["Relu(p)", "Sigmoid(p)", "Tanh(p)", "LeakyRelu(p) {alpha = 0.1}", "LeakyRelu(p)", "Softplus(p)", "Softsign(p)"]
)
@pytest.mark.parametrize("kind", ["float", "float16"])
def test_fires_with_the_same_numbers(activation, kind):
    """Each activation, in both types; attributes of the product stay."""
    model, fired = apply_rule(FUSE_GEMM_ACTIVATION, text(activation, kind=kind), opset=OPSET)
    assert fired == 1
    assert operators(model) == ["FusedGemm"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"activation": "Erf(p)"}, "no match"),
        ({"activation": "Relu(p)", "result": "y, p"}, "no match"),
        ({"activation": "Relu(p)", "kind": "double"}, "expected float or float16"),
    ],
)
def test_declines(given, reason):
    """Other activations, other users, other types."""
    assert reason in declines(FUSE_GEMM_ACTIVATION, text(**given), opset=OPSET)
