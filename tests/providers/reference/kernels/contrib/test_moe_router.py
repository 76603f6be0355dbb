"""MoEGroupRouter against its formula in float64, and against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.peer import run_peer
from support.run_op import run_op

import sardonyx as ort
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.session.providers import REFERENCE

RANDOM = np.random.default_rng(11)


def run(*inputs: Any, **attributes: Any) -> Any:
    return run_op("MoEGroupRouter", *inputs, domain="com.microsoft", **attributes)


def drawn(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def expected(logits: Array, bias: Array, top_k: int, n_group: int = 1, topk_group: int = 1, group_topk: int = 2) -> Array:
    """The definition, row by row."""
    rows = logits.astype(np.float64).reshape(-1, logits.shape[-1])
    weights, size = 1 / (1 + np.exp(-rows)), rows.shape[1] // n_group
    y = np.full(rows.shape, -10000.0)
    for row, weight in enumerate(weights):
        scores = weight + bias
        groups = [sum(sorted(scores[g * size : (g + 1) * size])[-group_topk:]) for g in range(n_group)]
        kept = sorted(range(n_group), key=lambda g: -groups[g])[:topk_group]
        experts = [g * size + e for g in kept for e in range(size)]
        for e in sorted(experts, key=lambda e: (-scores[e], e))[:top_k]:
            y[row, e] = np.log(max(weight[e], 1e-20))
    return y


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((7, 16), {"top_k": 3, "n_group": 4, "topk_group": 2}),
        ((2, 3, 16), {"top_k": 16}),
        ((5, 12), {"top_k": 2, "n_group": 3, "group_topk": 100}),
        ((5, 12), {"top_k": 2, "n_group": 12, "topk_group": 3, "group_topk": 1}),
        ((5, 12), {"top_k": 6, "n_group": 3, "group_topk": 3}),
    ],
)
def test_the_best_experts_of_the_best_groups_are_chosen(shape: tuple[int, ...], options: dict[str, int]) -> None:
    """A group with fewer experts than are asked for gives all it has."""
    logits, bias = drawn(*shape), drawn(shape[-1])
    (probs,) = run(logits, bias, **options)
    np.testing.assert_allclose(probs, expected(logits, bias, **options), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(probs, run_peer("MoEGroupRouter", logits, bias, **options)[0], rtol=1e-4, atol=1e-5)


def test_of_equal_scores_the_first_is_chosen() -> None:
    """Of groups and of experts."""
    (probs,) = run(np.zeros((1, 8), np.float32), np.zeros(8, np.float32), top_k=3, n_group=4, topk_group=2)
    assert (probs > -1).tolist() == [[True] * 3 + [False] * 5]


def test_a_weight_that_is_nothing_has_the_logarithm_of_the_least() -> None:
    """The sigmoid of -100 is 0 in float32, that of -20 is not."""
    (probs,) = run(np.array([[-100, -20]], np.float32), np.zeros(2, np.float32), top_k=2)
    np.testing.assert_allclose(probs, [[np.log(1e-20), -20]], rtol=1e-6)


def test_NaN_is_chosen_first() -> None:
    """So that it does not go unseen."""
    (probs,) = run(np.array([[3, np.nan, 2, 1]], np.float32), np.zeros(4, np.float32), top_k=2)
    assert np.isnan(probs).tolist() == [[False, True, False, False]]
    assert (probs[0, 2:] == -10000).all()


def test_half_logits_have_half_results() -> None:
    """The sentinel is rounded too: beyond the type it is an infinity."""
    logits, bias = drawn(9, 16).astype(np.float16), drawn(16)
    (probs,) = run(logits, bias, top_k=5, router_sentinel=-70000.0)
    assert probs.dtype == np.float16
    assert np.isneginf(probs).sum() == 9 * 11
    np.testing.assert_array_equal(probs, run_peer("MoEGroupRouter", logits, bias, top_k=5, router_sentinel=-70000.0)[0])


def scores_of(runtime: Any, provider: str, feed: dict[str, Array], *outputs: str, **options: Any) -> list[Array]:
    """Run a model whose node has these outputs, "" for one left out."""
    node = helper.make_node("MoEGroupRouter", list(feed), list(outputs), domain="com.microsoft", **options)
    declared = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feed.items()]
    graph = helper.make_graph([node], "g", declared, [helper.make_empty_tensor_value_info(name) for name in outputs if name])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()
    found: list[Array] = runtime.InferenceSession(model, providers=[provider]).run(None, feed)
    return found


def test_full_scores_are_those_of_all_experts() -> None:
    """With the bias and without."""
    feed = {"x": drawn(2, 3, 16), "b": drawn(16)}
    scores, weights = scores_of(ort, REFERENCE, feed, "", "scores", "weights", top_k=2)
    sigmoid = 1 / (1 + np.exp(-feed["x"].astype(np.float64).reshape(6, 16)))
    np.testing.assert_allclose(weights, sigmoid, rtol=1e-6)
    np.testing.assert_allclose(scores, sigmoid + feed["b"], rtol=1e-5, atol=1e-6)
    peer = pytest.importorskip("onnxruntime")
    theirs = scores_of(peer, "CPUExecutionProvider", feed, "", "scores", "weights", top_k=2)
    np.testing.assert_allclose(weights, theirs[1], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_full_scores_of_a_projection(dtype: type) -> None:
    """Sums are float32 whatever the type of tokens and weights."""
    feed = {"x": drawn(5, 256).astype(dtype), "b": drawn(8), "p": drawn(8, 256).astype(dtype)}
    scores, weights = scores_of(ort, REFERENCE, feed, "", "scores", "weights", top_k=2)
    logits = feed["x"].astype(np.float64) @ feed["p"].astype(np.float64).T
    np.testing.assert_allclose(weights, 1 / (1 + np.exp(-logits)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(scores - weights, np.broadcast_to(feed["b"], (5, 8)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 0},
        {"top_k": 17},
        {"top_k": 1, "n_group": 3},
        {"top_k": 1, "n_group": 0},
        {"top_k": 1, "n_group": 2, "topk_group": 3},
        {"top_k": 1, "group_topk": -1},
    ],
)
def test_counts_that_do_not_fit_are_refused(options: dict[str, int]) -> None:
    """All are positive and fit the experts."""
    with pytest.raises(InvalidArgument, match="expected positive numbers"):
        run(drawn(2, 16), drawn(16), **options)


def test_what_does_not_go_together_is_refused() -> None:
    """Full scores are of one group, of at most 512 experts, and come without chosen ones."""
    x, b = drawn(2, 16), drawn(16)
    with pytest.raises(InvalidArgument, match="both asked for"):
        run(x, b, top_k=1, outputs=3)
    with pytest.raises(InvalidArgument, match="no full scores"):
        run(drawn(2, 256), b, drawn(16, 256), top_k=1)
    with pytest.raises(InvalidArgument, match="in 2 groups"):
        scores_of(ort, REFERENCE, {"x": x, "b": b}, "", "s", "w", top_k=1, n_group=2)
    with pytest.raises(InvalidArgument, match="of 513 experts"):
        scores_of(ort, REFERENCE, {"x": drawn(1, 513), "b": drawn(513)}, "", "s", "w", top_k=1)


@pytest.mark.parametrize(
    ("logits", "bias", "message"), [((16,), (16,), "logits have shape"), ((2, 0), (0,), "logits have"), ((2, 16), (1, 16), "bias")]
)
def test_shapes_that_do_not_fit_are_refused(logits: tuple[int, ...], bias: tuple[int, ...], message: str) -> None:
    """Logits have rows, and the bias a number for each expert."""
    with pytest.raises(InvalidArgument, match=message):
        run(drawn(*logits), drawn(*bias), top_k=1)


@pytest.mark.parametrize(
    ("tokens", "weight", "message"),
    [((5, 128), (8, 128), "multiple of 256"), ((5, 256), (8, 512), "have shapes"), ((5, 1, 256), (8, 256), "have shapes")],
)
def test_projections_that_do_not_fit_are_refused(tokens: tuple[int, ...], weight: tuple[int, ...], message: str) -> None:
    """Tokens are rows of whole blocks of features."""
    with pytest.raises(InvalidArgument, match=message):
        scores_of(ort, REFERENCE, {"x": drawn(*tokens), "b": drawn(8), "p": drawn(*weight)}, "", "s", "w", top_k=1)
