"""Dimensions that have to be equal for a node to run."""

from __future__ import annotations

import pytest
from support.models import model

from sardonyx.ops.infer import infer_graph
from sardonyx.session.draw.equalities import equal_dims


def _pairs(body: str) -> list[tuple[str, str]]:
    parsed = model(body, opset=23)
    facts = infer_graph(parsed)
    return [(str(left), str(right)) for node in parsed.graph for left, right in equal_dims(node, facts)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("graph(x: float[a, 3], y: float[b]) -> (z: float[a, 3]) {\nz = Add(x, y)\n}", [("3", "b")]),
        ("graph(x: float[a, 3], y: float[1]) -> (z: float[a, 3]) {\nz = Add(x, y)\n}", []),
        ("graph(x: float[a, m], y: float[b, n]) -> (z: float[a, k]) {\nz = Concat(x, y) {axis = 1}\n}", [("a", "b")]),
        ("graph(x: float[a, m], y: float[5, 2]) -> (z: float[a, 2]) {\nz = MatMul(x, y)\n}", [("m", "5")]),
        ("graph(x: float[a, m], y: float[2, 5]) -> (z: float[a, 2]) {\nz = Gemm(x, y) {transB = 1}\n}", [("m", "5")]),
        ("graph(x: float[a, c, h, w], f: float[8, 3, 1, 1]) -> (z: float[a, 8, h, w]) {\nz = Conv(x, f)\n}", [("c", "3")]),
        ("graph(x: float[a, c], s: float[7]) -> (z: float[a, c]) {\nz = LayerNormalization(x, s)\n}", [("c", "7")]),
    ],
)
def test_what_an_operator_needs_to_be_equal(body: str, expected: list[tuple[str, str]]) -> None:
    """Nothing where it is a number on both sides, or 1."""
    assert _pairs(body) == expected


def test_a_mask_of_attention_covers_past_and_new_keys() -> None:
    """Its last dimension is the sum of both."""
    body = (
        "graph(q: float[b, 2, s, 4], k: float[b, 2, s, 4], m: float[t], p: float[b, 2, old, 4]) -> (z: float[b, 2, s, 4]) {\n"
        "z, nk, nv = Attention(q, k, k, m, p, p)\n}"
    )
    assert ("t", "old + s") in _pairs(body)


def test_a_recurrent_network_has_states_of_its_batch() -> None:
    """The second dimension of a state, without a layout."""
    body = (
        "graph(x: float[t, b, 4], w: float[1, 15, 4], r: float[1, 15, 5], h: float[1, n, 5]) -> (z: float[t, 1, b, 5]) {\n"
        "z = GRU(x, w, r, _, _, h) {hidden_size = 5}\n}"
    )
    assert ("b", "n") in _pairs(body)
