"""Attention with one new token, written by operators for any number of them."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import declines, model_of, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.expand_decoder_masked_attention import (
    EXPAND_DECODER_CACHE_ATTENTION,
    EXPAND_DECODER_CACHE_SCORES,
    EXPAND_DECODER_CROSS_ATTENTION,
    EXPAND_DECODER_CROSS_SCORES,
)

CROSS = "y = com.microsoft.DecoderMaskedMultiHeadAttention(q, ek, ev{more}) {{num_heads = 2{attributes}}}"
CROSS_SCORES = CROSS.replace("y =", "y, _, _, qk =").replace("num_heads", "output_qk = 1, num_heads")
CACHE = "y, keys, values = com.microsoft.DecoderMaskedMultiHeadAttention(q, k, v{more}, pk, pv) {{num_heads = 2{attributes}}}"
CACHE_SCORES = CACHE.replace("values =", "values, qk =").replace("num_heads", "output_qk = 1, num_heads")
SHARED = """y, keys, values = com.microsoft.DecoderMaskedMultiHeadAttention(q, k, v{more}) {{
    num_heads = 2, past_present_share_buffer = 1{attributes}}}"""
BUFFERS = ", _, _, pk, pv, used"
SYMBOLS = {"n": 3, "t": 5, "p": 6, "total": 7, "ends": 6}


def text(call, more="", attributes="", kind="float", q="n, 1, 8"):
    is_cross = "keys" not in call
    results, T = ("y", "t") if is_cross else ("y, keys, values", "total")
    results += ", qk" if "output_qk" in call else ""
    return f"""opset 21, com.microsoft 1
        graph(q: {kind}[{q}], k: {kind}[n, 1, 8], v: {kind}[n, 1, 12], ek: {kind}[n, 2, t, 4], ev: {kind}[n, 2, t, 6],
        seen: int32[n, {T}], added: {kind}[1, 2, 1, {T}],
        pk: {kind}[n, 2, p, 4], pv: {kind}[n, 2, p, 6], used: int32[1], b: {kind}[28], w: int32[1], c: int32[n, 1, p]) -> ({results}) {{
        {call.format(more=more, attributes=attributes)} }}"""


def feeds_of(source, used=2):
    feeds = random_feeds(model_of(source), symbols=SYMBOLS)
    feeds["used"] = np.array([used], np.int32)
    feeds["seen"] = (np.random.default_rng(5).random(feeds["seen"].shape) > 0.3).astype(np.int32)
    return feeds


@pytest.mark.parametrize(
    ("rule", "source", "made"),
    [
        (EXPAND_DECODER_CROSS_ATTENTION, text(CROSS), ["MultiHeadAttention"]),
        (EXPAND_DECODER_CROSS_ATTENTION, text(CROSS, ", seen", ", mask_filter_value = -7.0"), ["MultiHeadAttention"]),
        (EXPAND_DECODER_CROSS_ATTENTION, text(CROSS, ", seen, added", ", scale = 0.3"), ["MultiHeadAttention"]),
        (EXPAND_DECODER_CACHE_ATTENTION, text(CACHE, ", seen, _"), ["MultiHeadAttention"]),
        (EXPAND_DECODER_CACHE_ATTENTION, text(CACHE, ", _, added", ", scale = 0.3"), ["MultiHeadAttention"]),
        (EXPAND_DECODER_CROSS_SCORES, text(CROSS_SCORES, ", seen, added", ", scale = 0.3"), ["MultiHeadAttention"]),
        (EXPAND_DECODER_CACHE_SCORES, text(CACHE_SCORES, ", seen, _"), ["MultiHeadAttention"]),
    ],
)
def test_fires_with_the_same_numbers(rule, source, made):
    """Keys of an encoder and a growing cache; masks, scales, scores, and values of another size than keys."""
    before, after = model_of(source), model_of(source)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([rule]))[rule.name] == 1
    assert [name for name in operators(after) if name in ("MultiHeadAttention", "Attention")] == made
    feeds = feeds_of(source)
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("rule", "source", "reason"),
    [
        (EXPAND_DECODER_CROSS_ATTENTION, text(CROSS.replace("ek, ev", "k, v")), "not known to be those of an encoder"),
        (EXPAND_DECODER_CACHE_ATTENTION, text(CACHE.replace("q, k, v", "q, ek, ev"), ", _, _"), "not known to be of one token"),
        (EXPAND_DECODER_CACHE_ATTENTION, text(SHARED, BUFFERS), "no match"),
    ],
)
def test_declines(rule, source, reason):
    """Keys that lie otherwise, and a buffer for them."""
    assert reason in declines(rule, source)
