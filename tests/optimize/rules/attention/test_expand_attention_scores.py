"""Attention whose scores are read, or in double, written as products and a softmax."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import declines, model_of, operators
from support.session_models import session

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.expand_attention_scores import (
    EXPAND_ATTENTION_IN_DOUBLE,
    EXPAND_ATTENTION_IN_DOUBLE_CACHE,
    EXPAND_ATTENTION_SCORES,
)

APART = "q: {0}[b, 4, s, 6], k: {0}[b, 2, t, 6], v: {0}[b, 2, t, 5]"
PACKED = "q: {0}[b, s, 24], k: {0}[b, t, 12], v: {0}[b, t, 10]"
SYMBOLS = {"b": 2, "s": 3, "t": 5, "p": 4, "total": 9, "u": 3}
SCORES = "y, _, _, scores"
PAST = "y, nk, nv, scores"


def text(more="", attributes="", results=SCORES, inputs=APART, kind="float"):
    heads = ", q_num_heads = 4, kv_num_heads = 2" if inputs is PACKED else ""
    given = ", ".join(name for name in results.split(", ") if name != "_")
    return f"""opset 25
        graph({inputs.format(kind)}, pk: {kind}[b, 2, p, 6], pv: {kind}[b, 2, p, 5], added: {kind}[b, 1, s, t],
        wide: {kind}[s, total], seen: bool[s, t], ends: int64[b], one: {kind}[s, 1], short: {kind}[s, u], few: bool[s, u], half: bfloat16[s, t]) -> ({given}) {{
        {results} = Attention(q, k, v{more}) {{scale = 0.4{heads}{attributes}}} }}"""


def feeds_of(source):
    feeds = random_feeds(model_of(source), symbols=SYMBOLS)
    if "seen" in feeds:
        feeds["seen"] = np.array([[0, 1, 1, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    return feeds | {"ends": np.array([3, 5])}


def rewritten(rule, source):
    model = model_of(source)
    INFER_SHAPES.run(model, Context())
    assert rewrite(model, RuleSet([rule]))[rule.name] == 1
    assert "Attention" not in operators(model)
    return model


CASES = [
    ("", ""),
    (", added", ""),
    (", seen", ""),
    (", one", ""),
    (", short", ""),
    (", few", ""),
    (", _, pk, pv", ""),
    (", wide, pk, pv", ", is_causal = 1"),
    ("", ", is_causal = 1"),
    (", seen", ", is_causal = 1"),
    (", _, pk, pv", ", is_causal = 1, left_window_size = 2"),
    ("", ", left_window_size = 1, right_window_size = 1"),
    (", _, _, _, ends", ""),
    (", _, _, _, ends", ", is_causal = 1"),
    (", added", ", softcap = 2.0"),
]


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize(("more", "attributes"), CASES)
def test_scores_are_those_of_each_stage(more, attributes, mode):
    """Before and after the limit, the mask and the softmax; queries that see no key have zeros at last."""
    source = text(more, f"{attributes}, qk_matmul_output_mode = {mode}", PAST if "pk" in more else SCORES)
    feeds = feeds_of(source)
    for old, new in zip(
        evaluate_model(model_of(source), feeds), evaluate_model(rewritten(EXPAND_ATTENTION_SCORES, source), feeds), strict=True
    ):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("more", "attributes"), CASES)
def test_double_is_computed_in_double(more, attributes):
    """With and without a cache."""
    rule, results = (EXPAND_ATTENTION_IN_DOUBLE_CACHE, "y, nk, nv") if "pk" in more else (EXPAND_ATTENTION_IN_DOUBLE, "y")
    source = text(more, attributes, results, kind="double")
    feeds = feeds_of(source)
    for old, new in zip(evaluate_model(model_of(source), feeds), evaluate_model(rewritten(rule, source), feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("precision", [10, 11, 16])
def test_a_softmax_has_its_own_precision(precision):
    """Scores and probabilities are rounded to it."""
    source = text(", added", f", softmax_precision = {precision}", "y")
    feeds = feeds_of(source)
    for old, new in zip(
        evaluate_model(model_of(source), feeds), evaluate_model(rewritten(EXPAND_ATTENTION_IN_DOUBLE, source), feeds), strict=True
    ):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6 if precision == 11 else 5e-3)


@pytest.mark.parametrize(
    ("source", "tolerance"),
    [
        (text(", seen", ", is_causal = 1"), 1e-5),
        (text(", wide, pk, pv", ", qk_matmul_output_mode = 3", PAST), 1e-5),
        (text("", ", is_causal = 1", inputs=PACKED), 1e-5),
        (text(", added", "", kind="float16"), 4e-3),
        (text(", _, _, _, ends", "", "y", kind="double"), 1e-12),
        (text(", wide, pk, pv", ", is_causal = 1", "y, nk, nv", kind="double"), 1e-12),
    ],
)
def test_all_of_it_is_compiled(source, tolerance):
    """In a session, with the numbers of the reference."""
    model, feeds = model_of(source), feeds_of(source)
    made = session(model)
    assert {placement.provider for placement in made.explain()} == {"CPUExecutionProvider"}
    for old, new in zip(evaluate_model(model, feeds), made.run(None, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance)


def test_a_mask_for_more_keys_than_there_are_is_an_error():
    """Where a run shows it."""
    source = text(", short")
    feeds = feeds_of(source) | {"short": np.zeros((3, 6), np.float32)}
    with pytest.raises(InvalidArgument):
        session(model_of(source)).run(None, feeds)


@pytest.mark.parametrize("length", [1, 5])
def test_before_opset_24_a_mask_is_for_all_keys(length):
    """Its last size may have a name of its own: all of it is compiled."""
    source = text(", short").replace("opset 25", "opset 23")
    model, feeds = model_of(source), feeds_of(source) | {"short": np.arange(3 * length, dtype=np.float32).reshape(3, length)}
    made = session(model)
    assert {placement.provider for placement in made.explain()} == {"CPUExecutionProvider"}
    for old, new in zip(evaluate_model(model, feeds), made.run(None, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [3, 6])
def test_before_opset_24_a_mask_for_other_keys_is_an_error(length):
    """Fewer than there are, and more."""
    source = text(", short").replace("opset 25", "opset 23")
    with pytest.raises(InvalidArgument):
        session(model_of(source)).run(None, feeds_of(source) | {"short": np.zeros((3, length), np.float32)})


@pytest.mark.parametrize(
    ("rule", "source", "reason"),
    [
        (EXPAND_ATTENTION_IN_DOUBLE, text(results="y"), "may be computed in float"),
        (EXPAND_ATTENTION_SCORES, text(results="y"), "no match"),
        (EXPAND_ATTENTION_SCORES, text(", half"), "the mask is bfloat16"),
        (EXPAND_ATTENTION_SCORES, text(kind="bfloat16"), "it is not of float"),
        (EXPAND_ATTENTION_SCORES, text(inputs=APART.replace("b, 4", "b, h")), "the number of heads"),
        (EXPAND_ATTENTION_SCORES, text("", ", softcap = -1.0"), "softcap is less than 0"),
        (EXPAND_ATTENTION_SCORES, text(", _, pk", results=PAST), "former keys or former values only"),
        (EXPAND_ATTENTION_SCORES, text(", _, pk, pv, ends", results=PAST), "former keys and numbers of keys"),
        (EXPAND_ATTENTION_SCORES, text("", ", qk_matmul_output_mode = 7"), "none of the standard's"),
    ],
)
def test_declines(rule, source, reason):
    """What one kernel computes, and what is not known."""
    assert reason in declines(rule, source)
