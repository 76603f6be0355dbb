"""Attention of com.microsoft with former keys and values."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import apply_rule, declines, model_of, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.expand_attention_cache import EXPAND_ATTENTION_CACHE

SYMBOLS = {"n": 2, "s": 3, "p": 5, "t": 8}


def text(call="Attention(x, w, b, m, p)", attributes="num_heads = 2", kind="float", past="2, n, 2, p, 4"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[n, s, 6], m: int32[n, t], l: int32[n], u: {kind}[6, 24], p: {kind}[{past}],
        a: {kind}[1, 2, s, t], used: int32[1]) -> (y, z) {{
        w: {kind}[6, 24] = ... 1 b: {kind}[24] = ... 2 y, z = com.microsoft.{call} {{{attributes}}} }}"""


@pytest.mark.parametrize(
    ("call", "attributes"),
    [
        ("Attention(x, w, _, _, p)", "num_heads = 2"),
        ("Attention(x, w, b, _, p)", "num_heads = 2, scale = 0.5"),
        ("Attention(x, w, b, _, p)", "num_heads = 2, unidirectional = 1"),
        ("Attention(x, w, b, m, p)", "num_heads = 2, mask_filter_value = -9.0"),
        ("Attention(x, w, b, m, p)", "num_heads = 2, unidirectional = 1"),
    ],
)
def test_fires_with_the_same_numbers(call, attributes):
    """With and without bias and mask, causal, a scale of its own; of the result and of the cache."""
    before, after = model_of(text(call, attributes)), model_of(text(call, attributes))
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([EXPAND_ATTENTION_CACHE]))["expand_attention_cache"] == 1
    assert {"Split", "Attention", "Concat"} <= set(operators(after))
    feeds = random_feeds(before, symbols=SYMBOLS)
    feeds["m"] = np.array([[1, 1, 0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1, 1, 1]], np.int32)
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


def test_a_first_run_has_an_empty_past():
    """Of no keys."""
    model, fired = apply_rule(EXPAND_ATTENTION_CACHE, text("Attention(x, w, b, m, p)"), symbols=SYMBOLS | {"p": 0, "t": 3})
    assert fired == 1
    assert "Attention" in operators(model)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"call": "Attention(x, u, b, m, p)"}, "no match"),
        ({"attributes": "num_heads = 2, do_rotary = 1"}, "no match"),
        ({"call": "Attention(x, w, b, m, p, _, used)", "attributes": "num_heads = 2, past_present_share_buffer = 1"}, "no match"),
        ({"call": "Attention(x, w, b, m, p, a)"}, "no match"),
        ({"attributes": "num_heads = 2, qkv_hidden_sizes = [8, 8, 8]"}, "not of one size"),
        ({"call": "Attention(x, w, b, l, p)"}, "the mask is (n,)"),
        ({"past": "2, n, 2, p, d"}, "the past is"),
        ({"kind": "double"}, "expected float or float16"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_ATTENTION_CACHE, text(**options))
