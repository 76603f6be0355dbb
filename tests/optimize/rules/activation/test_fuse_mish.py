"""Mish that is written out."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.activation.fuse_mish import FUSE_MISH


def text(lines, outputs="y"):
    return f"graph(x: float[batch, 5]) -> ({outputs}) {{ one: float[] = 1.0 {lines} }}"


@pytest.mark.parametrize(
    "lines",
    [
        "s = Softplus(x) t = Tanh(s) y = Mul(x, t)",
        "s = Softplus(x) t = Tanh(s) y = Mul(t, x)",
        "e = Exp(x) a = Add(e, one) s = Log(a) t = Tanh(s) y = Mul(x, t)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """Each form becomes Mish, read under the opset that brought it."""
    model, fired = apply_rule(FUSE_MISH, text(lines), opset="13")
    assert fired == 1
    assert operators(model) == ["Mish"]
    assert next(iter(model.graph)).version == 18


@pytest.mark.parametrize(
    ("lines", "outputs"),
    [
        ("s = Softplus(x) t = Tanh(s) y = Mul(x, t) z = Neg(s)", "y, z"),
        ("n = Neg(x) s = Softplus(n) t = Tanh(s) y = Mul(x, t)", "y"),
    ],
)
def test_declines(lines, outputs):
    """Values with other users, and another argument, are left alone."""
    assert declines(FUSE_MISH, text(lines, outputs)) == "no match"


def test_declines_an_unknown_shape():
    """Nothing is known of the result either."""
    lines = text("s = Softplus(x) t = Tanh(s) y = Mul(x, t)").replace("x: float[batch, 5]", "x: float")
    assert "the result is" in declines(FUSE_MISH, lines, infer=False)
