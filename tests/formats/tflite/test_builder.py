"""One graph while it is made."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.ir import TensorType


def test_names_are_taken_once() -> None:
    """The second gets a number."""
    build = GraphBuilder("g")
    assert [build.name("a"), build.name("a"), build.name("")] == ["a", "a_1", "value"]


def test_equal_small_constants_are_one() -> None:
    """Of one type and shape."""
    build = GraphBuilder("g")
    assert build.constant(np.float32(1)) is build.constant(np.float32(1))
    assert build.constant(np.float32(1)) is not build.constant(np.float64(1))
    assert build.constant([1], np.float32) is not build.constant(np.float32(1))


def test_channels_that_are_first_are_given_back() -> None:
    """Between two operators on images nothing is transposed; a graph that wants them last transposes once."""
    build = GraphBuilder("g")
    x = build.input("x", TensorType(DataType.FLOAT, (1, 4, 4, 3)))
    made = build.node("Relu", build.first(x, 4))
    last = build.last(made, 4)
    assert build.first(last, 4) is made
    assert build.last(made, 4) is last
    assert build.first(x, 4) is build.first(x, 4)
    assert [node.op_type for node in build.graph] == ["Transpose", "Relu", "Transpose"]


def test_inputs_that_are_left_out_at_the_end_are_dropped() -> None:
    """Those between stay."""
    build = GraphBuilder("g")
    x = build.input("x", TensorType(DataType.FLOAT, ()))
    node = build.node("Clip", x, None, None).producer
    assert node is not None
    assert node.inputs == (x,)
