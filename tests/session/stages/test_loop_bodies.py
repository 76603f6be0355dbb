"""Symbols in the bodies of generation loops."""

from __future__ import annotations

from support.models import model

from sardonyx.ir import Graph, symbol
from sardonyx.session.stages.loop_bodies import separate_lengths

LOOP = """graph(ids: int32[b, s], most: int32[1]) -> (y) {
    y = com.microsoft.BeamSearch(ids, most) {decoder = graph(
        input_ids: int32[batch, length], past_self_key_0: float[batch, 2, length, 4], past_1: float[2, batch, 2, keys, 4]
    ) -> (logits: float[batch, length, 8]) {logits = Foo(input_ids, past_self_key_0, past_1)}}
}"""


def body_of(text: str) -> Graph:
    held = model(text)
    separate_lengths(held)
    (node,) = held.graph
    body = node.attributes["decoder"].value
    assert isinstance(body, Graph)
    return body


def test_a_symbol_of_two_lengths_becomes_two() -> None:
    """Rows keep their name, which joint pasts have on their second axis; keys get one of their own."""
    batch, length, keys = (symbol(name) for name in ("batch", "length", "keys"))
    shapes = [value.shape for value in body_of(LOOP).inputs]
    assert shapes == [(batch, length), (batch, 2, symbol("length/past"), 4), (2, batch, 2, keys, 4)]


def test_outputs_lose_what_was_declared_of_their_shapes() -> None:
    """A name there may be any of the lengths; they are inferred."""
    assert body_of(LOOP).outputs[0].shape is None


def test_a_body_whose_symbols_differ_stays_as_it_is() -> None:
    """Nothing is renamed, and outputs keep their shapes."""
    body = body_of(LOOP.replace("2, length, 4", "2, past, 4"))
    assert body.inputs[1].shape == (symbol("batch"), 2, symbol("past"), 4)
    assert body.outputs[0].shape is not None
