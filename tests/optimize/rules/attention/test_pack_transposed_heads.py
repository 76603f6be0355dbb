"""Heads that are split before attention."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.attention.pack_transposed_heads import PACK_TRANSPOSED_HEADS, PACK_TRANSPOSED_HEADS_CACHE

SYMBOLS = {"n": 2, "s": 4, "t": 5, "p": 3, "p + t": 8}


def text(parts="qh, kh, vh", others="", joined="join", rotated="", perm="0, 2, 1, 3", width=24, results="z", attributes=""):
    return f"""graph(q: float[n, s, {width}], k: float[n, t, 12], v: float[n, t, 10], m: float[n, 1, s, t], mp: float[n, 1, s, p +
        t], pk: float[n, 2, p, 6], pv: float[n, 2, p, 5], co: float[n, s, 3], si: float[n, s, 3], ct: float[n, t, 3], st:
        float[n, t, 3]) -> ({results}) {{ four: int64[4] = [0, 0, 4, 6] keys: int64[4] = [0, 0, 2, 6] values: int64[4] = [0,
        0, 2, 5] join: int64[3] = [0, 0, 20] flat: int64[2] = [-1, 20] odd: int64[4] = [0, 0, 2, -1] qr = Reshape(q, four) qh
        = Transpose(qr) {{perm = [{perm}]}} kr = Reshape(k, keys) kh = Transpose(kr) {{perm = [0, 2, 1, 3]}} vr = Reshape(v,
        values) vh = Transpose(vr) {{perm = [0, 2, 1, 3]}} {rotated} y, yk, yv = Attention({parts}{others}) {{{attributes}}} yt
        = Transpose(y) {{perm = [0, 2, 1, 3]}} z = Reshape(yt, {joined}) }}"""


TURNED = "qt = RotaryEmbedding(qh, co, si) kt = RotaryEmbedding(kh, ct, st) {interleaved = 1}"


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, ["Attention"]),
        ({"others": ", m", "attributes": "scale = 0.3"}, ["Attention"]),
        ({"joined": "flat"}, ["Attention", "Reshape"]),
        ({"rotated": TURNED, "parts": "qt, kt, vh"}, ["Attention", "RotaryEmbedding", "RotaryEmbedding"]),
        ({"others": ", mp, pk, pv"}, ["Attention"]),
    ],
)
def test_fires_with_the_same_numbers(options, made):
    """Groups of heads, masks, former keys, heads that are rotated, a result that is joined otherwise."""
    model, fired = apply_rule(PACK_TRANSPOSED_HEADS, text(**options), opset="23", symbols=SYMBOLS)
    used = [node.op_type for node in model.graph if any(value.use_count for value in node.outputs)]
    assert (fired, sorted(used)) == (1, made)


def test_former_keys_as_outputs():
    """They stay (B, H, T, D)."""
    body = text(others=", mp, pk, pv", results="z, yk, yv")
    model, fired = apply_rule(PACK_TRANSPOSED_HEADS_CACHE, body, opset="23", symbols=SYMBOLS)
    assert (fired, [name for name in operators(model) if name == "Attention"]) == (1, ["Attention"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"parts": "qr, kh, vh"}, "no match"),
        ({"perm": "0, 2, 3, 1"}, "no match"),
        ({"results": "z, qh"}, "no match"),
        ({"joined": "odd"}, "reshaped otherwise"),
        ({"width": "w"}, "not known to be its heads"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(PACK_TRANSPOSED_HEADS, text(**options), opset="23")
