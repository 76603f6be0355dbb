"""Attention of com.microsoft whose inputs are packed, projected or added to, written as one whose inputs are apart."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import declines, model_of
from support.session_models import session

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.split_attention_inputs import PROJECT_ATTENTION, SPLIT_ATTENTION_INPUTS

RULES = [*SPLIT_ATTENTION_INPUTS, *PROJECT_ATTENTION]
PASTS = "pk: {kind}[n, 2, p, 4], pv: {kind}[n, 2, p, 4]"
SYMBOLS = {"n": 2, "s": 3, "t": 5, "p": 4, "p + s": 7}

CASES = {
    "a bias": ("MultiHeadAttention(q, k, v, b)", "q: {kind}[n, s, 8], k: {kind}[n, t, 8], v: {kind}[n, t, 8], b: {kind}[24]", "y"),
    "a bias of an encoder's": (
        "MultiHeadAttention(q, k, v, b)",
        "q: {kind}[n, s, 8], k: {kind}[n, 2, t, 4], v: {kind}[n, 2, t, 4], b: {kind}[24]",
        "y",
    ),
    "packed": ("MultiHeadAttention(q)", "q: {kind}[n, s, 2, 3, 4]", "y"),
    "packed with a bias": ("MultiHeadAttention(q, _, _, b)", "q: {kind}[n, s, 2, 3, 4], b: {kind}[24]", "y"),
    "packed keys": ("MultiHeadAttention(q, k)", "q: {kind}[n, s, 8], k: {kind}[n, t, 2, 2, 4]", "y"),
    "a bias and a past": (
        "MultiHeadAttention(q, k, v, b, _, _, pk, pv)",
        "q: {kind}[n, s, 8], k: {kind}[n, s, 8], v: {kind}[n, s, 8], b: {kind}[24], " + PASTS,
        "y, nk, nv",
    ),
    "scores": (
        "MultiHeadAttention(q, k, v, b)",
        "q: {kind}[n, s, 8], k: {kind}[n, t, 8], v: {kind}[n, t, 8], b: {kind}[24]",
        "y, nk, nv, qk",
    ),
    "one token": ("DecoderMaskedMultiHeadAttention(q, _, _, _, _, pk, pv)", "q: {kind}[n, 1, 24], " + PASTS, "y, nk, nv"),
    "one token with a bias": (
        "DecoderMaskedMultiHeadAttention(q, _, _, _, _, pk, pv, _, _, _, b)",
        "q: {kind}[n, 1, 24], b: {kind}[24], " + PASTS,
        "y, nk, nv",
    ),
    "one token of an encoder's": (
        "DecoderMaskedMultiHeadAttention(q, k, v, _, _, _, _, _, _, _, b)",
        "q: {kind}[n, 1, 8], k: {kind}[n, 2, t, 4], v: {kind}[n, 2, t, 4], b: {kind}[24]",
        "y",
    ),
    "weights that are fed": ("Attention(x, w, b)", "x: {kind}[n, s, 5], w: {kind}[5, 24], b: {kind}[24]", "y"),
    "no bias": ("Attention(x, w)", "x: {kind}[n, s, 5], w: {kind}[5, 24]", "y"),
    "keys that are returned": ("Attention(x, w, b)", "x: {kind}[n, s, 5], w: {kind}[5, 24], b: {kind}[24]", "y, z"),
    "what is added": (
        "Attention(x, w, b, _, past, a)",
        "x: {kind}[n, s, 5], w: {kind}[5, 24], b: {kind}[24], past: {kind}[2, n, 2, p, 4], a: {kind}[n, 2, s, p + s]",
        "y, z",
    ),
    "one token that is projected": (
        "DecoderMaskedSelfAttention(x, w, b, _, past, _, used)",
        "x: {kind}[n, 1, 5], w: {kind}[5, 24], b: {kind}[24], past: {kind}[2, n, 2, p, 4], used: int32[1]",
        "y, z",
    ),
}


def text(case, kind="float", attributes=""):
    call, inputs, results = CASES[case]
    return f"""opset 21, com.microsoft 1
        graph({inputs.format(kind=kind)}) -> ({results}) {{ {results} = com.microsoft.{call} {{num_heads = 2{attributes}}} }}"""


@pytest.mark.parametrize("case", CASES)
def test_fires_with_the_same_numbers(case):
    """Whatever is packed, and however many outputs there are."""
    before, after = model_of(text(case)), model_of(text(case))
    INFER_SHAPES.run(after, Context())
    assert sum(rewrite(after, RuleSet(RULES)).values()) >= 1
    feeds = random_feeds(before, symbols=SYMBOLS)
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["float", "float16"])
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_left_to_the_reference(case, kind):
    """What the rules make is taken apart further, and compiled."""
    made = session(model_of(text(case, kind)))
    assert {placement.provider for placement in made.explain()} == {"CPUExecutionProvider"}
    feeds = random_feeds(model_of(text(case, kind)), symbols=SYMBOLS)
    tolerance = 2e-2 if kind == "float16" else 1e-5
    for old, new in zip(evaluate_model(model_of(text(case, kind)), feeds), made.run(None, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance)


def test_hidden_sizes_of_their_own() -> None:
    """Values may be of another size than queries and keys."""
    source = text("no bias", attributes=", qkv_hidden_sizes = [8, 8, 4]").replace("[5, 24]", "[5, 20]")
    feeds = random_feeds(model_of(source), symbols=SYMBOLS)
    made = session(model_of(source))
    assert {placement.provider for placement in made.explain()} == {"CPUExecutionProvider"}
    np.testing.assert_allclose(made.run(None, feeds)[0], evaluate_model(model_of(source), feeds)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (text("a bias").replace(", b)", ")"), "nothing is added"),
        (text("a bias").replace("b: float[24]", "b: float[m]"), "the bias is"),
        (text("packed").replace("2, 3, 4]", "3, 2, 4]"), "what holds 3"),
        (text("one token").replace("[n, 1, 24]", "[n, 1, m]"), "what holds queries, keys and values"),
        (text("no bias").replace("w: float[5, 24]", "w: float[5, m]"), "not known to make"),
        (text("no bias", attributes=", do_rotary = 1"), "it rotates"),
        (text("what is added", attributes=", past_present_share_buffer = 1"), "its past is a buffer"),
        (text("no bias", kind="double"), "of double"),
    ],
)
def test_declines(source, reason):
    """What is apart already, sizes that are not known, rotations, buffers."""
    assert any(reason in declines(rule, source) for rule in RULES)
