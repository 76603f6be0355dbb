"""Attention of com.microsoft whose keys and values lie in a buffer, written by operators of ai.onnx."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import declines, model_of, operators
from support.session_models import session

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.expand_attention_buffer import EXPAND_DECODER_SHARED_ATTENTION, EXPAND_MULTI_HEAD_BUFFER

DECODER = "DecoderMaskedMultiHeadAttention(q, k, v{masks}, pk, pv, used{more}) {{past_present_share_buffer = 1, "
MANY = "MultiHeadAttention(q, k, v, _{masks}, pk, pv, used{more}) {{"
NO_MASKS = ", _, _"
BATCH, KEYS, BEAMS = 4, 6, 2


def text(call, masks=NO_MASKS, more="", attributes="", kind="float", q="n, 1, 8", S="1"):
    return f"""opset 21, com.microsoft 1
        graph(q: {kind}[{q}], k: {kind}[n, {S}, 8], v: {kind}[n, {S}, 12], seen: int32[n, ends], added: {kind}[1, 2, {S}, ends],
        pk: {kind}[n, 2, p, 4], pv: {kind}[n, 2, p, 6], used: int32[1], b: {kind}[28], w: int32[1], c: int32[half, w, p])
        -> (y, keys, values) {{
        y, keys, values = com.microsoft.{call.format(masks=masks, more=more)} num_heads = 2{attributes}}} }}"""


def feeds_of(source, used=2, S=1):
    symbols = {"n": BATCH, "p": KEYS, "ends": used + S, "half": BATCH // BEAMS, "w": BEAMS, "s": S}
    feeds, random = random_feeds(model_of(source), symbols=symbols), np.random.default_rng(5)
    feeds |= {"used": np.array([used], np.int32), "w": np.array([BEAMS], np.int32)}
    feeds["c"] = random.integers(0, BEAMS, feeds["c"].shape).astype(np.int32)
    feeds["seen"] = (random.random(feeds["seen"].shape) > 0.3).astype(np.int32)
    return feeds


def compare(rule, source, feeds):
    before, after = model_of(source), model_of(source)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([rule]))[rule.name] == 1
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)
    return operators(after)


@pytest.mark.parametrize("attributes", ["", ", scale = 0.3, mask_filter_value = -7.0"])
@pytest.mark.parametrize("masks", [NO_MASKS, ", seen, _", ", _, added", ", seen, added"])
@pytest.mark.parametrize(("rule", "call"), [(EXPAND_DECODER_SHARED_ATTENTION, DECODER), (EXPAND_MULTI_HEAD_BUFFER, MANY)])
def test_fires_with_the_same_numbers(rule, call, masks, attributes):
    """Masks are for the keys that are used; values are of another size than keys."""
    source = text(call, masks, attributes=attributes)
    made = compare(rule, source, feeds_of(source))
    assert [name for name in made if name in ("TensorScatter", "Attention")] == ["TensorScatter", "TensorScatter", "Attention"]


@pytest.mark.parametrize("used", [0, 3, 5])
@pytest.mark.parametrize(
    ("rule", "call", "more"), [(EXPAND_DECODER_SHARED_ATTENTION, DECODER, ", w, c"), (EXPAND_MULTI_HEAD_BUFFER, MANY, ", c")]
)
def test_beams_read_keys_that_others_wrote(rule, call, more, used):
    """Each its own new one."""
    source = text(call, more=more)
    assert "GatherND" in compare(rule, source, feeds_of(source, used))


@pytest.mark.parametrize("causal", [0, 1])
def test_several_queries(causal):
    """The new keys go behind the used ones; a causal query sees none that is later."""
    source = text(MANY, attributes=f", unidirectional = {causal}", q="n, s, 8", S="s")
    compare(EXPAND_MULTI_HEAD_BUFFER, source, feeds_of(source, S=3))


@pytest.mark.parametrize("used", [0, 1, 5])
@pytest.mark.parametrize("kind", ["float", "float16"])
@pytest.mark.parametrize("more", ["", ", w, c"])
def test_a_buffer_is_filled_up_and_stays_as_it_was_behind(used, kind, more):
    """From the first key to the last, in a session that leaves nothing to the reference."""
    source = text(DECODER, more=more, kind=kind)
    feeds, made = feeds_of(source, used), session(model_of(source))
    assert {placement.provider for placement in made.explain()} == {"CPUExecutionProvider"}
    for old, new in zip(evaluate_model(model_of(source), feeds), made.run(None, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-2 if kind == "float16" else 1e-5, atol=2e-3 if kind == "float16" else 1e-6)


@pytest.mark.parametrize("used", [-1, 6])
def test_a_buffer_without_space_is_an_error(used):
    """Nothing is written beyond it."""
    source = text(DECODER)
    with pytest.raises(InvalidArgument):
        session(model_of(source)).run(None, feeds_of(source, 2) | {"used": np.array([used], np.int32)})


@pytest.mark.parametrize("beam", [-1, BEAMS])
def test_a_beam_that_is_not_there_is_an_error(beam):
    """Where a key of it is used."""
    source = text(DECODER, more=", w, c")
    feeds = feeds_of(source)
    feeds["c"][1, 0, 1] = beam
    with pytest.raises(InvalidArgument):
        session(model_of(source)).run(None, feeds)


@pytest.mark.parametrize(
    ("rule", "source", "reason"),
    [
        (EXPAND_DECODER_SHARED_ATTENTION, text(DECODER, more=", _, _, b"), "no match"),
        (EXPAND_DECODER_SHARED_ATTENTION, text(DECODER, q="n, s, 8"), "expected (B, S, H x D)"),
        (EXPAND_DECODER_SHARED_ATTENTION, text(DECODER, q="n, s, 8", S="s"), "expected one"),
        (EXPAND_MULTI_HEAD_BUFFER, text(MANY, more=", c", q="n, s, 8", S="s"), "there are s queries"),
        (EXPAND_DECODER_SHARED_ATTENTION, text(DECODER, q="other, 1, 8"), "not known to fit"),
        (EXPAND_DECODER_SHARED_ATTENTION, text(DECODER, kind="double"), "of double"),
    ],
)
def test_declines(rule, source, reason):
    """A bias, and shapes and types that do not fit."""
    assert reason in declines(rule, source)
