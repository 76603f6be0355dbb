"""Transposes through operators that name axes."""

from __future__ import annotations

import pytest
from support.transposing import operators, pushed

BACK = "y = Transpose(a) {perm = [0, 3, 1, 2]}"


@pytest.mark.parametrize(
    "step",
    [
        "Concat(t, t) {axis = -1}",
        "Concat(t, k) {axis = 1}",
        "Hardmax(t) {axis = 3}",
        "ReduceMax(t, ax) {keepdims = 1}",
        "ReduceSum(t) {keepdims = 1}",
        "ArgMax(t) {axis = -1}",
    ],
)
def test_two_transposes_around_an_operator_vanish(step: str) -> None:
    """The axis is renamed."""
    held = pushed(f"ax: int64[2] = [1, -2]\n k: float[2, 1, 6, 3] = ... 1\n a = {step}\n {BACK}")
    assert operators(held) == [step.split("(")[0]]


def test_split_gets_a_transpose_behind_each_part() -> None:
    """Each of them meets its inverse."""
    parts = "s: int64[2] = [2, 4]\n p, q = Split(t, s) {axis = 2}\n m = Transpose(p) {perm = [0, 3, 1, 2]}"
    held = pushed(f"{parts}\n n = Transpose(q) {{perm = [0, 3, 1, 2]}}\n y = Concat(m, n) {{axis = 3}}")
    assert operators(held) == ["Split", "Concat"]
    assert next(iter(held.graph)).get("axis") == 3


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("ReduceMax(t, hw) {keepdims = 0}", []),
        ("ReduceMax(t, h) {keepdims = 0}", ["Transpose"]),
        ("ArgMin(t) {axis = 1, keepdims = 0}", ["Transpose"]),
        ("Gather(t, index) {axis = 3}", []),
        ("Gather(t, indices) {axis = 2}", ["Transpose"]),
        ("Unsqueeze(t, h)", ["Transpose"]),
    ],
)
def test_what_dimensions_are_left_keep_their_order_or_get_a_transpose(step: str, left: list[str]) -> None:
    """(N, C) lies alike in both layouts; (N, W, C) does not."""
    constants = "h: int64[1] = [1]\n hw: int64[2] = [1, 2]\n index: int64[] = 1\n indices: int64[2] = [1, 0]"
    assert operators(pushed(f"{constants}\n y = {step}")) == [step.split("(")[0], *left]


def test_squeeze_takes_a_dimension_out_of_the_permutation() -> None:
    """A dimension of 1 that was last was second before."""
    held = pushed("c: int64[1] = [3]\n y = Squeeze(t, c)", inputs="x: float[2, 1, 4, 6]")
    assert operators(held) == ["Squeeze"]


@pytest.mark.parametrize(
    ("permutation", "left"),
    [("[1, 0, 2, 3]", ["Hardmax"]), ("[0, 2, 3, 1]", ["Transpose", "Hardmax", "Transpose"])],
)
def test_an_old_softmax_moves_where_it_folds_the_same_dimensions(permutation: str, left: list[str]) -> None:
    """Before opset 13 all dimensions from the axis on are folded: the last two lie as before, or do not."""
    text = f"b = Transpose(x) {{perm = {permutation}}}\n h = Hardmax(b) {{axis = 2}}\n y = Transpose(h) {{perm = [1, 0, 2, 3]}}"
    assert operators(pushed(text, opset=11)) == left


def test_axes_that_are_computed_stay() -> None:
    """Their names are not known when the session is made."""
    held = pushed("y = ReduceSum(t, ax) {keepdims = 1}", inputs="x: float[2, 3, 4, 6], ax: int64[1]")
    assert operators(held) == ["Transpose", "ReduceSum"]
