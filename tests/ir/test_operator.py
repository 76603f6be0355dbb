"""Attributes read by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Attribute, AttributeKind, Graph, Node, Operator, Tensor


def node(**attributes: Any) -> Node:
    """A node with these attributes."""
    return Node("Custom", [], 1, attributes, version=7, name="c")


READERS: list[tuple[Callable[[Operator], object], object, object]] = [
    (lambda op: op.integer("a"), 3, "INT"),
    (lambda op: op.integers("a"), (3, 4), "INTS"),
    (lambda op: op.number("a"), 0.5, "FLOAT"),
    (lambda op: op.numbers("a"), (0.5, 1.0), "FLOATS"),
    (lambda op: op.text("a"), "t", "STRING"),
    (lambda op: op.texts("a"), ("t", "u"), "STRINGS"),
]


@pytest.mark.parametrize(("read", "value", "kind"), READERS)
def test_an_attribute_of_its_kind_is_read(read: Callable[[Operator], object], value: object, kind: str) -> None:
    """Each reader gives the value of an attribute of its kind."""
    assert read(node(a=value)) == value


@pytest.mark.parametrize(("read", "value", "kind"), READERS)
def test_an_attribute_that_is_left_out_is_none(read: Callable[[Operator], object], value: object, kind: str) -> None:
    """Without a default, None stands for what the node does not have."""
    assert read(node()) is None


@pytest.mark.parametrize(("read", "value", "kind"), READERS)
def test_an_attribute_of_another_kind_is_refused(read: Callable[[Operator], object], value: object, kind: str) -> None:
    """The message names the node, the kind found and the kind expected."""
    graph = Graph("body")
    with pytest.raises(InvalidGraph, match=rf'node "c" \(Custom, opset 7\): attribute \'a\' has type GRAPH .*expected {kind}$'):
        read(node(a=graph))


def test_defaults_stand_in_for_what_is_left_out() -> None:
    """A reader gives its default where the node lacks the attribute, and only there."""
    empty = node()
    assert (empty.integer("a", 1), empty.integers("a", (1,)), empty.number("a", 0.5)) == (1, (1,), 0.5)
    assert (empty.numbers("a", (0.5,)), empty.text("a", "t"), empty.texts("a", ("t",))) == ((0.5,), "t", ("t",))
    assert node(a=0).integer("a", 1) == 0


def test_a_flag_is_an_int_other_than_zero() -> None:
    """0 is false, any other int is true, and the default is the reader's."""
    assert (node(a=0).flag("a", True), node(a=2).flag("a"), node().flag("a"), node().flag("a", True)) == (False, True, False, True)


def test_empty_lists_are_values() -> None:
    """A list without elements is not the same as none."""
    assert node(a=Attribute(AttributeKind.INTS, ())).integers("a", (1,)) == ()


def test_tensors_and_graphs_are_read() -> None:
    """A tensor and a graph are given as they are, and refused where another kind is expected."""
    tensor, graph = Tensor.from_array(np.zeros(1, np.float32)), Graph("body")
    assert (node(a=tensor).tensor("a"), node(a=graph).subgraph("a"), node().tensor("a"), node().subgraph("a")) == (
        tensor,
        graph,
        None,
        None,
    )
    with pytest.raises(InvalidGraph, match="has type INT .*expected GRAPH"):
        node(a=1).subgraph("a")
    with pytest.raises(InvalidGraph, match="has type INT .*expected TENSOR"):
        node(a=1).tensor("a")


def test_a_reference_has_no_value() -> None:
    """An attribute that stands for one of a function's is refused: outside of the function it is nothing."""
    with pytest.raises(InvalidGraph, match="attribute 'a' refers to attribute 'b' of a function"):
        node(a=Attribute(AttributeKind.INT, None, "b")).integer("a", 1)
