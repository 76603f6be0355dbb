"""Rotary embeddings by three streams of positions."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import declines, model_of

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.hybrid.expand_multimodal_rotary import EXPAND_MULTIMODAL_ROTARY

SYMBOLS = {"b": 2, "s": 4}


def text(x="h", attributes="", kind="float", sections="[1, 2, 1]", positions="3, b, s"):
    return f"""opset 21, com.microsoft 1
        graph(h: {kind}[b, 3, s, 8], x: {kind}[b, s, 24], p: int64[{positions}]) -> (y) {{
        c: {kind}[9, 4] = ... 1 n: {kind}[9, 4] = ... 2
        y = com.microsoft.MRotaryEmbedding({x}, p, c, n) {{mrope_section = {sections}{attributes}}} }}"""


def expanded(body):
    model = model_of(body)
    INFER_SHAPES.run(model, Context())
    assert rewrite(model, RuleSet([EXPAND_MULTIMODAL_ROTARY]))["expand_multimodal_rotary"] == 1
    return model


@pytest.mark.parametrize(
    ("x", "attributes"),
    [
        ("h", ""),
        ("x", ""),
        ("h", ", interleaved = 1"),
        ("x", ", num_heads = 3, rotary_embedding_dim = 8"),
        ("h", ", mrope_layout = 1"),
    ],
)
@pytest.mark.parametrize("sections", ["[1, 2, 1]", "[4, 0, 0]", "[2, 1, 1]"])
def test_fires_with_the_same_numbers(x, attributes, sections):
    """Streams one behind the other or alternating, for heads apart or packed."""
    body = text(x, attributes, sections=sections)
    before, after = model_of(body), expanded(body)
    feeds = random_feeds(before, symbols=SYMBOLS) | {"p": np.random.default_rng(0).integers(0, 9, (3, 2, 4))}
    np.testing.assert_allclose(evaluate_model(after, feeds)[0], evaluate_model(before, feeds)[0], rtol=1e-6, atol=1e-6)


def test_a_position_below_zero_is_an_error():
    """As in the operator, though Gather counts such indices from the end."""
    model = expanded(text())
    feeds = random_feeds(model, symbols=SYMBOLS) | {"p": np.full((3, 2, 4), -1)}
    with pytest.raises(InvalidArgument):
        evaluate_model(model, feeds)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"attributes": ", scale = 2.0"}, "no match"),
        ({"attributes": ", is_packed_batching = 1"}, "no match"),
        ({"attributes": ", mrope_layout = 2"}, "neither 0 nor 1"),
        ({"sections": "[1, 1, 1]"}, "expected three that sum"),
        ({"positions": "b, s"}, "expected three positions"),
        ({"kind": "double"}, "expected float or float16"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_MULTIMODAL_ROTARY, text(**options))
