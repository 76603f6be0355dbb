"""Normalizations of sums."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.normalize.fuse_skip_normalization import (
    FUSE_SKIP_NORMALIZATION,
    FUSE_SKIP_NORMALIZATION_BIASED_SUM,
    FUSE_SKIP_NORMALIZATION_SUM,
)

OPSET = "23, com.microsoft 1"


def text(total="s = Add(x, r)", norm="LayerNormalization(s, g, b)", result="y", kind="float", residual="n, 3, 5"):
    return f"""graph(x: {kind}[n, 3, 5], r: {kind}[{residual}]) -> ({result}) {{ g: {kind}[5] = ... 1 b: {kind}[5] = ... 2
        c: {kind}[5] = ... 3 d: {kind}[3, 1] = ... 4 {total} y = {norm} }}"""


@pytest.mark.parametrize(
    ("given", "made", "inputs"),
    [
        ({}, "SkipLayerNormalization", 4),
        ({"norm": "LayerNormalization(s, g) {axis = 2, epsilon = 0.1}"}, "SkipLayerNormalization", 3),
        ({"total": "t = Add(x, c) s = Add(r, t)"}, "SkipLayerNormalization", 5),
        ({"norm": "RMSNormalization(s, g)"}, "SkipSimplifiedLayerNormalization", 3),
        (
            {"norm": "RMSNormalization(s, g) {epsilon = 0.1}", "total": "t = Add(c, x) s = Add(t, r)"},
            "SkipSimplifiedLayerNormalization",
            4,
        ),
    ],
)
@pytest.mark.parametrize("has_sum", [False, True])
def test_fires_with_the_same_numbers(given, made, inputs, has_sum):
    """Both kinds, with and without a bias and shift; where others read the sum, they have it too."""
    with_sum = FUSE_SKIP_NORMALIZATION_BIASED_SUM if "c" in given.get("total", "") else FUSE_SKIP_NORMALIZATION_SUM
    rule = with_sum if has_sum else FUSE_SKIP_NORMALIZATION
    model, fired = apply_rule(rule, text(**given, result="y, s" if has_sum else "y"), opset=OPSET)
    (node,) = model.graph
    assert (fired, node.op_type, len(node.inputs), len(node.outputs)) == (1, made, inputs, 4 if has_sum else 1)


def test_a_bias_that_is_none_is_added_before():
    """One that is no vector of the last dimension."""
    model, fired = apply_rule(FUSE_SKIP_NORMALIZATION, text("t = Add(x, d) s = Add(t, r)"), opset=OPSET)
    assert fired == 1
    assert operators(model) == ["Add", "SkipLayerNormalization"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"residual": "1, 3, 5"}, "expected the same"),
        ({"norm": "LayerNormalization(s, b, b) {axis = -2}"}, "other axes"),
        ({"kind": "double"}, "expected float or float16"),
        ({"result": "y, s"}, "no match"),
        ({"norm": "LayerNormalization(s, g, d)"}, "scale and shifts are"),
    ],
)
def test_declines(given, reason):
    """What is broadcast, other axes, types and shapes; a sum that others read is for the other rule."""
    assert reason in declines(FUSE_SKIP_NORMALIZATION, text(**given), opset=OPSET)
