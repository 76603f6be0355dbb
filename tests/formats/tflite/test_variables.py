"""Variables as inputs and outputs of a graph."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidFlatBuffer
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.variables import Variables
from sardonyx.ir import Tensor


def test_a_variable_that_is_read_is_an_input_with_a_value() -> None:
    """Zeros, or what is given before the first run."""
    build = GraphBuilder("g")
    variables = Variables(build)
    variables.initial["b"] = Tensor.from_array(np.float32([7]))
    a, b = variables.read("a", DataType.INT32, (2,)), variables.read("b", DataType.FLOAT, ())
    assert a.constant is not None
    assert b.constant is not None
    assert (a.constant.numpy().tolist(), b.constant.numpy().tolist()) == ([0, 0], [7])
    assert build.graph.inputs == [a, b]
    assert variables.read("a", DataType.INT32, (2,)) is a


def test_a_variable_that_is_assigned_is_an_output() -> None:
    """One that is only read is none."""
    build = GraphBuilder("g")
    variables = Variables(build)
    a = variables.read("a", DataType.FLOAT, ())
    variables.read("b", DataType.FLOAT, ())
    variables.write("a", build.node("Neg", a))
    variables.finish()
    assert [value.name for value in build.graph.outputs] == ["state:a:next"]
    assert (variables.states["a"].input, variables.states["a"].output) == ("state:a", "state:a:next")
    assert variables.states["b"].output == ""


def test_what_is_handed_on_is_an_output_of_the_users() -> None:
    """It lies before those of variables."""
    build = GraphBuilder("g")
    variables = Variables(build)
    a = variables.read("a", DataType.FLOAT, ())
    variables.write("a", build.node("Neg", a))
    made = build.node("Abs", a)
    variables.hand_on(made)
    variables.finish()
    assert build.graph.outputs[0] is made
    assert len(build.graph.outputs) == 2


def test_what_a_body_assigns_is_its_own() -> None:
    """The graph around sees it when it is told."""
    build = GraphBuilder("g")
    outer = Variables(build)
    value = outer.read("a", DataType.FLOAT, ())
    inner = Variables(GraphBuilder("body", build), outer)
    changed = build.node("Neg", value)
    inner.write("a", changed)
    assert inner.read("a", DataType.FLOAT, ()) is changed
    assert (inner.written(), inner.known(), outer.read("a", DataType.FLOAT, ())) == (["a"], ["a"], value)


def test_a_variable_beyond_all_measure_is_refused() -> None:
    """Its zeros are not made."""
    with pytest.raises(InvalidFlatBuffer, match="the variable 'a' has shape"):
        Variables(GraphBuilder("g")).read("a", DataType.FLOAT, (1 << 20, 1 << 20))


def test_a_variable_of_no_elements_that_can_be_kept_is_refused() -> None:
    """A tensor that refers to something is none."""
    with pytest.raises(InvalidFlatBuffer, match="a resource or a variant"):
        Variables(GraphBuilder("g")).read("a", DataType.UNDEFINED, (2,))
