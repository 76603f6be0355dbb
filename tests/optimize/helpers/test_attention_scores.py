"""Scores of attention, read from the argument of a softmax."""

import math

import pytest
from support.optimizing import model_of

from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.attention_scores import Added, Filling, Floor, Scores, joined, read_scores, scale_of
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES


def value_of(lines, name="x"):
    text = f"""graph(q: float[6, 5, 8], k: float[6, 8, 7], m: float[5, 7], s: bool[5, 7], g: float[1]) -> (y) {{
        two: float[] = 2.0 low: float[1, 1] = -inf wide: float[1, 1, 1, 1] = 3.0 {lines} y = Softmax(x) }}"""
    model = model_of(text)
    INFER_SHAPES.run(model, Context())
    return next(value for node in model.graph for value in node.outputs if value.name == name)


def scores(lines):
    return read_scores(value_of(lines), frozenset())


def test_scale_mask_and_operands():
    """A product, times and by numbers, with a mask that is added."""
    found = scores("p = MatMul(q, k) a = Mul(two, p) b = Div(a, two) c = Mul(b, two) x = Add(m, c)")
    assert isinstance(found, Scores)
    assert (found.query.name, found.keys.name, found.scale) == ("q", "k", 2.0)
    (mask,) = found.parts
    assert isinstance(mask, Added)
    assert (mask.value.name, mask.rank, mask.factor) == ("m", 3, 1.0)


@pytest.mark.parametrize(("where", "inverted"), [("Where(s, p, low)", True), ("Where(s, low, p)", False)])
def test_filled_scores(where, inverted):
    """Scores that are replaced where a condition holds, or where it does not."""
    found = scores(f"p = MatMul(q, k) x = {where}")
    assert found is not None
    (mask,) = found.parts
    assert isinstance(mask, Filling)
    assert (mask.condition.name, mask.fill, mask.inverted) == ("s", -math.inf, inverted)


def test_masks_in_order():
    """Any number of masks are read in the order in which they act; a scale after them is one of theirs too."""
    found = scores("p = MatMul(q, k) a = Add(p, m) f = Where(s, a, low) b = Add(m, f) r = Max(b, two) x = Mul(r, two)")
    assert found is not None
    first, second, third, floor = found.parts
    assert isinstance(first, Added)
    assert isinstance(second, Filling)
    assert isinstance(third, Added)
    assert (first.factor, third.factor, found.scale) == (2.0, 2.0, 2.0)
    assert floor == Floor(4.0)


def test_capped_scores():
    """A Tanh between two scales caps the scores; what it was scaled by before is part of the scale."""
    found = scores("p = MatMul(q, k) d = Div(p, two) t = Tanh(d) c = Mul(t, two) x = Add(c, m)")
    assert found is not None
    assert (found.scale, found.softcap, len(found.parts)) == (1.0, 2.0, 1)


def infer(text, name="x"):
    model = model_of(text)
    INFER_SHAPES.run(model, Context())
    return next(value for node in model.graph for value in node.outputs if value.name == name)


def test_a_scale_for_each_head():
    """A constant of one number for each head multiplies the product, before masks only."""
    text = """graph(q: float[b, 3, s, 8], k: float[b, 3, 8, t], m: float[s, t]) -> (y) {{
        h: float[3, 1, 1] = [1.0, 2.0, 3.0] w: float[3, 1, 1, 1] = ... 1 p = MatMul(q, k) {} y = Softmax(x) }}"""
    found = read_scores(infer(text.format("a = Mul(h, p) x = Add(a, m)")), frozenset())
    assert found is not None
    assert found.head_scale is not None
    assert found.head_scale.name == "h"
    for lines in ("a = Add(p, m) x = Mul(a, h)", "a = Mul(p, h) x = Mul(a, h)", "x = Div(p, h)", "x = Mul(p, w)"):
        assert read_scores(infer(text.format(lines)), frozenset()) is None


