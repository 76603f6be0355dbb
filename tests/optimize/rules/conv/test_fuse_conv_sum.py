"""Sums of convolutions."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.fuse_conv_sum import FUSE_CONV_SUM

OPSET = "21, com.microsoft 1"


def text(total="Add(c, z)", z="1, 4, 6, 6", kind="float", result="y", conv="Conv(x, w, b) {pads = [1, 1, 1, 1]}"):
    return f"""graph(x: {kind}[1, 3, 6, 6], z: {kind}[{z}]) -> ({result}) {{ w: {kind}[4, 3, 3, 3] = ... 1 b: {kind}[4] = ... 2
        c = {conv} y = {total} }}"""


@pytest.mark.parametrize("given", [{}, {"total": "Add(z, c)"}, {"kind": "float16"}, {"conv": "Conv(x, w) {pads = [1, 1, 1, 1]}"}])
def test_fires_with_the_same_numbers(given):
    """Whatever comes first, with and without a bias."""
    model, fired = apply_rule(FUSE_CONV_SUM, text(**given), opset=OPSET)
    assert fired == 1
    assert operators(model) == ["FusedConv"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"z": "4, 1, 1"}, "expected (1, 4, 6, 6)"),
        ({"z": "n, 4, 6, 6"}, "expected (1, 4, 6, 6)"),
        ({"result": "y, c"}, "no match"),
        ({"kind": "double"}, "expected float or float16"),
        ({"total": "Mul(c, z)"}, "no match"),
    ],
)
def test_declines(given, reason):
    """What is broadcast, unknown sizes, other users, other types and operators."""
    assert reason in declines(FUSE_CONV_SUM, text(**given), opset=OPSET)
