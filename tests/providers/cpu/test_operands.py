"""What lowerings read from nodes."""

import numpy as np
import pytest
from support.models import graph

from sardonyx.providers.cpu.operands import axis_of, check_moved, constant_of, given, ints_of, shape_of


def test_numbers_come_from_an_attribute_or_an_input() -> None:
    """Older versions have attributes, newer ones constant inputs; computed ones are not known."""
    old = next(iter(graph("graph(x: float[N]) -> (y) { y = Unsqueeze(x) {axes = [0, 2]} }", opset=11)))
    new = list(graph("graph(x: float[N], b: int64[1]) -> (y, z) { a: int64[1] = [1] y = Unsqueeze(x, a) z = Unsqueeze(x, b) }"))
    assert ints_of(old, 1, "axes") == [0, 2]
    assert [ints_of(node, 1, "axes") for node in new] == [[1], None]
    np.testing.assert_array_equal(constant_of(new[0].inputs[1]), [1])
    assert constant_of(None) is None


def test_axes_are_counted_from_the_front() -> None:
    """The default is taken where the node has none."""
    nodes = list(graph("graph(x: float[A, B]) -> (y, z) { y = Softmax(x) {axis = -2} z = Softmax(x) }"))
    assert [axis_of(node, -1, 2) for node in nodes] == [0, 1]


def test_elements_that_are_no_bytes_are_not_moved() -> None:
    """Strings are objects; all else is moved by its size."""
    nodes = list(graph("graph(x: string[2], z: bfloat16[2]) -> (y, w) { y: string[2] = Identity(x) w: bfloat16[2] = Identity(z) }"))
    assert [check_moved(node) for node in nodes] == ["elements of type string", None]


def test_what_no_check_lets_through_is_an_error() -> None:
    """Inputs that are left out."""
    with pytest.raises(ValueError, match="without this input"):
        given(None)
    with pytest.raises(ValueError, match="without this input"):
        shape_of(None)
