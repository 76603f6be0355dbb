"""Activations of com.microsoft."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.activation.expand_gelus import EXPAND_GELUS


def text(call, kind="float"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[n, 5], b: {kind}[5]) -> (y) {{ y = com.microsoft.{call} }}"""


@pytest.mark.parametrize(
    ("call", "made"),
    [
        ("BiasGelu(x, b)", ["Add", "Gelu"]),
        ("Gelu(x)", ["Gelu"]),
        ("FastGelu(x)", ["Gelu"]),
        ("FastGelu(x, b)", ["Add", "Gelu"]),
        ("QuickGelu(x)", ["Swish"]),
        ("QuickGelu(x) {alpha = 1.5}", ["Swish"]),
    ],
)
def test_fires_with_the_same_numbers(call, made):
    """Each has its operator in ai.onnx."""
    model, fired = apply_rule(EXPAND_GELUS, text(call))
    assert fired == 1
    assert operators(model) == made
    assert all(not node.domain for node in model.graph)


def test_half():
    """The sum is rounded once more."""
    model, fired = apply_rule(EXPAND_GELUS, text("BiasGelu(x, b)", "float16"), rtol=2e-3)
    assert (fired, operators(model)) == (1, ["Add", "Gelu"])


def test_declines_double():
    """For which it is not defined everywhere."""
    assert "expected float or float16" in declines(EXPAND_GELUS, text("BiasGelu(x, b)", "double"))
