"""The rows of the table of operators."""

from __future__ import annotations

from support.models import graph

from sardonyx.optimize.transposes.handler import all_inputs, first_input


def test_inputs_that_carry_the_layout() -> None:
    """The first, or all."""
    (node,) = graph("graph(x: float[2], z: float[2]) -> (y: float[2]) {\ny = Add(x, z)\n}")
    assert [value.name for value in first_input(node) if value is not None] == ["x"]
    assert [value.name for value in all_inputs(node) if value is not None] == ["x", "z"]
