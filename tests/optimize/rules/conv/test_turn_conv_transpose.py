"""Transposed convolutions that do not spread their input."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.turn_conv_transpose import TURN_CONV_TRANSPOSE


def text(filters, attributes="", x="n, 6, 7, 8", kind="float", bias=""):
    operands = "x, w, b" if bias else "x, w"
    constants = f"w: {kind}[{filters}] = ... 1 {bias}"
    return f"opset 21 graph(x: {kind}[{x}]) -> (y) {{ {constants} y = ConvTranspose({operands}) {{{attributes}}} }}"


@pytest.mark.parametrize(
    ("filters", "attributes", "x"),
    [
        ("6, 4, 3, 3", "kernel_shape = [3, 3]", "n, 6, 7, 8"),
        ("6, 4, 3, 2", "pads = [1, 0, 2, 1]", "n, 6, 7, 8"),
        ("6, 1, 3, 3", "group = 6, pads = [1, 1, 1, 1]", "n, 6, 7, 8"),
        ("6, 2, 3, 3", "group = 3", "n, 6, 7, 8"),
        ("6, 4, 3, 3", "dilations = [2, 3], pads = [1, 2, 0, 3]", "n, 6, 7, 8"),
        ("6, 4, 1, 1", "strides = [1, 1]", "n, 6, 7, 8"),
        ("6, 4, 5", "group = 2", "n, 6, 9"),
        ("6, 2, 2, 3, 2", "", "n, 6, 3, 4, 5"),
    ],
)
@pytest.mark.parametrize("kind", ["float", "double"])
def test_fires_with_the_same_numbers(filters, attributes, x, kind):
    """Of any number of axes, groups, dilated and padded at either end."""
    model, fired = apply_rule(TURN_CONV_TRANSPOSE, text(filters, attributes, x, kind))
    assert fired == 1
    assert operators(model) == ["Conv"]


def test_keeps_the_bias():
    """Which is one number per channel of the result."""
    model, fired = apply_rule(TURN_CONV_TRANSPOSE, text("6, 4, 3, 3", bias="b: float[4] = ... 2"))
    assert (fired, operators(model)) == (1, ["Conv"])
    assert len(next(iter(model.graph)).inputs) == 3


@pytest.mark.parametrize(
    ("filters", "attributes", "reason"),
    [
        ("6, 4, 3, 3", "strides = [2, 1]", "a stride is not 1"),
        ("6, 4, 3, 3", "strides = [2, 2], output_padding = [1, 1]", "a stride is not 1"),
        ("6, 4, 3, 3", "output_shape = [9, 10]", "in another way than by pads"),
        ("6, 4, 3, 3", 'auto_pad = "SAME_UPPER"', "in another way than by pads"),
        ("6, 4, 3, 3", "pads = [3, 0, 0, 0]", "the pads cut the result"),
    ],
)
def test_declines(filters, attributes, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(TURN_CONV_TRANSPOSE, text(filters, attributes))


def test_declines_computed_filters():
    """They would be turned around in each run."""
    computed = "opset 21 graph(x: float[n, 6, 7, 8], w: float[6, 4, 3, 3]) -> (y) { y = ConvTranspose(x, w) }"
    assert "no match" in declines(TURN_CONV_TRANSPOSE, computed)
