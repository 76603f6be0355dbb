"""RotaryEmbedding by positions, of com.microsoft and of ai.onnx."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import apply_rule, declines, model_of, operators

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.expand_rotary_embedding import EXPAND_ROTARY_EMBEDDING, EXPAND_ROTARY_POSITIONS

SYMBOLS = {"b": 2, "s": 4}


def text(x="h", ids="p", attributes="", kind="float"):
    return f"""opset 21, com.microsoft 1
        graph(h: {kind}[b, 3, s, 8], x: {kind}[b, s, 24], p: int64[b, s], f: int64[1], o: int64[b, 1, s]) -> (y) {{
        c: {kind}[9, 4] = ... 1 n: {kind}[9, 4] = ... 2 y = com.microsoft.RotaryEmbedding({x}, {ids}, c, n) {{{attributes}}} }}"""


@pytest.mark.parametrize(
    ("x", "attributes"),
    [
        ("h", ""),
        ("x", "num_heads = 3"),
        ("x", ""),
        ("h", "interleaved = 1"),
        ("x", "num_heads = 2, rotary_embedding_dim = 8"),
    ],
)
@pytest.mark.parametrize("ids", ["p", "f"])
def test_fires_with_the_same_numbers(x, attributes, ids):
    """Heads apart or packed, pairs side by side, a part of each head; a position for each, or the first."""
    body = text(x, ids, attributes)
    before, after = model_of(body), model_of(body)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([EXPAND_ROTARY_EMBEDDING]))["expand_rotary_embedding"] == 1
    assert operators(after)[-1] == "RotaryEmbedding"
    feeds = random_feeds(before, symbols=SYMBOLS) | {"p": np.array([[0, 8, 3, 1], [2, 2, 7, 5]]), "f": np.array([5])}
    np.testing.assert_allclose(evaluate_model(after, feeds)[0], evaluate_model(before, feeds)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"attributes": "scale = 2.0"}, "no match"),
        ({"attributes": "is_packed_batching = 1"}, "no match"),
        ({"ids": "o"}, "expected a position for each"),
        ({"kind": "double"}, "expected float or float16"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_ROTARY_EMBEDDING, text(**options))


def test_what_is_inferred():
    """The result has the shape of x."""
    model, _ = apply_rule(EXPAND_ROTARY_EMBEDDING, text(), compare=False)
    assert [str(dim) for dim in model.graph.outputs[0].shape or ()] == ["b", "3", "s", "8"]


def standard(x="h", ids="p", attributes="", kind="float"):
    return f"""opset 23
        graph(h: {kind}[b, 3, s, 8], x: {kind}[b, s, 24], p: int64[b, s], o: int64[b, 1, s]) -> (y) {{
        c: {kind}[9, 4] = ... 1 n: {kind}[9, 4] = ... 2 y = RotaryEmbedding({x}, c, n, {ids}) {{{attributes}}} }}"""


@pytest.mark.parametrize(
    ("x", "attributes"),
    [("h", ""), ("x", "num_heads = 3"), ("h", "interleaved = 1"), ("x", "num_heads = 3, rotary_embedding_dim = 8")],
)
def test_the_standard_one_fires_with_the_same_numbers(x, attributes):
    """Heads apart or packed, pairs side by side, a part of each head."""
    body = standard(x, "p", attributes)
    before, after = model_of(body), model_of(body)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([EXPAND_ROTARY_POSITIONS]))["expand_rotary_positions"] == 1
    feeds = random_feeds(before, symbols=SYMBOLS) | {"p": np.array([[0, 8, 3, 1], [2, 2, 7, 5]])}
    np.testing.assert_allclose(evaluate_model(after, feeds)[0], evaluate_model(before, feeds)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"ids": "o"}, "expected a position for each"), ({"kind": "double"}, "expected float or float16")],
)
def test_the_standard_one_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_ROTARY_POSITIONS, standard(**options))


@pytest.mark.parametrize(("rule", "body"), [(EXPAND_ROTARY_EMBEDDING, text()), (EXPAND_ROTARY_POSITIONS, standard())])
def test_a_position_below_zero_is_an_error(rule, body):
    """As in the operators, though Gather counts such indices from the end."""
    model = model_of(body)
    INFER_SHAPES.run(model, Context())
    rewrite(model, RuleSet([rule]))
    feeds = random_feeds(model, symbols=SYMBOLS) | {"p": np.array([[0, -1, 3, 1], [2, 2, 7, 5]])}
    with pytest.raises(InvalidArgument):
        evaluate_model(model, feeds)
