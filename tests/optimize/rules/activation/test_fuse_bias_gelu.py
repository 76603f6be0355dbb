"""Gelu of a sum."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.activation.fuse_bias_gelu import FUSE_BIAS_GELU

OPSET = "21, com.microsoft 1"


def text(total="Add(x, b)", attributes="", kind="float", result="y", bias="[4] = ... 1", shape="n, 3, 4"):
    return f"graph(x: {kind}[{shape}]) -> ({result}) {{ b: {kind}{bias} a = {total} y = Gelu(a) {attributes} }}"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, "BiasGelu"),
        ({"total": "Add(b, x)"}, "BiasGelu"),
        ({"attributes": '{approximate = "tanh"}'}, "FastGelu"),
    ],
)
def test_fires_with_the_same_numbers(given, made):
    """Exact and approximate."""
    model, fired = apply_rule(FUSE_BIAS_GELU, text(**given), opset=OPSET)
    assert fired == 1
    assert operators(model) == [made]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"bias": "[] = 1"}, "the bias is ()"),
        ({"bias": "[] = 1", "shape": ""}, "the bias is ()"),
        ({"bias": "[3, 4] = ... 1"}, "the bias is (3, 4)"),
        ({"result": "y, a"}, "no match"),
        ({"total": "Add(x, x)"}, "no match"),
        ({"kind": "double"}, "expected float or float16"),
    ],
)
def test_declines(given, reason):
    """Biases of other shapes, other users, no bias, other types."""
    assert reason in declines(FUSE_BIAS_GELU, text(**given), opset=OPSET)
