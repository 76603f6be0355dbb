"""Variants of a model that a session builds besides its own."""

from __future__ import annotations

from support.models import model

from sardonyx.session.variant import Variant

TEXT = "graph(x: float[n, n]) -> (a: float[n, n], b: float[n, n], c: float[n, n]) {\na = Neg(x)\nb = Exp(a)\nc = Abs(a)\n}"


def test_some_outputs_can_be_left_out() -> None:
    """Those that stay come in the order asked for; what only the others need loses its last reader."""
    held = model(TEXT)
    Variant(outputs=["a", "c"]).apply(held)
    assert [value.name for value in held.graph.outputs] == ["a", "c"]
    assert [node.outputs[0].use_count for node in held.graph] == [3, 0, 1]


def test_names_of_dimensions_can_be_forgotten() -> None:
    """Each is a size of its own afterwards, and shapes are inferred anew."""
    held = model(TEXT)
    Variant(symbols_hold=False).apply(held)
    first, second = held.graph.inputs[0].shape or ()
    assert first != second
    assert [node.outputs[0].shape for node in held.graph] == [None] * 3
    assert len(held.graph.outputs) == 3


def test_any_value_can_be_given_out() -> None:
    """An input and a value that no output is, beside an output."""
    held = model("graph(x: float[n]) -> (b: float[n]) {\na = Neg(x)\nb = Exp(a)\n}")
    Variant(outputs=["b", "a", "x"]).apply(held)
    assert [value.name for value in held.graph.outputs] == ["b", "a", "x"]
