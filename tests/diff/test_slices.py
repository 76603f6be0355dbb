"""Parts of a model as models of their own."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

from sardonyx.diff.slices import Slices
from sardonyx.errors import InvalidArgument
from sardonyx.ir.verify import verify
from sardonyx.providers.reference.whole import run_model

TEXT = """graph(x: float[n, 2]) -> (y: float[n, 2]) {
k: float[2] = [1, 2]
a = Relu(x)
b = Transpose(a)
c = Neg(a)
d = Add(c, k)
y = Mul(d, a)
}"""
BODY = """graph(x: float[2], c: bool) -> (y: float[2]) {
a = Neg(x)
y = If(c) {then_branch = graph() -> (t: float[2]) {
t = Abs(a)
}, else_branch = graph() -> (e: float[2]) {
e = Exp(a)
}}
}"""
X = np.float32([[-1, 2]])


def test_a_part_reads_what_others_make_and_gives_what_others_read() -> None:
    """By the names of the whole; constants go with it."""
    slices = Slices(model(TEXT))
    a = slices.nodes[0].outputs[0]
    part = slices.part(slices.nodes[2:4], {a: np.maximum(X, 0)})
    verify(part.model)
    assert [value.name for value in part.model.graph.inputs] == ["a"]
    assert [value.name for value in part.model.graph.outputs] == ["d"]
    assert run_model(part.model, dict(part.feed))[0].tolist() == [[1, 0]]


def test_all_values_of_a_part_can_be_given_out() -> None:
    """But for those that nobody reads."""
    slices = Slices(model(TEXT))
    part = slices.part(slices.nodes[:4], slices.start({"x": X}), gives_all=True)
    assert [value.name for value in part.outputs] == ["a", "c", "d"]


def test_bodies_keep_what_they_capture() -> None:
    """It is an input of the part, and is given out by the part before."""
    slices = Slices(model(BODY))
    first = slices.part(slices.nodes[:1], slices.start({"x": X[0], "c": np.array(True)}))
    assert [value.name for value in first.outputs] == ["a"]
    values = slices.advance(slices.start({"x": X[0], "c": np.array(True)}), {first.outputs[0]: -X[0]}, 1)
    second = slices.part(slices.nodes[1:], values)
    assert sorted(second.feed) == ["a", "c"]
    assert run_model(second.model, dict(second.feed))[0].tolist() == [1, 2]


def test_values_that_nobody_reads_any_more_are_let_go() -> None:
    """After the last node that reads them."""
    slices = Slices(model(TEXT))
    start = slices.start({"x": X})
    assert slices.advance(start, {}, 1) == {}
    assert list(slices.advance(start, {}, 0).values()) == [X]


def test_symbols_stay_and_sizes_that_are_wrong_go() -> None:
    """A dimension that the run contradicts is left open."""
    slices = Slices(model(TEXT))
    a = slices.nodes[0].outputs[0]
    slices.nodes[0].outputs[0].type = slices.model.graph.inputs[0].type
    fitting, wrong = (slices.part(slices.nodes[2:3], {a: np.zeros(shape, np.float32)}) for shape in ((4, 2), (4, 3)))
    assert str((fitting.model.graph.inputs[0].shape or ())[0]) == "n"
    assert (wrong.model.graph.inputs[0].shape or ())[1] != 2


def test_a_value_of_unknown_type_needs_an_array() -> None:
    """A list does not show what it is."""
    slices = Slices(model(TEXT))
    with pytest.raises(InvalidArgument, match="the type of 'a' is not known, and a list does not show it"):
        slices.part(slices.nodes[2:3], {slices.nodes[0].outputs[0]: []})


def test_depth_counts_nodes_that_compute() -> None:
    """One after another; Transpose moves elements only."""
    slices = Slices(model(TEXT))
    assert slices.depth(slices.nodes) == 4
    assert slices.depth(slices.nodes[1:2]) == 1


def test_ancestors_and_sources_are_found() -> None:
    """Among some nodes."""
    slices = Slices(model(TEXT))
    assert [node.op_type for node in slices.ancestors(slices.nodes, slices.nodes[3].outputs[0])] == ["Relu", "Neg", "Add"]
    assert slices.is_source(slices.nodes[2], slices.nodes[2:])
    assert not slices.is_source(slices.nodes[3], slices.nodes[2:])
