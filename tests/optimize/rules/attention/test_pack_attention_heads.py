"""Attention over what one product makes."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.attention.pack_attention_heads import PACK_ATTENTION_HEADS

PARTS = "r = Reshape(x, five) t = Transpose(r) {perm = [2, 0, 3, 1, 4]} a, b, c = Split(t, ones) {axis = 0}"
HEADS = "q = Squeeze(a, z) k = Squeeze(b, z) v = Squeeze(c, z)"
BACK = "o = Transpose(s) {perm = [0, 2, 1, 3]} y = Reshape(o, three)"


def text(parts=PARTS, heads=HEADS, attention="s = Attention(q, k, v)", back=BACK, outputs="y", x="n, 5, 24"):
    return f"""graph(x: float[{x}], m: float[n, 1, 1, 5]) -> ({outputs}) {{
        five: int64[5] = [-1, 5, 3, 2, 4] ones: int64[3] = [1, 1, 1] z: int64[1] = [0]
        three: int64[3] = [-1, 5, 8] {parts} {heads} {attention} {back} }}"""


@pytest.mark.parametrize("attention", ["s = Attention(q, k, v)", "s = Attention(q, k, v, m) {scale = 0.3}"])
def test_fires_with_the_same_numbers(attention):
    """Without and with a mask."""
    model, fired = apply_rule(PACK_ATTENTION_HEADS, text(attention=attention), opset="23", symbols={"n": 2})
    assert fired == 1
    assert operators(model) == ["Split", "Attention"]


def test_a_reshape_may_leave_out_the_axis():
    """As where keys were reshaped for a transpose that is gone."""
    heads = HEADS.replace("Squeeze(b, z)", "Reshape(b, four)")
    lines = text(parts=f"four: int64[4] = [-1, 2, 5, 4] {PARTS}", heads=heads)
    model, fired = apply_rule(PACK_ATTENTION_HEADS, lines, opset="23", symbols={"n": 2})
    assert fired == 1
    assert operators(model) == ["Split", "Attention"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"heads": "four: int64[4] = [-1, 1, 5, 4] q = Squeeze(a, z) k = Reshape(b, four) v = Reshape(c, four)"},
            "reshaped otherwise than by leaving out",
        ),
        ({"parts": PARTS.replace("[2, 0, 3, 1, 4]", "[2, 0, 1, 3, 4]")}, "no match"),
        ({"heads": HEADS.replace("Squeeze(b, z)", "Squeeze(c, z)").replace("v = Squeeze(c", "v = Squeeze(b")}, "no match"),
        ({"outputs": "y, q"}, "no match"),
        ({"x": "n, 5, 3, 8"}, "not known to be split into queries, keys and values"),
        ({"back": BACK.replace("three", "wide"), "parts": f"wide: int64[3] = [-1, 10, 4] {PARTS}"}, "not known to be packed heads"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(PACK_ATTENTION_HEADS, text(**options), opset="23")
