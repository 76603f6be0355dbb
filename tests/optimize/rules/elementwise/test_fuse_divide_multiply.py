"""Products with reciprocals."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.elementwise.fuse_divide_multiply import FUSE_DIVIDE_MULTIPLY


def text(lines, outputs="y", kind="float", shape="n, 5"):
    return f"graph(x: {kind}[{shape}], b: {kind}[n, 5]) -> ({outputs}) {{ one: {kind}[] = 1 r = Div(one, x) {lines} }}"


@pytest.mark.parametrize("lines", ["y = Mul(r, b)", "y = Mul(b, r)", "s = Reciprocal(x) y = Mul(s, b)"])
def test_fires_with_the_same_numbers(lines):
    """The reciprocal may be a Div of 1 or a Reciprocal, on either side."""
    model, fired = apply_rule(FUSE_DIVIDE_MULTIPLY, text(lines))
    assert fired == 1
    assert operators(model)[-1] == "Div"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"lines": "y = Mul(r, b)", "shape": "1, 5"}, "the divisor has shape (1, 5)"),
        ({"lines": "y = Mul(r, b) z = Neg(r)", "outputs": "y, z"}, "no match"),
        ({"lines": "y = Mul(r, b)", "kind": "int32"}, "opset 21 multiplies int32"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_DIVIDE_MULTIPLY, text(**options))
