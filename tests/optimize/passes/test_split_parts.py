"""Parts of a value that become one Split."""

import pytest
from support.optimizing import apply_pass, operators

from sardonyx.optimize.passes.split_parts import SPLIT_PARTS

CONSTANTS = """zero: int64[1] = [0] one: int64[1] = [1] two: int64[1] = [2] three: int64[1] = [3] five: int64[1] = [5]
    far: int64[1] = [999] back: int64[1] = [-3] i: int64[] = 0 j: int64[] = 1 l: int64[] = -1"""


def text(lines, outputs="a, b", shape="n, 5"):
    return f"graph(x: float[{shape}]) -> ({outputs}) {{ {CONSTANTS} {lines} }}"


@pytest.mark.parametrize("opset", ["11", "13", "21"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Slice(x, zero, two, one)", "Slice(x, two, far, one)"),
        ("Slice(x, zero, back, one)", "Slice(x, back, five, one, one)"),
    ],
)
def test_slices(first, second, opset):
    """Slices that lie one behind the other and are all of an axis, in any order of the nodes."""
    for lines in (f"a = {first} b = {second}", f"b = {second} a = {first}"):
        model, changed = apply_pass(SPLIT_PARTS, text(lines), opset=opset)
        assert changed
        assert operators(model) == ["Split"]


def test_slices_of_old_opsets():
    """Limits may be attributes."""
    lines = "a = Slice(x) {axes = [1], starts = [0], ends = [2]} b = Slice(x) {axes = [1], starts = [2], ends = [9]}"
    model, _ = apply_pass(SPLIT_PARTS, text(lines), opset="9")
    assert operators(model) == ["Split"]


@pytest.mark.parametrize("opset", ["11", "21"])
def test_elements(opset):
    """Elements that Gather takes lose their axis by Squeeze; an index of one dimension keeps it."""
    lines = "t = Transpose(x) a = Gather(t, i) {axis = 1} b = Gather(t, j) {axis = 1} c = Gather(t, two) {axis = 1}"
    model, _ = apply_pass(SPLIT_PARTS, text(lines, "a, b, c", "n, 3, 2"), opset=opset)
    assert operators(model) == ["Transpose", "Split", "Squeeze", "Squeeze"]


def test_elements_of_a_reshaped_value():
    """Queries, keys and values that lie beside each other for each head."""
    lines = "a = Gather(r, i) {axis = 1} b = Gather(r, j) {axis = 1} c = Gather(r, l) {axis = 1}"
    model, _ = apply_pass(SPLIT_PARTS, text(f"s: int64[3] = [0, 3, 2] r = Reshape(x, s) {lines}", "a, b, c", "n, 6"))
    assert operators(model) == ["Reshape", "Split", "Squeeze", "Squeeze", "Squeeze"]


def test_other_users_stay():
    """What else reads the value still does, also parts along another axis."""
    lines = "t = Transpose(x) a = Gather(t, i) {axis = 1} b = Gather(t, l) {axis = 1} c = Neg(t) d = Slice(t, zero, one, zero)"
    model, _ = apply_pass(SPLIT_PARTS, text(lines, "a, b, c, d", "2, 4"))
    assert sorted(operators(model)) == ["Neg", "Slice", "Split", "Squeeze", "Squeeze", "Transpose"]


@pytest.mark.parametrize(
    ("lines", "shape"),
    [
        ("a = Slice(x, zero, two, one) b = Slice(x, three, far, one)", "n, 5"),
        ("a = Slice(x, zero, three, one) b = Slice(x, two, far, one)", "n, 5"),
        ("a = Slice(x, zero, two, one) b = Slice(x, two, three, one)", "n, 5"),
        ("a = Slice(x, zero, two, one) b = Slice(x, two, far, one)", "n, m"),
        ("a = Slice(x, zero, far, one, two) b = Slice(x, one, far, one, two)", "n, 5"),
        ("a = Slice(x, zero, two, one) b = Neg(x)", "n, 5"),
        ("s = Identity(two) a = Slice(x, zero, s, one) b = Slice(x, s, far, one)", "n, 5"),
        ("t = Transpose(x) a = Gather(t, i) {axis = 1} b = Gather(t, j) {axis = 0}", "2, 2"),
        ("a = Gather(x, i) {axis = 1} b = Gather(x, j) {axis = 1}", "n, 2"),
    ],
)
def test_left_alone(lines, shape):
    """Gaps, overlaps, unknown sizes, steps, single parts, limits that are computed, different axes."""
    _, changed = apply_pass(SPLIT_PARTS, text(lines, shape=shape), symbols={"n": 3, "m": 5})
    assert not changed
