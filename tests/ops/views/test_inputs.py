"""Numbers of attributes and inputs."""

from __future__ import annotations

import numpy as np
import pytest
from support.infer_op import floats, ints
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Node, Tensor
from sardonyx.ops.views.inputs import COMPUTED, arrays, constants, elements, integers, listed, no_inputs, tensor_of


def test_constants_are_known_and_other_values_computed() -> None:
    """An initializer has elements, a value that a run makes is COMPUTED, an input that is left out is None."""
    read = constants(node("Pad", 13, [[1, 2], "x", None]))
    assert np.array_equal(read(0), [1, 2])  # type: ignore[arg-type]  # known
    assert (read(1), read(2), read(3)) == (COMPUTED, None, None)


def test_an_overridable_initializer_is_computed() -> None:
    """A feed may override an initializer that is an input of its graph too."""
    pad = node("Pad", 13, [[1, 2]])
    assert constants(pad, frozenset(value for value in pad.inputs if value is not None))(0) is COMPUTED


def test_large_tensors_are_data() -> None:
    """A tensor of more than 1024 elements is not read."""
    assert constants(node("Pad", 13, [np.zeros(1025, np.int64)]))(0) is COMPUTED


def test_the_output_of_a_constant_node_is_known() -> None:
    """A Constant node with a tensor counts as an initializer does."""
    tensor = Tensor.from_array(np.array([3], np.int64))
    made = Node("Constant", [], 1, {"value": tensor}, version=13).output
    assert tensor_of(made) is tensor
    assert tensor_of(None) is None


def test_elements_of_facts() -> None:
    """Facts that hold every element are known, others computed."""
    read = elements(floats(2), ints(1, 2), None, ints(1, None))
    assert np.array_equal(read(1), [1, 2])  # type: ignore[arg-type]  # known
    assert (read(0), read(2), read(3), read(4)) == (COMPUTED, None, COMPUTED, None)


def test_arrays_are_known() -> None:
    """In a run every input is known."""
    read = arrays(np.array([1]), None)
    assert np.array_equal(read(0), [1])  # type: ignore[arg-type]  # known
    assert (read(1), read(2), no_inputs(0)) == (None, None, COMPUTED)


def test_an_attribute_counts_before_an_input() -> None:
    """Integers come from the attribute where there is one, else from the input."""
    squeeze = node("Squeeze", 13, ["x", [0, -1]])
    assert integers(squeeze, "axes", constants(squeeze), 1) == (0, -1)
    assert integers(node("Squeeze", 11, axes=(2,)), "axes", no_inputs, 1) == (2,)
    assert integers(node("Squeeze", 13), "axes", constants(squeeze), 7) is None
    assert integers(node("Squeeze", 13), "axes", no_inputs, 1) is COMPUTED


def test_numbers_that_are_no_integers_are_refused() -> None:
    """By name and type; an empty list has no elements that could be wrong."""
    assert listed(np.array([[1, 2]], np.int32), "axes") == (1, 2)
    assert listed(np.zeros(0, np.float32), "axes") == ()
    with pytest.raises(InvalidGraph, match="axes has elements of type float32, expected integers"):
        listed(np.zeros(1, np.float32), "axes")
