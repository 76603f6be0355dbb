"""Attention that appends to former keys and values."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.attention.fuse_attention_cache import FUSE_ATTENTION_CACHE

SYMBOLS = {"b": 2, "s": 3, "p": 4}
INPUTS = """q: float[b, 4, s, 8], k: float[b, 2, s, 8], v: float[b, 2, s, 6], pk: float[b, 2, p, 8], pv: float[b, 2, p, 6],
    m: float[s, 7], o: float[1, 2, p, 8], l: float[b, 2, 9, 6], t: float[b, 2, 10, 8], u: float[b, 2, n, 6]"""


def text(attention="Attention(q, K, V)", keys="Concat(pk, k) {axis = 2}", values="Concat(pv, v) {axis = -2}", outputs="y, K, V"):
    return f"graph({INPUTS}) -> ({outputs}) {{ K = {keys} V = {values} y = {attention} }}"


@pytest.mark.parametrize("outputs", ["y, K, V", "y", "y, V"])
@pytest.mark.parametrize("attention", ["Attention(q, K, V)", "Attention(q, K, V, m) {scale = 0.5, softcap = 2.0}"])
def test_fires_with_the_same_numbers(outputs, attention):
    """With or without mask, whether the appended keys and values are given out or not."""
    model, fired = apply_rule(FUSE_ATTENTION_CACHE, text(attention, outputs=outputs), symbols=SYMBOLS, opset="23")
    assert fired == 1
    assert operators(model) == ["Attention"]
    assert [value.name for value in model.graph.outputs] == outputs.split(", ")


def test_lengths_of_other_names():
    """Former keys and values have the same length in a run, whatever it is called."""
    model, fired = apply_rule(FUSE_ATTENTION_CACHE, text(values="Concat(u, v) {axis = 2}"), symbols={**SYMBOLS, "n": 4}, opset="23")
    assert fired == 1
    assert operators(model) == ["Attention"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"attention": "Attention(q, K, V) {is_causal = 1}"}, "no match"),
        ({"keys": "Concat(pk, k) {axis = 1}"}, "no match"),
        ({"keys": "Concat(o, k) {axis = 2}"}, "differ in more than length"),
        ({"keys": "Concat(t, k) {axis = 2}", "values": "Concat(l, v) {axis = 2}"}, "the lengths of keys and values differ"),
        (
            {"values": "Concat(pv, v) {axis = 2} r = Shape(K) n = ConstantOfShape(r)", "attention": "Attention(q, K, V, n)"},
            "no match",
        ),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_ATTENTION_CACHE, text(**options), opset="23", infer=False)
