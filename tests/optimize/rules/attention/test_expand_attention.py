"""Attention of com.microsoft."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import apply_rule, declines, model_of, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.expand_attention import EXPAND_ATTENTION

SYMBOLS = {"n": 2, "s": 4}


def text(call="Attention(x, w, b)", attributes="num_heads = 2", kind="float"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[n, s, 6], m: int32[n, s], l: int32[n], o: int32[n, s, s], p: int32[s, n, s], u: {kind}[6, 24],
        a: {kind}[1, 2, s, s]) -> (y) {{
        w: {kind}[6, 24] = ... 1 b: {kind}[24] = ... 2 y = com.microsoft.{call} {{{attributes}}} }}"""


@pytest.mark.parametrize(
    ("call", "attributes"),
    [
        ("Attention(x, w)", "num_heads = 2"),
        ("Attention(x, w, b)", "num_heads = 4, scale = 0.5"),
        ("Attention(x, w, b, _, _, a)", "num_heads = 2"),
        ("Attention(x, w, b, m, _, a)", "num_heads = 2, mask_filter_value = -9.0"),
        ("Attention(x, w, b)", "num_heads = 2, unidirectional = 1"),
        ("Attention(x, w, b, m)", "num_heads = 2, unidirectional = 1"),
    ],
)
def test_fires_with_the_same_numbers(call, attributes):
    """With and without bias, a scale of its own, what is added to the scores, causal."""
    model, fired = apply_rule(EXPAND_ATTENTION, text(call, attributes), symbols=SYMBOLS)
    assert fired == 1
    assert {"Split", "Attention"} <= set(operators(model))


@pytest.mark.parametrize("mask", ["m", "l", "o"])
def test_masks(mask):
    """Keys that are seen, of all queries or of each, or how many are."""
    body = text(f"Attention(x, w, b, {mask})", "num_heads = 2, mask_filter_value = -50.0")
    before, after = model_of(body), model_of(body)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([EXPAND_ATTENTION]))["expand_attention"] == 1
    feeds = random_feeds(before, symbols=SYMBOLS)
    feeds |= {"m": np.array([[1, 1, 0, 1], [0, 0, 0, 0]], np.int32), "l": np.array([3, 0], np.int32)}
    feeds["o"] = np.stack([np.tril(np.ones((4, 4), np.int32)), np.eye(4, k=1, dtype=np.int32)])
    (old,), (new,) = evaluate_model(before, feeds), evaluate_model(after, feeds)
    np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"call": "Attention(x, u, b)"}, "no match"),
        ({"attributes": "num_heads = 2, do_rotary = 1"}, "no match"),
        ({"call": "Attention(x, w, b, _, _, a)", "attributes": "num_heads = 2, unidirectional = 1"}, "it is causal"),
        ({"call": "Attention(x, w, b, _, _, o)"}, "what is added to the scores is"),
        ({"attributes": "num_heads = 2, qkv_hidden_sizes = [8, 8, 8]"}, "not of one size"),
        ({"call": "Attention(x, w, b, p)"}, "the mask is (s, n, s)"),
        ({"kind": "double"}, "expected float or float16"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_ATTENTION, text(**options))
