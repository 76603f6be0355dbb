"""Reshapes of reshapes."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.merge_reshapes import MERGE_RESHAPES


@pytest.mark.parametrize(
    "inner",
    [
        "s: int64[2] = [6, 4] a = Reshape(x, s)",
        "a = Flatten(x)",
        "n: int64[1] = [1] a = Unsqueeze(x, n)",
        "a = Squeeze(x)",
        "n: int64[1] = [1] a = Squeeze(x, n)",
    ],
)
def test_fires_with_the_same_numbers(inner):
    """What only changes the shape before a Reshape is skipped."""
    text = f"graph(x: float[3, 1, 8]) -> (y) {{ {inner} t: int64[2] = [4, -1] y = Reshape(a, t) }}"
    model, fired = apply_rule(MERGE_RESHAPES, text)
    assert fired == 1
    assert operators(model) == ["Reshape"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("graph(x: float[2, 3], t: int64[1]) -> (y) { a = Flatten(x) y = Reshape(a, t) }", "the shape is no constant"),
        ("graph(x: float[2, 1, 3]) -> (y) { t: int64[2] = [0, 3] a = Flatten(x) y = Reshape(a, t) }", "copies a dimension"),
        ("graph(x: float[2, 3]) -> (y) { a = Flatten(x) y = Reshape:1(a) {shape = [3, 2]} }", "no match"),
    ],
)
def test_declines(text, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(MERGE_RESHAPES, text)


def test_a_reshape_back_to_what_it_was():
    """Where the result has the shape that the first value has, both go, whatever computed the shapes."""
    text = """graph(x: float[2, s, 3]) -> (y) { f: int64[1] = [-1] a = Reshape(x, f) t = Shape(x) b = Reshape(a, t) y = Neg(b) }"""
    model, fired = apply_rule(MERGE_RESHAPES, text, symbols={"s": 4})
    assert fired == 1
    assert operators(model) == ["Neg"]


def test_a_computed_shape_copies_nothing_with_allowzero():
    """With allowzero any shape means the same for the value that is skipped to."""
    text = "graph(x: float[2, 3], t: int64[1]) -> (y) { a = Flatten(x) y = Reshape(a, t) {allowzero = 1} }"
    model, fired = apply_rule(MERGE_RESHAPES, text, compare=False)
    assert fired == 1
    assert operators(model) == ["Reshape"]


def test_zero_means_empty_with_allowzero():
    """With allowzero a 0 copies nothing, so the rule fires."""
    text = "graph(x: float[0, 3]) -> (y) { t: int64[2] = [3, 0] a = Flatten(x) y = Reshape(a, t) {allowzero = 1} }"
    _, fired = apply_rule(MERGE_RESHAPES, text)
    assert fired == 1
