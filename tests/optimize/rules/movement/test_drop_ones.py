"""Dimensions of 1 around a Reshape."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.drop_ones import DROP_ONES_AFTER_RESHAPE, DROP_ONES_BEFORE_RESHAPE

SYMBOLS = {"b": 2, "s": 5}
CONSTANTS = """one: int64[1] = [1] two: int64[1] = [2] last: int64[1] = [-1] three: int64[3] = [-1, 5, 8]
    zero: int64[3] = [0, -1, 8] odd: int64[2] = [1, 3] i: int64[2] = [0, 1] none: int64[1] = [0] eight: int64[1] = [8]"""


MOVED = "t = Transpose(u) {perm = [0, 3, 1, 2, 4]}"


def before(lines=f"{MOVED} y = Reshape(t, three)", axes="one", inputs="x: float[2, 5, 3, 8]"):
    return f"graph({inputs}) -> (y) {{ {CONSTANTS} u = Unsqueeze(x, {axes}) {lines} }}"


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (f"{MOVED} y = Reshape(t, three)", ["Transpose", "Reshape"]),
        ("t = Transpose(u) {perm = [0, 2, 1, 3, 4]} y = Reshape(t, three)", ["Reshape"]),
    ],
)
def test_before(lines, left):
    """The transpose moves what is left, or nothing."""
    model, fired = apply_rule(DROP_ONES_BEFORE_RESHAPE, before(lines), rtol=0)
    assert fired == 1
    assert operators(model) == left


def test_before_without_a_transpose():
    """A computed shape, which nothing else merges."""
    lines = "s = Shape(x) g = Gather(s, i) k = Concat(g, last) {axis = 0} y = Reshape(u, k)"
    model, fired = apply_rule(DROP_ONES_BEFORE_RESHAPE, before(lines), rtol=0)
    assert fired == 1
    assert operators(model) == ["Shape", "Gather", "Concat", "Reshape"]


def test_before_with_a_computed_shape():
    """A shape that is computed from other shapes copies no dimension."""
    lines = "s = Shape(u) g = Gather(s, i) k = Concat(g, last) {axis = 0} y = Reshape(t, k)"
    model, fired = apply_rule(DROP_ONES_BEFORE_RESHAPE, before(f"{MOVED} {lines}"), rtol=0)
    assert fired == 1
    assert operators(model)[-2:] == ["Transpose", "Reshape"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"lines": f"{MOVED} y = Reshape(t, zero)"}, "may copy a dimension"),
        ({"lines": f"{MOVED} k = Concat(none, last) {{axis = 0}} y = Reshape(t, k)"}, "may copy a dimension"),
        ({"lines": f"{MOVED} y = Reshape(t, f)", "inputs": "x: float[2, 5, 3, 8], f: int64[2]"}, "may copy a dimension"),
        ({"axes": "f", "inputs": "x: float[2, 5, 3, 8], f: int64[1]"}, "are not known"),
        ({"lines": "t = Transpose(u) y = Reshape(t, three)"}, "are not known"),
    ],
)
def test_before_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(DROP_ONES_BEFORE_RESHAPE, before(**options))


def after(shape="k = Concat(g, last, one) {axis = 0}", axes="last", inputs="x: float[b, s, 24]"):
    lines = f"s = Shape(x) g = Gather(s, i) {shape} r = Reshape(x, k) y = Squeeze(r, {axes})"
    return f"graph({inputs}) -> (y) {{ {CONSTANTS} {lines} }}"


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ("k = Concat(g, last, one) {axis = 0}", "last"),
        ("k = Concat(last, one, eight, one) {axis = 0}", "odd"),
    ],
)
def test_after(shape, axes):
    """The sizes that go are left out of the shape."""
    model, fired = apply_rule(DROP_ONES_AFTER_RESHAPE, after(shape, axes), symbols=SYMBOLS, rtol=0)
    assert fired == 1
    assert operators(model)[-2:] == ["Concat", "Reshape"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"shape": "k = Concat(none, last, one) {axis = 0}"}, "may copy a dimension"),
        ({"shape": "k = Concat(g, last, f) {axis = 0}", "inputs": "x: float[b, s, 24], f: int64[1]"}, "may copy a dimension"),
        ({"axes": "f", "inputs": "x: float[b, s, 24], f: int64[1]"}, "is not known"),
        ({"shape": "h = Div(g, two) k = Concat(h, last, one) {axis = 0}", "axes": "one"}, "not apart from those that stay"),
        ({"shape": "h = Gather(s, none) k = Concat(last, h, one) {axis = 0}", "axes": "one"}, "not known to be 1"),
    ],
)
def test_after_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(DROP_ONES_AFTER_RESHAPE, after(**options))
