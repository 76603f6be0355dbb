"""Swishes that are written out."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.activation.fuse_swish import FUSE_SWISH


def text(lines, outputs="y"):
    return f"graph(x: float[batch, 5]) -> ({outputs}) {{ {lines} }}"


@pytest.mark.parametrize("lines", ["s = Sigmoid(x) y = Mul(x, s)", "s = Sigmoid(x) y = Mul(s, x)"])
def test_fires_with_the_same_numbers(lines):
    """The factors in either order become Swish, read under the opset that brought it."""
    model, fired = apply_rule(FUSE_SWISH, text(lines), opset="18")
    assert fired == 1
    assert operators(model) == ["Swish"]
    assert next(iter(model.graph)).version == 24


@pytest.mark.parametrize(
    ("lines", "alpha"),
    [
        ("a: float[] = 1.702 m = Mul(a, x) s = Sigmoid(m) y = Mul(x, s)", 1.702),
        ("a: float[1] = -2.0 m = Mul(x, a) s = Sigmoid(m) y = Mul(s, x)", -2.0),
        ("one: float[] = 1.0 n = Neg(x) e = Exp(n) a = Add(one, e) y = Div(x, a)", None),
    ],
)
def test_other_forms(lines, alpha):
    """A scaled argument becomes alpha; the sigmoid may be written out."""
    model, fired = apply_rule(FUSE_SWISH, text(lines))
    assert fired == 1
    assert operators(model) == ["Swish"]
    assert next(iter(model.graph)).get("alpha") == (None if alpha is None else pytest.approx(alpha))


def test_declines_an_alpha_for_each_element():
    """Swish has one number."""
    lines = "a: float[5] = ... 1 m = Mul(a, x) s = Sigmoid(m) y = Mul(x, s)"
    assert declines(FUSE_SWISH, text(lines)) == "alpha is not one number"


@pytest.mark.parametrize(
    ("lines", "outputs"),
    [
        ("s = Sigmoid(x) y = Mul(x, s) w = Neg(s)", "y, w"),
        ("a = Neg(x) s = Sigmoid(a) y = Mul(x, s)", "y"),
        ("s = Sigmoid(x) y = Add(x, s)", "y"),
    ],
)
def test_declines(lines, outputs):
    """A sigmoid with other users, or of something else, is left alone."""
    assert "no match" in declines(FUSE_SWISH, text(lines, outputs))


def test_declines_an_unknown_shape():
    """Nothing is known of the result either."""
    body = text("s = Sigmoid(x) y = Mul(x, s)").replace("x: float[batch, 5]", "x: float")
    assert "the result is" in declines(FUSE_SWISH, body, infer=False)
