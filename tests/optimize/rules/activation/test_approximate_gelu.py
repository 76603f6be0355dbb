"""Gelu by the hyperbolic tangent."""

import numpy as np
from support.evaluate import evaluate_model
from support.optimizing import apply_rule, declines, model_of

from sardonyx.optimize.rules.activation.approximate_gelu import APPROXIMATE_GELU

TEXT = "graph(x: float[n]) -> (y) { y = Gelu(x) }"


def test_fires_with_close_numbers():
    """The difference is at most 5e-4, whatever the number."""
    model, fired = apply_rule(APPROXIMATE_GELU, TEXT, rtol=1e-3)
    assert fired == 1
    assert next(iter(model.graph)).get("approximate") == "tanh"
    feeds = {"x": np.linspace(-8, 8, 10001, dtype=np.float32)}
    (exact,), (close,) = evaluate_model(model_of(TEXT), feeds), evaluate_model(model, feeds)
    assert 4e-4 < np.abs(exact - close).max() < 5e-4


def test_declines():
    """What is approximated already, and types that are more exact."""
    assert "expected float" in declines(APPROXIMATE_GELU, TEXT.replace("float", "double"))
    assert declines(APPROXIMATE_GELU, TEXT.replace("Gelu(x)", 'Gelu(x) {approximate = "tanh"}')) == "no match"
