"""Routers of experts in groups as choices by TopK."""

import numpy as np
import pytest
from support.cpu_run import reference, run_cpu
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.hybrid.expand_group_router import EXPAND_GROUP_ROUTER, EXPAND_ROUTER_SCORES


def router(kind="float", logits="n, 12", bias="12", attributes="top_k = 3"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[{logits}], b: float[{bias}]) -> (y) {{ y = com.microsoft.MoEGroupRouter(x, b) {{{attributes}}} }}"""


@pytest.mark.parametrize(("kind", "rtol"), [("float", 1e-5), ("float16", 2e-3)])
@pytest.mark.parametrize(
    "attributes",
    [
        "top_k = 3",
        "top_k = 12, router_sentinel = -5.0",
        "top_k = 3, n_group = 4, topk_group = 2",
        "top_k = 5, n_group = 4, topk_group = 1, group_topk = 1",
        "top_k = 2, n_group = 2, topk_group = 2, group_topk = 9",
    ],
)
def test_fires_with_the_same_numbers(kind, rtol, attributes):
    """One group and several; fewer experts in the groups that are kept than are asked for; groups smaller than their best."""
    model, fired = apply_rule(EXPAND_GROUP_ROUTER, router(kind, attributes=attributes), rtol=rtol)
    assert fired == 1
    assert "TopK" in operators(model)


def test_leading_axes_are_tokens():
    """Of logits of three axes."""
    assert apply_rule(EXPAND_GROUP_ROUTER, router(logits="b, t, 12", attributes="top_k = 3, n_group = 3, topk_group = 2"))[1] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "double"}, "expected float or float16"),
        ({"logits": "n, e", "bias": "e"}, "no known number of experts"),
        ({"bias": "11"}, "no known number of experts"),
        ({"attributes": "top_k = 13"}, "do not fit 12 experts"),
        ({"attributes": "top_k = 2, n_group = 5"}, "do not fit 12 experts"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_GROUP_ROUTER, router(**options))


def scores(kind="float", x="n, 256", weight="12, 256", bias="12", given=", w", attributes="top_k = 3"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[{x}], b: float[{bias}], w: {kind}[{weight}]) -> (y, z) {{
        _, y, z = com.microsoft.MoEGroupRouter(x, b{given}) {{{attributes}}} }}"""


@pytest.mark.parametrize(("kind", "rtol"), [("float", 1e-5), ("float16", 2e-3)])
@pytest.mark.parametrize("options", [{}, {"x": "n, 12", "given": ""}, {"x": "b, t, 12", "given": ""}])
def test_scores_fire_with_the_same_numbers(kind, rtol, options):
    """Of tokens that are projected, and of logits."""
    assert apply_rule(EXPAND_ROUTER_SCORES, scores(kind, **options), rtol=rtol)[1] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "double"}, "expected float or float16"),
        ({"x": "n, 255", "weight": "12, 255"}, "expected a positive multiple of 256"),
        ({"weight": "e, 256", "bias": "e"}, "no known number of experts"),
        ({"attributes": "top_k = 3, n_group = 2"}, "do not fit one group"),
        ({"x": "n, 200"}, "not known to fit"),
    ],
)
def test_scores_decline(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_ROUTER_SCORES, scores(**options))


def test_equal_scores_and_numbers_that_are_none():
    """Of equal scores the first counts, NaN is the largest, and infinities have their place."""
    body = router(attributes="top_k = 3, n_group = 4, topk_group = 2").partition("\n")[2]
    x = np.array([[0.0] * 12, [np.nan, *[1.0] * 11], [np.inf] * 6 + [-np.inf] * 6, [*[-1.0] * 11, np.nan]], np.float32)
    feeds = {"x": x, "b": np.zeros(12, np.float32)}
    np.testing.assert_allclose(run_cpu(body, feeds)[0], reference(body, feeds)[0], rtol=1e-6)
