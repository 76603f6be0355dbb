"""Projections of attention."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.attention.fuse_attention_projections import FUSE_ATTENTION_PROJECTIONS

OPSET = "17, com.microsoft 1"
SYMBOLS = {"n": 2, "s": 4}
THREE = """qm = MatMul(x, wq) q = Add(qm, bq) km = MatMul(x, wk) k = Add(bk, km) vm = MatMul(x, wv) v = Add(vm, bv)"""
PACKED = "m = MatMul(x, w) a = Add(m, b) q, k, v = Split(a, sizes) {axis = 2}"


def text(parts=THREE, call="q, k, v", attributes="num_heads = 2", kind="float", results="y"):
    return f"""graph(x: {kind}[n, s, 5], z: {kind}[n, s, 5], d: {kind}[1, 2, s, s], seen: int32[n, s], u: {kind}[5, 6]) ->
        ({results}) {{ wq: {kind}[5, 6] = ... 1 wk: {kind}[5, 6] = ... 2 wv: {kind}[5, 6] = ... 3 wn: {kind}[5, 8] = ... 4 bq:
        {kind}[6] = ... 5 bk: {kind}[6] = ... 6 bv: {kind}[6] = ... 7 w: {kind}[5, 18] = ... 8 b: {kind}[18] = ... 9 sizes:
        int64[3] = [6, 6, 6] {parts} y = com.microsoft.MultiHeadAttention({call}) {{{attributes}}} }}"""


@pytest.mark.parametrize(
    "parts",
    [
        THREE,
        PACKED,
        "q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)",
        "m = MatMul(x, w) q, k, v = Split(m, sizes) {axis = -1}",
        "qm = MatMul(x, wq) q = Add(qm, bq) k = MatMul(x, wk) vm = MatMul(x, wv) v = Add(vm, bv)",
    ],
)
@pytest.mark.parametrize(
    ("call", "attributes"),
    [
        ("q, k, v", "num_heads = 2"),
        ("q, k, v, b", "num_heads = 3, scale = 0.4"),
        ("q, k, v, _, _, d", "num_heads = 2"),
        ("q, k, v, b, seen, d", "num_heads = 2, mask_filter_value = -30.0"),
        ("q, k, v", "num_heads = 2, unidirectional = 1"),
    ],
)
def test_fires_with_the_same_numbers(parts, call, attributes):
    """Three products or one, with biases or without, masks of every kind."""
    model, fired = apply_rule(FUSE_ATTENTION_PROJECTIONS, text(parts, call, attributes), opset=OPSET, symbols=SYMBOLS)
    assert (fired, operators(model)) == (1, ["Attention"])


@pytest.mark.parametrize(
    ("call", "attributes", "added"),
    [
        ("q, k, v", "", ""),
        ("q, k, v", ", scale = 0.4", ""),
        ("q, k, v", ", is_causal = 1", ""),
        ("q, k, v, e", "", "zero: float[] = 0 low: float[] = -9 c = IsNaN(d) e = Where(c, zero, low)"),
    ],
)
def test_attention_of_ai_onnx(call, attributes, added):
    """Where it means the same."""
    body = text(f"{added} {PACKED}", call, f"q_num_heads = 2, kv_num_heads = 2{attributes}").replace("com.microsoft.MultiHead", "")
    model, fired = apply_rule(FUSE_ATTENTION_PROJECTIONS, body, opset="23, com.microsoft 1", symbols=SYMBOLS)
    assert (fired, operators(model)[-1]) == (1, "Attention")
    assert list(model.graph)[-1].domain == "com.microsoft"


@pytest.mark.parametrize(
    ("call", "attributes", "reason"),
    [
        ("q, k, v", "q_num_heads = 2, kv_num_heads = 2, softcap = 2.0", "it has kv_num_heads"),
        ("q, k, v", "q_num_heads = 2, kv_num_heads = 1", "it has kv_num_heads"),
        ("q, k, v, d", "q_num_heads = 2, kv_num_heads = 2", "may hide all keys"),
    ],
)
def test_attention_of_ai_onnx_that_means_something_else(call, attributes, reason):
    """Caps, groups of heads, queries that see no key."""
    body = text(PACKED, call, attributes).replace("com.microsoft.MultiHead", "")
    assert reason in declines(FUSE_ATTENTION_PROJECTIONS, body, opset="23, com.microsoft 1")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"parts": THREE.replace("km = MatMul(x", "km = MatMul(z")}, "not products of one tensor"),
        ({"parts": "q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wn)"}, "expected one size"),
        ({"parts": "q = MatMul(x, wq) k = MatMul(x, u) v = MatMul(x, wv)"}, "not products of one tensor"),
        ({"parts": PACKED, "call": "k, q, v"}, "not products of one tensor"),
        ({"results": "y, qm"}, "not products of one tensor"),
        ({"kind": "double"}, "expected float or float16"),
        ({"call": "q, k, v, _, _, _, _, _, seen"}, "no match"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_ATTENTION_PROJECTIONS, text(**options), opset=OPSET)
