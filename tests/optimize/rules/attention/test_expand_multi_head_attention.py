"""MultiHeadAttention of com.microsoft."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import apply_rule, declines, model_of, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.expand_multi_head_attention import (
    EXPAND_MULTI_HEAD_ATTENTION,
    EXPAND_MULTI_HEAD_ATTENTION_CACHE,
    EXPAND_MULTI_HEAD_ATTENTION_SCORES,
)

SYMBOLS = {"n": 2, "s": 4, "t": 5, "p": 3, "p + t": 8, "p + s": 7, "s + p": 7}


def text(inputs="q, k, v", attributes="num_heads = 2", results="y", kind="float", behind=""):
    return f"""opset 21, com.microsoft 1
        graph(q: {kind}[n, s, 6], k: {kind}[n, t, 6], v: {kind}[n, t, 8], kh: {kind}[n, 2, t, 3], vh: {kind}[n, 2, t, 3],
        m3: int32[n, s, t], mt: int32[n, t, s], a: {kind}[1, 2, s, t], ap: {kind}[n, 1, s, s + p], m: int32[n, t], l: int32[n], ks: {kind}[n, s, 6], u: {kind}[20],
        pk: {kind}[n, 2, p, 3], pv: {kind}[n, 2, p, 3]) -> ({results}) {{ b: {kind}[20] = ... 1 c: {kind}[18] = ... 2 zero: {kind}[] = 0
        y, yk, yv = com.microsoft.MultiHeadAttention({inputs}) {{{attributes}}} {behind} }}"""


@pytest.mark.parametrize(
    "inputs",
    [
        "q, k, v",
        "q, k, v, b",
        "q, kh, vh",
        "q, kh, vh, c",
        "q, k, v, _, _, a",
        "q, k, v, b, m",
        "q, k, v, _, m, a",
        "q, k, v, b, m3",
        "q, kh, vh, _, m3, a",
        "q, k, v, b, l",
        "q, kh, vh, _, l, a",
    ],
)
@pytest.mark.parametrize("attributes", ["num_heads = 2", "num_heads = 2, scale = 0.7, mask_filter_value = -50.0"])
def test_fires_with_the_same_numbers(inputs, attributes):
    """Heads packed or apart, a bias, keys that are hidden, what is added to the scores."""
    model, fired = apply_rule(EXPAND_MULTI_HEAD_ATTENTION, text(inputs, attributes), symbols=SYMBOLS)
    assert fired == 1
    assert "Attention" in operators(model)


@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        ("q, ks, ks, _, _, ap, pk, pv", "num_heads = 2"),
        ("q, kh, vh, _, _, _, pk, pv", "num_heads = 2"),
        ("q, ks, ks, _, _, _, pk, pv", "num_heads = 2, unidirectional = 1"),
    ],
)
def test_former_keys(inputs, attributes):
    """They come before the new ones, and all of them are outputs; a causal query sees them all."""
    body = text(inputs, attributes, results="y, yk, yv")
    model, fired = apply_rule(EXPAND_MULTI_HEAD_ATTENTION_CACHE, body, symbols=SYMBOLS)
    assert fired == 1
    (node,) = [node for node in model.graph if node.op_type == "Attention"]
    assert len(node.outputs) == 3


def test_causal():
    """As many queries as keys."""
    _, fired = apply_rule(EXPAND_MULTI_HEAD_ATTENTION, text("q, ks, ks", "num_heads = 2, unidirectional = 1"), symbols=SYMBOLS)
    assert fired == 1


@pytest.mark.parametrize(
    ("result", "behind", "hidden"),
    [
        ("y", "", np.nan),
        ("z", "i = IsNaN(y) z = Where(i, zero, y)", 0.0),
    ],
)
def test_queries_that_see_no_key(result, behind, hidden):
    """They are NaN, or zeros by a guard behind, which is no longer needed then."""
    body = text("q, k, v, _, _, a", results=result, behind=behind)
    before, after = model_of(body), model_of(body)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([EXPAND_MULTI_HEAD_ATTENTION]))["expand_multi_head_attention"] == 1
    assert ("Equal" in operators(after), "IsNaN" in operators(after)) == (not behind, False)
    feeds = random_feeds(before, symbols=SYMBOLS)
    feeds["a"] = np.where(np.arange(4)[:, None] == 1, -np.inf, feeds["a"]).astype(np.float32)
    with np.errstate(invalid="ignore"):
        (old,), (new,) = evaluate_model(before, feeds), evaluate_model(after, feeds)
    np.testing.assert_array_equal(old[:, 1], np.full_like(old[:, 1], hidden))
    np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"inputs": "q, k, v, u"}, "no match"),
        ({"kind": "double"}, "expected float or float16"),
        ({"inputs": "q, kh, v"}, "lie as the values do"),
        ({"attributes": "num_heads = 2, unidirectional = 1"}, "it is causal"),
        ({"inputs": "q, ks, ks, _, _, ap", "attributes": "num_heads = 2, unidirectional = 1"}, "it is causal, and what"),
        ({"inputs": "q, k, v, _, _, _, pk, pv", "attributes": "num_heads = 2, unidirectional = 1"}, "it is causal"),
        ({"inputs": "q, k, v, _, l, _, pk, pv"}, "what hides keys is (n,)"),
        ({"inputs": "q, k, v, _, mt"}, "what hides keys is (n, t, s)"),
        ({"inputs": "q, kh, vh, b"}, "the bias is (20,)"),
        ({"inputs": "q, k, v, _, _, _, pk"}, "former keys or former values"),
        ({"inputs": "q, k, v", "results": "y, yk"}, "no match"),
        ({"inputs": "q, k, v, _, _, a", "results": "i", "behind": "i = IsNaN(y)"}, "it has a guard"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_MULTI_HEAD_ATTENTION, text(**options))


def test_half():
    """What hides keys is of the type too, and no less than that has it."""
    body = text("q, k, v, _, m, a", "num_heads = 2, mask_filter_value = -50.0", kind="float16")
    assert apply_rule(EXPAND_MULTI_HEAD_ATTENTION, body, symbols=SYMBOLS, rtol=4e-3)[1] == 1
    beyond = text("q, k, v, _, m", "num_heads = 2, mask_filter_value = -1e9", kind="float16")
    assert "beyond float16" in declines(EXPAND_MULTI_HEAD_ATTENTION, beyond)


def test_a_guard_against_other_nan_stays():
    """Without a mask every query sees keys."""
    body = text(results="z", behind="i = IsNaN(y) z = Where(i, zero, y)")
    model, fired = apply_rule(EXPAND_MULTI_HEAD_ATTENTION, body, symbols=SYMBOLS)
    assert (fired, operators(model)) == (1, ["Attention", "IsNaN", "Where"])


@pytest.mark.parametrize("inputs", ["q, k, v", "q, kh, vh", "q, k, v, b, m, a", "q, ks, ks, _, _, ap, pk, pv"])
def test_scores_that_are_read(inputs):
    """They are those that enter the softmax."""
    source = text(inputs, results="y, yk, yv, qk").replace("y, yk, yv =", "y, yk, yv, qk =")
    before, after = model_of(source), model_of(source)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([EXPAND_MULTI_HEAD_ATTENTION_SCORES])) == {"expand_multi_head_attention_scores": 1}
    feeds = random_feeds(before, symbols=SYMBOLS)
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)
