"""Scales of queries."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.attention.fuse_attention_scale import FUSE_ATTENTION_SCALE, FUSE_ATTENTION_SCALE_CACHE

SYMBOLS = {"n": 2, "s": 4, "t": 5, "p": 3}


def text(attributes="", call="m, k, v", factor="0.3", results="y", inputs="q: float[n, 2, s, 3]"):
    return f"""graph({inputs}, k: float[n, 2, t, 3], v: float[n, 2, t, 4], x: float[n, s, 6], z: float[n, t, 6], pk: float[n, 2, p,
        3], pv: float[n, 2, p, 4], f: float[]) -> ({results}) {{ c: float[] = {factor} c1: float[1] = [0.5] two: float[2] =
        [1, 2] m = Mul(q, c) g = Mul(q, f) h = Mul(c1, x) y, yk, yv = Attention({call}) {{{attributes}}} }}"""


@pytest.mark.parametrize(
    ("call", "attributes"),
    [
        ("m, k, v", ""),
        ("m, k, v", "scale = 2.0"),
        ("h, z, z", "q_num_heads = 2, kv_num_heads = 2"),
    ],
)
def test_fires_with_the_same_numbers(call, attributes):
    """With a scale already or the default, packed or not."""
    model, fired = apply_rule(FUSE_ATTENTION_SCALE, text(attributes, call), opset="23", symbols=SYMBOLS)
    assert (fired, [name for name in operators(model) if name != "Mul"]) == (1, ["Attention"])


def test_former_keys():
    """All keys are outputs as before."""
    body = text(call="m, k, v, _, pk, pv", results="y, yk, yv")
    assert apply_rule(FUSE_ATTENTION_SCALE_CACHE, body, opset="23", symbols=SYMBOLS)[1] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"call": "g, k, v"}, "no match"),
        ({"factor": "-1"}, "no number above 0"),
        ({"factor": "0"}, "no number above 0"),
        ({"inputs": "q: float[n, 2, s, d]"}, "the size of the heads is not known"),
        ({"results": "y, m"}, "no match"),
    ],
)
def test_declines(options, reason):
    """Factors that are no numbers, and heads of unknown size."""
    assert reason in declines(FUSE_ATTENTION_SCALE, text(**options), opset="23")


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ("m = Mul(x, c) q = Transpose(m) {perm = [1, 0, 2]}", "Transpose"),
        ("m = Mul(x, c) q = Reshape(m, three)", "Reshape"),
    ],
)
def test_queries_that_are_moved_after_they_were_scaled(lines, left):
    """A Transpose or a Reshape between stays, of what is not scaled."""
    body = f"""graph(x: float[n, n, 6], z: float[n, t, 6]) -> (y) {{ c: float[] = 0.3 three: int64[3] = [0, -1, 6] {lines}
        y = Attention(q, z, z) {{q_num_heads = 2, kv_num_heads = 2}} }}"""
    model, fired = apply_rule(FUSE_ATTENTION_SCALE, body, opset="23", symbols=SYMBOLS)
    assert (fired, operators(model)) == (1, [left, "Attention"])
