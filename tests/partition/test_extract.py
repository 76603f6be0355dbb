"""Nodes as a model of their own."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

from sardonyx.errors import InvalidArgument
from sardonyx.ir.text import print_model
from sardonyx.ir.verify import verify
from sardonyx.partition.extract import extract

TEXT = """graph(x: float[n, 3]) -> (y: float[n, 3]) {
    w: float[3] = [1, 2, 3]
    a: float[n, 3] = Mul(x, w)
    b: float[n, 3] = Add(a, x)
    y = Relu(b)
}"""


def test_sizes_are_numbers_and_constants_are_shared() -> None:
    """The copy is a valid model; the original stays as it is."""
    held = model(TEXT)
    before = print_model(held)
    first, second, _ = held.graph
    (x,) = held.graph.inputs
    array = np.ones((5, 3), np.float32)
    part, arguments = extract(held, [first, second], [second.output], {x: array, first.output: array, second.output: array})
    verify(part)
    assert [value.shape for value in (*part.graph.inputs, *part.graph.outputs)] == [(5, 3), (5, 3)]
    assert arguments == [array]
    assert [node.op_type for node in part.graph] == ["Mul", "Add"]
    assert [value.constant for value in part.graph.initializers.values()] == [first.inputs[1].constant]  # type: ignore[union-attr]  # set
    assert print_model(held) == before


def test_what_is_no_tensor_is_refused() -> None:
    """Its size could not be a number."""
    held = model("graph(x: seq(float[2])) -> (y) {\ny = SequenceLength(x)\n}")
    (node,) = held.graph
    with pytest.raises(InvalidArgument, match="no tensor"):
        extract(held, [node], [node.output], {})
