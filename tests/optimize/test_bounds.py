"""Intervals of values."""

import math

import pytest
from support.optimizing import model_of

from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES

UNKNOWN = (-math.inf, math.inf)
LOWEST = -3.4028234663852886e38


def bounds(lines):
    text = f"""graph(x: float[n], m: bool[n], i: int64[n], j: int8[n], d: double[n]) -> (y) {{
        two: float[] = 2.0 three: float[3] = [-1.0, 0.0, 3.0] low: float[] = -3.4028234663852886e38 ninf: float[] = -inf
        one: float[] = 1.0 nan: float[] = nan big: double[] = 1e300 empty: float[0] = ... 0 shape: int64[1] = [-1] {lines} }}"""
    model = model_of(text)
    INFER_SHAPES.run(model, Context())
    return bounds_of(model.graph.outputs[0])


@pytest.mark.parametrize(
    ("lines", "interval"),
    [
        ("y = Identity(three)", (-1.0, 3.0)),
        ("y = Not(m)", (0.0, 1.0)),
        ("y = Where(m, two, low)", (LOWEST, 2.0)),
        ("y = Where(m, two, ninf)", (-math.inf, 2.0)),
        ("y = Cast(m) {to = 1}", (0.0, 1.0)),
        ("y = Cast(j) {to = 1}", (-128.0, 127.0)),
        ("c = Cast(m) {to = 1} s = Sub(one, c) y = Mul(s, low)", (LOWEST, 0.0)),
        ("c = Cast(m) {to = 1} y = Add(c, three)", (-1.0, 4.0)),
        ("r = Reshape(three, shape) y = Mul(r, r)", (-3.0, 9.0)),
        ("s = Shape(three) y = ConstantOfShape(s)", (0.0, 0.0)),
        ("y = Div(three, two)", (-0.5, 1.5)),
        ("y = Max(three, two)", (2.0, 3.0)),
        ("y = Shape(x)", (0.0, 2.0**63)),
    ],
)
def test_what_is_known(lines, interval):
    """Constants, types and arithmetic on them bound a value."""
    assert bounds(lines) == interval


@pytest.mark.parametrize(
    "lines",
    [
        "y = Neg(x)",
        "y = Add(x, two)",
        "y = Identity(nan)",
        "y = Identity(empty)",
        "c = Where(m, two, ninf) y = Sub(c, c)",
        "c = Where(m, one, ninf) e = Sub(one, one) y = Mul(c, e)",
        "y = Div(two, three)",
        "y = Max(x, two)",
        "y = Cast(d) {to = 1}",
    ],
)
def test_what_is_not_known(lines):
    """Inputs of float, NaN, and arithmetic that may make NaN, are in no bounds."""
    assert bounds(lines) == UNKNOWN


def test_overflow_is_infinite():
    """A result beyond the finite numbers of float32 is infinite; integers times the lowest number are."""
    assert bounds("c = Cast(i) {to = 1} y = Mul(c, low)") == UNKNOWN
    assert bounds("c = Cast(j) {to = 1} s = Mul(c, low) y = Where(m, s, two)") == UNKNOWN
    assert bounds("s = Add(low, low) y = Where(m, s, two)") == (-math.inf, 2.0)
    assert bounds("c = Where(m, big, big) y = Cast(c) {to = 1}") == (math.inf, math.inf)


def test_a_value_that_may_be_overridden_is_no_constant():
    """An input with a default may be anything."""
    model = model_of("graph(x: float[3]) -> (y) { c: float[3] = [1.0, 2.0, 1.5] y = Add(x, c) }")
    constant = model.graph.initializers["c"]
    assert bounds_of(constant) == (1.0, 2.0)
    assert bounds_of(constant, frozenset([constant])) == UNKNOWN
    assert bounds_of(None) == UNKNOWN
