"""Attributes of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx.dtypes import DataType
from sardonyx.ir import ArrayAttribute, Attribute, AttributeKind, Graph, SparseTensor, Tensor, TensorType

TENSOR = Tensor.from_array(np.zeros(2))
SPARSE = SparseTensor(TENSOR, Tensor.from_array(np.array([0, 1])), (3,))
GRAPH = Graph("body")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, AttributeKind.INT),
        (0.5, AttributeKind.FLOAT),
        ("text", AttributeKind.STRING),
        (TENSOR, AttributeKind.TENSOR),
        (SPARSE, AttributeKind.SPARSE_TENSOR),
        (GRAPH, AttributeKind.GRAPH),
        (TensorType(DataType.FLOAT), AttributeKind.TYPE),
        ((1, 2), AttributeKind.INTS),
        ((0.5, 1.5), AttributeKind.FLOATS),
        (("a",), AttributeKind.STRINGS),
        ((TENSOR,), AttributeKind.TENSORS),
        ((GRAPH,), AttributeKind.GRAPHS),
    ],
)
def test_the_kind_follows_the_value(value: Any, kind: AttributeKind) -> None:
    """A Python value suggests its kind, and is kept as it is."""
    attribute = Attribute.of(value)
    assert (attribute.kind, attribute.value, attribute.reference) == (kind, value, None)


def test_lists_become_tuples() -> None:
    """Values are immutable."""
    assert Attribute.of([1, 2]).value == (1, 2)


def test_whole_numbers_among_floats_are_floats() -> None:
    """A list of mixed numbers is a list of floats."""
    attribute = Attribute.of([1, 0.5])
    assert attribute.kind is AttributeKind.FLOATS
    assert [type(item) for item in attribute.value] == [float, float]


def test_truth_values_are_integers() -> None:
    """ONNX has no boolean attributes."""
    attribute = Attribute.of(True)
    assert attribute.kind is AttributeKind.INT
    assert type(attribute.value) is int


@pytest.mark.parametrize("value", [[], [1, "a"], None, object(), b"bytes"])
def test_what_suggests_no_kind_is_a_type_error(value: Any) -> None:
    """Empty and mixed lists, and other objects, need the kind to be said."""
    with pytest.raises(TypeError):
        Attribute.of(value)


def test_lists_of_arrays_are_made_when_they_are_asked_for() -> None:
    """Once, of Python's numbers, or of texts that the array has the places of; the array cannot be written to."""
    numbers = ArrayAttribute(AttributeKind.INTS, np.array([3, -1]))
    assert numbers.value == (3, -1)
    assert numbers.value is numbers.value
    assert type(numbers.value[0]) is int
    assert repr(numbers) == "(3, -1)"
    assert not numbers.array.flags.writeable
    texts = ArrayAttribute(AttributeKind.STRINGS, np.array([1, 0, 1]), ("a", "b"))
    assert texts.value == ("b", "a", "b")


def test_kinds_have_the_numbers_of_the_standard() -> None:
    """AttributeKind counts as AttributeProto.AttributeType does."""
    numbers = {name.replace("_PROTO", ""): number for name, number in onnx.AttributeProto.AttributeType.items() if number}
    assert {kind.name: kind.value for kind in AttributeKind} == numbers


def test_references_print_as_such() -> None:
    """An attribute that takes its value from the caller shows the name; others show their value."""
    assert repr(Attribute(AttributeKind.INT, None, "axis")) == "@axis"
    assert repr(Attribute.of(3)) == "3"