def test_reshapes_that_split_windows_are_looked_through():
    """The scores meet the mask of their window as five dimensions."""
    found = read_scores(
        infer("""graph(q: float[8, 3, 5, 4], k: float[8, 3, 4, 5], m: float[1, 4, 1, 5, 5]) -> (y) {
        f: int64[5] = [-1, 4, 3, 5, 5] g: int64[4] = [-1, 3, 5, 5] p = MatMul(q, k) r = Reshape(p, f) a = Add(r, m)
        x = Reshape(a, g) y = Softmax(x) }"""),
        frozenset(),
    )
    assert found is not None
    (mask,) = found.parts
    assert isinstance(mask, Added)
    assert mask.rank == 5


def test_masks_of_unknown_length():
    """How many keys there are the product says, whatever is known of the mask."""
    model = model_of("""graph(q: float[b, s, 8], k: float[b, 8, t], m: float[b, 1, u]) -> (y) {
        p = MatMul(q, k) x = Add(p, m) y = Softmax(x) }""")
    INFER_SHAPES.run(model, Context())
    found = read_scores(next(value for node in model.graph for value in node.outputs if value.name == "x"), frozenset())
    assert found is not None
    assert len(found.parts) == 1


def test_reshapes_that_split_heads_are_looked_through():
    """The scores meet the mask as four dimensions."""
    found = scores("""f: int64[4] = [2, 3, 5, 7] t: int64[3] = [6, 5, 7] p = MatMul(q, k) r = Reshape(p, f) a = Add(r, m)
        x = Reshape(a, t)""")
    assert found is not None
    (mask,) = found.parts
    assert isinstance(mask, Added)
    assert mask.rank == 4


@pytest.mark.parametrize(
    "lines",
    [
        "x = Neg(q)",
        "p = MatMul(q, k) x = Mul(p, g)",
        "p = MatMul(q, k) x = Div(two, p)",
        "p = MatMul(q, k) x = Mul(p, wide)",
        "p = MatMul(q, k) t = Tanh(p) x = Add(t, m)",
        "minus: float[] = -1.0 p = MatMul(q, k) a = Add(p, m) x = Mul(a, minus)",
        "p = MatMul(q, k) a = Add(p, m) t = Tanh(a) x = Mul(t, two)",
        "p = MatMul(q, k) x = Max(p, m)",
        "p = MatMul(q, k) x = Max(p)",
        "p = MatMul(q, k) t = Tanh(p) c = Mul(t, two) x = Mul(c, two)",
        "p = MatMul(q, k) x = Add(p, p)",
        "p = MatMul(q, k) x = Add(p, wide)",
        "p = MatMul(q, k) x = Where(s, p, m)",
        "p = MatMul(q, k) t: int64[3] = [5, 6, 7] x = Reshape(p, t)",
    ],
)
def test_what_is_no_score(lines):
    """Other operators, other users, scales that are no numbers, caps of masked scores, shapes that grow."""
    assert scores(lines) is None


@pytest.mark.parametrize(("line", "factor"), [("Mul(q, two)", 2.0), ("Mul(two, q)", 2.0), ("Div(q, two)", 0.5)])
def test_scale_of_an_operand(line, factor):
    """A value that is another times a number."""
    base, found = scale_of(value_of(f"x = {line}"), frozenset())
    assert (base.name, found) == ("q", factor)


@pytest.mark.parametrize("line", ["Div(two, q)", "Mul(q, g)", "Mul(q, wide)", "Add(q, two)"])
def test_scale_of_anything_else(line):
    """A value that is no such product is itself times 1."""
    value = value_of(f"x = {line}")
    assert scale_of(value, frozenset()) == (value, 1.0)


def test_joined():
    """Batch and heads are the first dimensions, in one or in two."""
    assert joined((6, 5, 8), (2, 3, 5, 8))
    assert joined((2, 3, 5, 8), (6, 5, 8))
    assert not joined((6, 5, 8), (2, 3, 8, 5))
    assert not joined((6, 5, 8), (6, 5, 8))
    assert not joined(None, (6, 5, 8))
