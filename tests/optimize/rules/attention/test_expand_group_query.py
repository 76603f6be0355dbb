"""GroupQueryAttention with positions and norms, written as one that has neither."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import declines, model_of, operators
from support.session_models import session

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.expand_group_query import EXPAND_GROUP_QUERY

KEPT = "k, v, past_k, past_v, lengths, longest"
PACKED = "_, _, past_k, past_v, lengths, longest"
POSITIONS = ", cos, sin, ids"
NORMS = ", cos, sin, {ids}, _, _, _, _, a, b"


def text(inputs, attributes="do_rotary = 1", kind="float", q="n, s, 24", ids="n, s", results="y, pk, pv"):
    return f"""opset 21, com.microsoft 1
        graph(q: {kind}[{q}], k: {kind}[n, s, 12], v: {kind}[n, s, 12], past_k: {kind}[n, 2, p, 6], past_v: {kind}[n, 2, p, 6],
        lengths: int32[n], mask: int64[n, t], cos: {kind}[9, 2], sin: {kind}[9, 2], ids: int64[{ids}], a: {kind}[6], b: {kind}[6])
        -> ({results}) {{
        width = Shape(mask) {{start = 1, end = 2}}
        longest = Cast(width) {{to = 6}}
        {results} = com.microsoft.GroupQueryAttention(q, {inputs}) {{num_heads = 4, kv_num_heads = 2, {attributes}}} }}"""


def feeds_of(source):
    feeds = random_feeds(model_of(source), symbols={"n": 2, "s": 3, "p": 4, "t": 7})
    return feeds | {"lengths": np.array([6, 6], np.int32), "ids": np.array([[5, 0, 8], [2, 2, 3]])}


@pytest.mark.parametrize(
    ("source", "made"),
    [
        (text(KEPT + POSITIONS), ["RotaryEmbedding"] * 2),
        (text(KEPT + POSITIONS, "do_rotary = 1, rotary_interleaved = 1, scale = 0.3"), ["RotaryEmbedding"] * 2),
        (text(PACKED + POSITIONS, q="n, s, 48"), ["Split"] + ["RotaryEmbedding"] * 2),
        (text(KEPT + POSITIONS, "local_window_size = 3"), []),
        (text(KEPT + NORMS.format(ids="_")), ["RMSNormalization"] * 2),
        (text(KEPT + NORMS.format(ids="_"), "do_rotary = 1, qk_norm_epsilon = 0.1"), ["RMSNormalization"] * 2),
        (text(PACKED + NORMS.format(ids="ids"), q="n, s, 48"), ["Split"] + ["RMSNormalization"] * 2 + ["RotaryEmbedding"] * 2),
    ],
)
def test_fires_with_the_same_numbers(source, made):
    """Positions in any order, norms, both, and what is packed."""
    before, after = model_of(source), model_of(source)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([EXPAND_GROUP_QUERY]))[EXPAND_GROUP_QUERY.name] == 1
    assert [name for name in operators(after) if name in ("RotaryEmbedding", "RMSNormalization", "Split")] == made
    feeds = feeds_of(source)
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["float", "float16"])
def test_all_of_it_is_compiled(kind):
    """In a session, which gives the numbers of the reference."""
    source = text(KEPT + NORMS.format(ids="ids"), kind=kind)
    model, feeds = model_of(source), feeds_of(source)
    made = session(model)
    assert {placement.provider for placement in made.explain()} == {"CPUExecutionProvider"}
    wide = {"float": 1e-5, "float16": 1e-2}[kind]
    for old, new in zip(evaluate_model(model, feeds), made.run(None, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=wide, atol=wide)


@pytest.mark.parametrize("position", [-1, 9])
def test_a_position_without_angles_is_an_error(position):
    """Also one below zero."""
    source = text(KEPT + POSITIONS)
    feeds = feeds_of(source) | {"ids": np.full((2, 3), position)}
    with pytest.raises(InvalidArgument):
        session(model_of(source)).run(None, feeds)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (text(KEPT + ", cos, sin"), "neither positions nor norms"),
        (text(KEPT + POSITIONS, ids="n, other"), "expected one for each"),
        (text(KEPT + ", cos, sin, _, _, _, _, _, a"), "alone are normalized"),
        (text(KEPT + POSITIONS, q="n, s, w"), "not known to hold 4 heads"),
        (text(KEPT + POSITIONS, kind="bfloat16"), "expected float or float16"),
        (text(KEPT + POSITIONS, "qk_output = 1", results="y, pk, pv, scores"), "no match"),
    ],
)
def test_declines(source, reason):
    """What is not known, and what it has no equal for."""
    assert reason in declines(EXPAND_GROUP_QUERY, source)
