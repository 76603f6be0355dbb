"""Conversions to the type of another value."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.elementwise.expand_cast_like import EXPAND_CAST_LIKE


@pytest.mark.parametrize("kind", ["float", "int64", "bool", "float16"])
def test_fires_with_the_same_numbers(kind):
    """Whatever the type of the other value."""
    text = f"opset 21 graph(x: float[n, 3], t: {kind}[2]) -> (y) {{ y = CastLike(x, t) }}"
    model, fired = apply_rule(EXPAND_CAST_LIKE, text)
    assert fired == 1
    assert operators(model) == ["Cast"]


def test_keeps_its_attributes():
    """They say how float8 is rounded."""
    text = "opset 21 graph(x: float[n, 3], t: float8e4m3fn[2]) -> (y) { c = CastLike(x, t) {saturate = 0} y = Cast(c) {to = 1} }"
    model, fired = apply_rule(EXPAND_CAST_LIKE, text)
    assert fired == 1
    assert [node.integer("saturate", 1) for node in model.graph] == [0, 1]


def test_declines_an_unknown_type():
    """The target of a custom operator may be anything."""
    assert declines(EXPAND_CAST_LIKE, "opset 21, own 1 graph(x: float[n, 3]) -> (y) { t = own.Thing(x) y = CastLike(x, t) }")
