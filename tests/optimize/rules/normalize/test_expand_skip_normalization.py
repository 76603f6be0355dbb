"""Normalizations of com.microsoft that take a residual."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.normalize.expand_skip_normalization import (
    EXPAND_SKIP_LAYER_NORM_SUM,
    EXPAND_SKIP_NORMALIZATION,
    EXPAND_SKIP_RMS_NORM_SUM,
)


def text(call, outputs="y", kind="float"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[n, 3, 5], r: {kind}[n, 3, 5], q: {kind}[1, 3, 5], g: {kind}[5], b: {kind}[5], c: {kind}[5])
        -> ({outputs}) {{ {outputs if outputs == "y" else "y, _, _, s"} = com.microsoft.{call} }}"""


@pytest.mark.parametrize(
    ("call", "made"),
    [
        ("SkipLayerNormalization(x, r, g)", ["Add", "LayerNormalization"]),
        ("SkipLayerNormalization(x, q, g, b) {epsilon = 0.1}", ["Add", "LayerNormalization"]),
        ("SkipLayerNormalization(x, r, g, b, c)", ["Add", "Add", "LayerNormalization"]),
        ("SkipSimplifiedLayerNormalization(x, r, g)", ["Add", "RMSNormalization"]),
        ("SkipSimplifiedLayerNormalization(x, r, g, c) {epsilon = 0.1}", ["Add", "Add", "RMSNormalization"]),
    ],
)
def test_fires_with_the_same_numbers(call, made):
    """With and without what is added, and what is added to the result."""
    model, fired = apply_rule(EXPAND_SKIP_NORMALIZATION, text(call))
    assert fired == 1
    assert operators(model) == made


@pytest.mark.parametrize(
    ("rule", "call"),
    [
        (EXPAND_SKIP_LAYER_NORM_SUM, "SkipLayerNormalization(x, r, g, b, c)"),
        (EXPAND_SKIP_RMS_NORM_SUM, "SkipSimplifiedLayerNormalization(x, r, g)"),
    ],
)
def test_the_sum_is_a_result_too(rule, call):
    """Residuals of the next layer read it."""
    model, fired = apply_rule(rule, text(call, "y, s"))
    assert fired == 1
    assert "Add" in operators(model)
    assert [value.name for value in model.graph.outputs] == ["y", "s"]


def test_half():
    """The sum is rounded once more."""
    _, fired = apply_rule(EXPAND_SKIP_NORMALIZATION, text("SkipLayerNormalization(x, r, g)", kind="float16"), rtol=4e-3)
    assert fired == 1


def test_declines_double():
    """For which it is not defined everywhere."""
    reason = declines(EXPAND_SKIP_NORMALIZATION, text("SkipLayerNormalization(x, r, g)", kind="double"))
    assert "expected float or float16" in reason
