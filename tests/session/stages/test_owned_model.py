"""Handing a model from stage to stage."""

from __future__ import annotations

import pytest
from support.models import model

from sardonyx.errors import Fail
from sardonyx.ir.text import parse_model
from sardonyx.session.stages.owned_model import OwnedModel


def test_a_model_is_taken_over_once() -> None:
    """Whoever comes later gets an error that names who has it."""
    given = model("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}")
    owned = OwnedModel(given)
    assert owned.view() is given
    assert owned.take("prepare") is given
    for use in (owned.view, lambda: owned.take("again")):
        with pytest.raises(Fail, match="was taken over by the stage 'prepare'"):
            use()
    assert owned.label == given.label


def test_graphs_are_freed_whoever_has_the_model() -> None:
    """Functions that the optimizer has taken out of it included."""
    given = parse_model(
        """ir_version 10
        opset 21
        opset local 1
        graph main(x: float[2]) -> (y: float[2]) {
            y = local.Twice(x)
        }
        function local.Twice(a) -> (b) {
            opset 21
            b = Add(a, a)
        }"""
    )
    owned, functions = OwnedModel(given), list(given.functions.values())
    owned.take("prepare").functions.clear()
    owned.dismantle()
    assert [len(graph) for graph in (given.graph, *(function.graph for function in functions))] == [0, 0]
    assert owned.label == given.label
