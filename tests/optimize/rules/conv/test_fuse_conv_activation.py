"""Activations of convolutions."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.fuse_conv_activation import FUSE_CONV_ACTIVATION

OPSET = "21, com.microsoft 1"


def text(activation, conv="Conv(x, w, b) {pads = [1, 1, 1, 1]}", kind="float", result="y"):
    return f"""graph(x: {kind}[1, 3, 6, 6], z: {kind}[1, 4, 6, 6], o: {kind}[])
        -> ({result}) {{ w: {kind}[4, 3, 3, 3] = ... 1 b: {kind}[4] = ... 2
        low: {kind}[] = -0.25 high: {kind}[] = 0.5 c = {conv} y = {activation} }}"""


@pytest.mark.parametrize(
    "activation",
    [
        "Relu(c)",
        "Sigmoid(c)",
        "Tanh(c)",
        "LeakyRelu(c) {alpha = 0.1}",
        "HardSwish(c)",
        "HardSigmoid(c)",
        "Clip(c, low, high)",
        "Clip(c, low)",
        "Clip(c, _, high)",
    ],
)
@pytest.mark.parametrize("kind", ["float", "float16"])
def test_fires_with_the_same_numbers(activation, kind):
    """Each activation, in both types."""
    model, fired = apply_rule(FUSE_CONV_ACTIVATION, text(activation, kind=kind), opset=OPSET)
    assert fired == 1
    assert operators(model) == ["FusedConv"]


def test_a_convolution_that_adds():
    """What is added and how it is padded stay."""
    conv = "com.microsoft.FusedConv(x, w, b, z) {pads = [1, 1, 1, 1]}"
    model, fired = apply_rule(FUSE_CONV_ACTIVATION, text("Relu(c)", conv), opset=OPSET)
    node = next(iter(model.graph))
    assert (fired, node.get("pads"), node.get("activation")) == (1, (1, 1, 1, 1), "Relu")
    assert len(node.inputs) == 4


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"activation": "Elu(c)"}, "no match"),
        ({"activation": "Relu(c)", "result": "y, c"}, "no match"),
        ({"activation": "Relu(c)", "conv": 'com.microsoft.FusedConv(x, w) {activation = "Relu"}'}, "no match"),
        ({"activation": "Relu(c)", "kind": "double"}, "expected float or float16"),
        ({"activation": "Clip(c, low, o)"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Other activations, other users, one activation already, other types, limits that are no constants."""
    assert reason in declines(FUSE_CONV_ACTIVATION, text(**given), opset=OPSET)
