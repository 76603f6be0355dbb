"""Transposes through Reshape."""

from __future__ import annotations

import pytest
from support.transposing import operators, pushed


@pytest.mark.parametrize(
    ("numbers", "left"),
    [
        ("[2, 24, 3]", ["Reshape", "Transpose"]),
        ("[0, -1, 3]", ["Reshape", "Transpose"]),
        ("[2, 4, 6, 3, 1]", ["Reshape", "Transpose"]),
        ("[2, 2, 2, 6, 3]", ["Reshape", "Transpose"]),
        ("[2, 4, 18]", ["Transpose", "Reshape"]),
        ("[-1]", ["Transpose", "Reshape"]),
    ],
)
def test_dimensions_that_move_together_may_be_split_and_merged(numbers: str, left: list[str]) -> None:
    """H and W stay neighbours in both layouts; W and C do not."""
    count = numbers.count(",") + 1
    assert operators(pushed(f"s: int64[{count}] = {numbers}\n y = Reshape(t, s)")) == left


def test_merged_dimensions_come_back_together() -> None:
    """(N, H, W, C) to (N, H * W, C) and back to channels-first: no transpose is left."""
    held = pushed("s: int64[3] = [2, 24, 3]\n a = Reshape(t, s)\n y = Transpose(a) {perm = [0, 2, 1]}")
    assert operators(held) == ["Reshape"]


def test_flatten_of_dimensions_of_one_is_a_reshape() -> None:
    """Of a pooled image only N and C are left."""
    assert operators(pushed("y = Flatten(t)", inputs="x: float[2, 3, 1, 1]")) == ["Reshape"]


def test_a_symbolic_batch_is_copied() -> None:
    """One dimension that is not known may be said by 0, another by -1."""
    from support.models import graph

    from sardonyx.optimize.transposes.push import push_transposes

    held = graph("""graph(x: float[n, 3, 4, m]) -> (y: float[n, 4*m, 3]) {
        s: int64[3] = [0, -1, 3]
        t: float[n, 4, m, 3] = Transpose(x) {perm = [0, 2, 3, 1]}
        y: float[n, 4*m, 3] = Reshape(t, s)
    }""")
    push_transposes(held, set(held))
    reshape, transpose = held
    assert reshape.inputs[1] is not None
    assert reshape.inputs[1].constant is not None
    assert reshape.inputs[1].constant.numpy().tolist() == [0, 3, -1]
    assert transpose.get("perm") == (0, 2, 1)


def test_a_transpose_is_pulled_through_to_another() -> None:
    """Attention's result on its way to a convolution: heads and their channels, and the pixels, change places once."""
    text = """a = Transpose(h) {perm = [0, 1, 3, 2]}
    s: int64[4] = [2, 8, 3, 5]
    b = Reshape(a, s)
    y = Transpose(b) {perm = [0, 2, 3, 1]}"""
    held = pushed(text, inputs="x: float[2, 3, 4, 6], h: float[2, 2, 15, 4]")
    assert operators(held) == ["Transpose", "Reshape"]
    assert next(iter(held.graph)).get("perm") == (0, 2, 1, 3)


def test_a_transpose_that_would_part_what_was_merged_stays() -> None:
    """Two dimensions were merged, of which one is to move."""
    text = """a = Transpose(h) {perm = [1, 0, 2]}
    s: int64[3] = [2, 3, 20]
    b = Reshape(a, s)
    y = Transpose(b) {perm = [2, 0, 1]}"""
    held = pushed(text, inputs="x: float[2, 3, 4, 6], h: float[6, 4, 5]")
    assert operators(held) == ["Transpose", "Reshape", "Transpose"]
