"""Attention, FlexAttention and RotaryEmbedding: layouts, caches, masks and types around the core."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

B, N, M, S, T, D = 2, 4, 2, 3, 5, 6


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


Q, K, V = draw(B, N, S, D, seed=1), draw(B, M, T, D, seed=2), draw(B, M, T, D, seed=3)


def pack(x: Array) -> Array:
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def by_hand(q: Array, k: Array, v: Array, bias: Array | float = 0.0) -> Array:
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x.astype(np.float64), group, axis=1) for x in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(2, 3) / np.sqrt(q.shape[3]) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def test_Attention_takes_four_dimensions_or_packed_heads() -> None:
    """Rank 3 in, rank 3 out, with the heads in the last axis."""
    expected = by_hand(Q, K, V)
    np.testing.assert_allclose(run_op("Attention", Q, K, V)[0], expected, rtol=1e-5, atol=1e-6)
    packed = run_op("Attention", pack(Q), pack(K), pack(V), q_num_heads=N, kv_num_heads=M)[0]
    np.testing.assert_allclose(packed, pack(expected), rtol=1e-5, atol=1e-6)


def test_Attention_appends_to_its_past() -> None:
    """The present is past, then new, and both are attended to; causal queries see the whole past."""
    past_key, past_value = draw(B, M, 4, D, seed=4), draw(B, M, 4, D, seed=5)
    key, value = K[:, :, :S], V[:, :, :S]
    y, present_key, present_value = run_op("Attention", Q, key, value, None, past_key, past_value, is_causal=1, outputs=3)
    np.testing.assert_array_equal(present_key, np.concatenate([past_key, key], axis=2))
    np.testing.assert_array_equal(present_value, np.concatenate([past_value, value], axis=2))
    bias = np.where(np.arange(7) <= np.arange(S)[:, None] + 4, 0, -np.inf)
    np.testing.assert_allclose(y, by_hand(Q, present_key, present_value, bias), rtol=1e-5, atol=1e-6)


def test_Attention_mask_hides_or_adds() -> None:
    """Boolean: True is visible; a number is added to the scores, integers included."""
    seen = np.random.default_rng(7).random((B, 1, S, T)) < 0.7
    seen[..., 0] = True
    expected = by_hand(Q, K, V, np.where(seen, 0, -np.inf))
    np.testing.assert_allclose(run_op("Attention", Q, K, V, seen)[0], expected, rtol=1e-5, atol=1e-6)
    added = np.arange(T, dtype=np.int8)
    np.testing.assert_allclose(run_op("Attention", Q, K, V, added)[0], by_hand(Q, K, V, added), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [np.bool_, np.float32])
def test_Attention_24_mask_may_end_early(kind: Any) -> None:
    """Keys behind the end of the mask are hidden; before version 24 this is an error."""
    mask = np.ones((S, 3), kind)
    expected = by_hand(Q, K[:, :, :3], V[:, :, :3])
    np.testing.assert_allclose(run_op("Attention", Q, K, V, mask)[0], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidArgument, match=r"has shape \(3, 3\)"):
        run_op("Attention", Q, K, V, mask, version=23)


def test_Attention_24_causal_frontier_follows_the_valid_keys() -> None:
    """With nonpad_kv_seqlen n, query i sees key j up to n - S + i; a query before the first key gives zeros."""
    valid = np.array([5, 2])
    y = run_op("Attention", Q, K, V, None, None, None, valid, is_causal=1)[0]
    frontier = (valid[:, None] - S + np.arange(S))[:, None, :, None]
    bias = np.where(np.arange(T) <= frontier, 0, -np.inf)
    np.testing.assert_allclose(y[0], by_hand(Q[:1], K[:1], V[:1], bias[:1])[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(y[1, :, 0], 0)
    np.testing.assert_allclose(y[1, :, 1:], by_hand(Q[1:, :, 1:], K[1:], V[1:], bias[1:, :, 1:])[0], rtol=1e-5, atol=1e-6)


def test_Attention_25_windows_are_relative_to_the_query() -> None:
    """Bounds of 1 and 1 leave three keys around the diagonal; is_causal cuts the right one."""
    distance = np.arange(T) - np.arange(S)[:, None]
    y = run_op("Attention", Q, K, V, left_window_size=1, right_window_size=1)[0]
    np.testing.assert_allclose(y, by_hand(Q, K, V, np.where(np.abs(distance) <= 1, 0, -np.inf)), rtol=1e-5, atol=1e-6)
    y = run_op("Attention", Q, K, V, left_window_size=1, right_window_size=1, is_causal=1)[0]
    near = (distance <= 0) & (distance >= -1)
    np.testing.assert_allclose(y, by_hand(Q, K, V, np.where(near, 0, -np.inf)), rtol=1e-5, atol=1e-6)


def test_Attention_gives_scores_only_where_they_are_used() -> None:
    """The fourth output exists where the node has it, in the type of Q."""
    assert len(run_op("Attention", Q, K, V, outputs=3)) == 3
    scores = run_op("Attention", *(x.astype(np.float16) for x in (Q, K, V)), outputs=4, qk_matmul_output_mode=3)[3]
    assert (scores.shape, scores.dtype) == ((B, N, S, T), np.float16)
    np.testing.assert_allclose(scores.sum(-1), 1, rtol=1e-2)


@pytest.mark.parametrize(("precision", "error"), [(1, 1e-6), (11, 1e-6), (10, 1e-3), (16, 1e-2)])
def test_Attention_softmax_precision_rounds_the_softmax(precision: int, error: float) -> None:
    """The result keeps its type whatever the softmax is done in."""
    y = run_op("Attention", Q, K, V, softmax_precision=precision)[0]
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, by_hand(Q, K, V), atol=error)


@pytest.mark.parametrize(("dtype", "error"), [(np.float16, 1e-3), (ml_dtypes.bfloat16, 3e-2), (np.float64, 1e-12)])
def test_Attention_keeps_its_type(dtype: Any, error: float) -> None:
    """Half types lose no more than their own rounding."""
    q, k, v = (x.astype(dtype) for x in (Q, K, V))
    y = run_op("Attention", q, k, v)[0]
    assert y.dtype == dtype
    np.testing.assert_allclose(y.astype(np.float64), by_hand(*(x.astype(np.float64) for x in (q, k, v))), atol=error)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ((Q, K, V, None, K), {}, "only one of past_key and past_value"),
        ((Q, K, V, None, K, V, np.array([1, 1])), {}, "both given"),
        ((Q, K, V, None, K[..., :2], V), {}, "the past of K has shape"),
        ((Q, K[:, :, :2], V), {}, "do not fit"),
        ((Q[:, :3], K, V), {}, "3 query heads"),
        ((pack(Q), pack(K), pack(V)), {}, "None heads"),
        ((Q[0, 0], K, V), {}, "expected rank 4"),
        ((Q, K, V, None, None, None, np.array([1, 9])), {}, "between 0 and 5"),
        ((Q, K, V), {"qk_matmul_output_mode": 4}, "qk_matmul_output_mode is 4"),
        ((Q, K, V), {"softmax_precision": 7}, "softmax_precision is 7"),
        ((Q, K, V), {"softmax_precision": 999}, "softmax_precision is 999"),
        ((Q, K, V), {"left_window_size": -2}, "window sizes are -2"),
    ],
)
def test_Attention_names_bad_arguments(inputs: tuple[Any, ...], attributes: dict[str, Any], message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("Attention", *inputs, **attributes)


class _Modifier:
    input_count = output_count = 1

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def __call__(self, *inputs: Any) -> list[Any]:
        (x,) = inputs
        return [x[..., :1]] if self._mode == "cut" else [x * x.dtype.type(2)]


def test_FlexAttention_runs_its_modifiers() -> None:
    """score_mod works on scaled scores, prob_mod on probabilities."""
    plain = run_op("FlexAttention", Q, K, V, domain="ai.onnx.preview")
    np.testing.assert_allclose(plain, by_hand(Q, K, V), rtol=1e-5, atol=1e-6)
    doubled = run_op("FlexAttention", Q, K, V, domain="ai.onnx.preview", prob_mod=_Modifier("double"))
    np.testing.assert_allclose(doubled, 2 * plain, rtol=1e-6)
    sharper = run_op("FlexAttention", Q, K, V, domain="ai.onnx.preview", score_mod=_Modifier("double"))
    np.testing.assert_allclose(sharper, by_hand(2 * Q, K, V), rtol=1e-5, atol=1e-6)


def test_FlexAttention_modifiers_must_keep_the_shape() -> None:
    """The message names the modifier and both shapes."""
    with pytest.raises(InvalidArgument, match="score_mod turned shape"):
        run_op("FlexAttention", Q, K, V, domain="ai.onnx.preview", score_mod=_Modifier("cut"))


CACHE = np.cos(np.arange(30).reshape(10, 3)).astype(np.float32), np.sin(np.arange(30).reshape(10, 3)).astype(np.float32)


def test_RotaryEmbedding_is_the_same_for_both_layouts() -> None:
    """(B, N, S, D) and (B, S, N x D) differ only in their layout; so do caches by position and by step."""
    positions = np.array([[0, 1, 2], [7, 8, 9]])
    four = run_op("RotaryEmbedding", Q, *CACHE, positions)
    three = run_op("RotaryEmbedding", pack(Q), *(cache[positions] for cache in CACHE), num_heads=N)
    np.testing.assert_array_equal(pack(four), three)
    turned = (Q[..., :3] + 1j * Q[..., 3:]) * np.exp(1j * np.arange(30).reshape(10, 3))[positions][:, None]
    np.testing.assert_allclose(four, np.concatenate([turned.real, turned.imag], axis=-1), rtol=1e-5, atol=1e-6)


def test_RotaryEmbedding_leaves_the_rest_of_a_partial_rotation() -> None:
    """With rotary_embedding_dim 4 the last two elements of each head pass."""
    caches = [cache[:3, :2][None].repeat(B, 0) for cache in CACHE]
    y = run_op("RotaryEmbedding", Q.astype(np.float16), *caches, rotary_embedding_dim=4, interleaved=1)
    assert y.dtype == np.float16
    np.testing.assert_array_equal(y[..., 4:], Q[..., 4:].astype(np.float16))


@pytest.mark.parametrize(
    ("positions", "attributes", "message"),
    [
        (np.full((B, S), 10), {}, "hold positions 0 to 9"),
        (np.zeros((B, 1), np.int64), {}, "position_ids"),
        (None, {}, "without position_ids"),
        (np.zeros((B, S), np.int64), {"rotary_embedding_dim": 8}, "even number up to 6"),
    ],
)
def test_RotaryEmbedding_names_bad_arguments(positions: Array | None, attributes: dict[str, Any], message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("RotaryEmbedding", Q, *CACHE, positions, **attributes)
