"""Shapes of what only changes numbers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.skip_before_shape import SKIP_BEFORE_SHAPE, SKIP_TRANSPOSE_BEFORE_SHAPE


@pytest.mark.parametrize(
    "lines",
    [
        "a = Cast(x) {to = 7} y = Shape(a)",
        "a = Neg(x) b = Relu(a) y = Shape(b) {start = 1}",
        "a = Exp(x) y = Size(a)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """Shape and Size read the value before."""
    model, fired = apply_rule(SKIP_BEFORE_SHAPE, f"graph(x: float[batch, 3]) -> (y) {{ {lines} }}", rtol=0)
    assert fired >= 1
    assert len(operators(model)) == 1


def test_declines_what_changes_the_shape():
    """An operator that may change the shape is not skipped."""
    assert declines(SKIP_BEFORE_SHAPE, "graph(x: float[2, 3]) -> (y) { a = Transpose(x) y = Shape(a) }") == "no match"


def transposed(lines="s = Shape(t) y = Gather(s, i)"):
    return f"graph(x: float[2, 3, 4], j: int64[1]) -> (y) {{ i: int64[2] = [0, -1] t = Transpose(x) {{perm = [2, 0, 1]}} {lines} }}"


def test_sizes_of_what_is_transposed():
    """The indices are those of the same dimensions before."""
    model, fired = apply_rule(SKIP_TRANSPOSE_BEFORE_SHAPE, transposed(), rtol=0)
    assert fired == 1
    assert operators(model) == ["Shape", "Gather"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("s = Shape(t) {start = 1} y = Gather(s, i)", "are not known"),
        ("s = Shape(t) y = Gather(s, j)", "no match"),
    ],
)
def test_sizes_of_what_is_transposed_decline(lines, reason):
    """A part of the shape, and indices that are no constants."""
    assert reason in declines(SKIP_TRANSPOSE_BEFORE_SHAPE, transposed(lines))
