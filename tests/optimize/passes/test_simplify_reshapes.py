"""Reshapes that copy symbolic dimensions get constant shapes."""

import pytest
from support.optimizing import apply_pass, operators

from sardonyx.optimize.passes.simplify_reshapes import SIMPLIFY_RESHAPES

HEAD = "z: int64[1] = [0] k: int64[1] = [1] s = Shape(x) b = Gather(s, z) t = Gather(s, k)"


def simplify(lines, inputs="x: float[batch, seq, 6]", head=HEAD, **options):
    return apply_pass(SIMPLIFY_RESHAPES, f"graph({inputs}) -> (y) {{ {head} {lines} }}", **options)


def test_copied_dimensions_become_zero():
    """Symbolic dimensions that stay in their place become 0, and what computed them goes."""
    model, changed = simplify("h: int64[2] = [2, 3] c = Concat(b, t, h) {axis = 0} y = Reshape(x, c)")
    assert changed
    assert operators(model) == ["Reshape"]
    (node,) = model.graph
    assert node.inputs[1].constant.numpy().tolist() == [0, 0, 2, 3]


def test_inferred_dimension_stays_inferred():
    """A -1 of the model stays, beside copied dimensions."""
    model, changed = simplify("h: int64[1] = [-1] c = Concat(b, h) {axis = 0} y = Reshape(x, c)")
    assert changed
    *_, node = model.graph
    assert node.inputs[1].constant.numpy().tolist() == [0, -1]


@pytest.mark.parametrize("more", ["", " {allowzero = 1}"])
def test_only_unknown_dimension_is_inferred(more):
    """One symbolic dimension beside sizes above 0 becomes -1, wherever it comes from."""
    lines = f"h: int64[2] = [3, 6] n: int64[1] = [3] d = Div(b, n) c = Concat(d, h) {{axis = 0}} y = Reshape(x, c){more}"
    model, changed = simplify(lines, "x: float[batch, 6]", "z: int64[1] = [0] s = Shape(x) b = Gather(s, z)", symbols={"batch": 9})
    assert changed
    *_, node = model.graph
    assert node.inputs[1].constant.numpy().tolist() == [-1, 3, 6]


@pytest.mark.parametrize(
    "lines",
    [
        "h: int64[1] = [6] c = Concat(t, b, h) {axis = 0} y = Reshape(x, c)",
        "m = Mul(b, t) h: int64[2] = [6, 0] c = Concat(m, h) {axis = 0} y = Reshape(x, c)",
        "h: int64[1] = [6] c = Concat(b, t, h) {axis = 0} y = Reshape(x, c) {allowzero = 1}",
        "y = Reshape(x, u)",
        "c: int64[1] = [-1] y = Reshape(x, c)",
    ],
)
def test_declines(lines):
    """A dimension that is not copied, allowzero, an unknown shape, and a shape that is constant already are left alone."""
    _, changed = simplify(lines, "x: float[batch, seq, 6], u: int64[2]", compare=False)
    assert not changed
