"""Normalizations by mean and deviation, and norms of images."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.normalize.expand_mean_variance import EXPAND_GLOBAL_LP_POOL, EXPAND_MEAN_VARIANCE


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("axes", ["", "{axes = [0, 1]}", "{axes = [-1]}"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_normalization_fires_with_the_same_numbers(kind, axes, opset):
    """Along any axes, by default all but the channels of images."""
    text = f"opset {opset} graph(x: {kind}[n, 3, 4, 5]) -> (y) {{ y = MeanVarianceNormalization(x) {axes} }}"
    model, fired = apply_rule(EXPAND_MEAN_VARIANCE, text)
    assert fired == 1
    assert operators(model) == ["ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Add", "Div"]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("shape", ["n, 3, 4, 5", "n, 3, 7", "n, 3, 2, 3, 4"])
def test_pool_fires_with_the_same_numbers(shape, order):
    """Images of one axis and more."""
    model, fired = apply_rule(
        EXPAND_GLOBAL_LP_POOL, f"opset 21 graph(x: float[{shape}]) -> (y) {{ y = GlobalLpPool(x) {{p = {order}}} }}"
    )
    assert fired == 1
    assert operators(model) == [f"ReduceL{order}"]


def test_declines():
    """Other types, and other norms."""
    half = "opset 21 graph(x: float16[n, 3, 4, 5]) -> (y) { y = MeanVarianceNormalization(x) }"
    assert "float or double" in declines(EXPAND_MEAN_VARIANCE, half)
    assert "float or double" in declines(
        EXPAND_GLOBAL_LP_POOL, "opset 21 graph(x: float16[n, 3, 4]) -> (y) { y = GlobalLpPool(x) }"
    )
    assert "p=3" in declines(EXPAND_GLOBAL_LP_POOL, "opset 21 graph(x: float[n, 3, 4]) -> (y) { y = GlobalLpPool(x) {p = 3} }")
    only_mean = "opset 8 graph(x: float[n, 3, 4, 5]) -> (y) { y = MeanVarianceNormalization(x) {normalize_variance = 0} }"
    assert "does not divide" in declines(EXPAND_MEAN_VARIANCE, only_mean)
