"""The steps of pushing a transpose."""

from __future__ import annotations

from support.models import graph

from sardonyx.optimize.transposes.edit import Edit, is_neutral

TEXT = """graph(x: float[2, 3, 4], z: float[2, 3, 4]) -> (y: float[2, 4, 3]) {
    k: float[3] = [1, 2, 3]
    one: float[1, 1] = [1]
    t: float[2, 4, 3] = Transpose(x) {perm = [0, 2, 1]}
    y: float[2, 4, 3] = Add(t, k)
}"""


def test_a_transpose_tells_what_it_reads() -> None:
    """Only for the permutation asked for."""
    held = graph(TEXT)
    transpose, add = held
    edit = Edit(held)
    assert edit.transpose_of(add.inputs[0]) == ((0, 2, 1), held.inputs[0])
    assert edit.source_of(add.inputs[0], (0, 2, 1)) is held.inputs[0]
    assert edit.source_of(add.inputs[0], (1, 0, 2)) is None
    assert edit.source_of(transpose.inputs[0], (0, 2, 1)) is None


def test_a_transpose_of_an_outer_graph_is_none_of_ours() -> None:
    """What it reads may be an inner value of a partition that has been compiled."""
    held = graph(TEXT)
    _, add = held
    assert Edit(graph(TEXT)).transpose_of(add.inputs[0]) is None


def test_one_element_is_the_same_in_every_layout() -> None:
    """So is an input that is left out; a vector is not."""
    held = graph(TEXT)
    assert is_neutral(None)
    assert is_neutral(held.initializers["one"])
    assert not is_neutral(held.initializers["k"])


def test_a_value_is_transposed_once() -> None:
    """Who asks again gets what was made, which stands behind what makes the value: in front of every reader."""
    held = graph(TEXT)
    edit = Edit(held)
    made = edit.transposed(held.inputs[1], (0, 2, 1))
    assert edit.transposed(held.inputs[1], (0, 2, 1)) is made
    assert next(iter(held)) is made.producer


def test_a_transposed_transpose_is_one() -> None:
    """And nothing at all where the two undo each other."""
    held = graph(TEXT)
    transpose, _ = held
    assert Edit(held).transposed(transpose.output, (0, 2, 1)) is held.inputs[0]


def test_costs_are_counted_by_dimensions() -> None:
    """A constant costs nothing, another value its three dimensions."""
    held = graph(TEXT)
    _, add = held
    edit = Edit(held)
    assert edit.going(add.inputs, (0, 2, 1), None) == 3
    assert edit.coming([held.initializers["k"]], (0, 2, 1)) == 0
    assert edit.coming([held.inputs[1]], (0, 2, 1)) == 3
