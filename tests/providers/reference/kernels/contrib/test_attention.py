"""Attention, QAttention and MultiHeadAttention of com.microsoft against the formula in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.peer import run_peer
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

B, N, S, T, D, I_SIZE = 2, 2, 3, 4, 6, 5
HIDDEN = N * D


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **options)


def heads(x: Array) -> Array:
    return x.reshape(*x.shape[:2], N, -1).swapaxes(1, 2)


def by_hand(q: Array, k: Array, v: Array, bias: Array | float = 0.0) -> Array:
    scores = q.astype(np.float64) @ k.swapaxes(2, 3) / np.sqrt(q.shape[3]) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = (weights / weights.sum(-1, keepdims=True) @ v).swapaxes(1, 2)
    return y.reshape(*y.shape[:2], -1)


Q, K, V = draw(B, S, HIDDEN, seed=1), draw(B, T, HIDDEN, seed=2), draw(B, T, HIDDEN, seed=3)
X, WEIGHTS, BIAS = draw(B, S, I_SIZE, seed=4), draw(I_SIZE, 3 * HIDDEN, seed=5), draw(3 * HIDDEN, seed=6)


def projected() -> list[Array]:
    return [heads(part) for part in np.split(X.astype(np.float64) @ WEIGHTS + BIAS, 3, axis=2)]


def test_Attention_projects_its_input() -> None:
    """One weight matrix makes Q, K and V; the mask adds its filter value."""
    lengths = np.array([3, 2], np.int32)
    (y,) = run("Attention", X, WEIGHTS, BIAS, lengths, num_heads=N)
    bias = np.where(np.arange(S) < lengths[:, None], 0, -10000)[:, None, None]
    np.testing.assert_allclose(y, by_hand(*projected(), bias), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_Attention_appends_to_its_past(unidirectional: int) -> None:
    """Past and present stack key and value; causal queries see the whole past."""
    past = draw(2, B, N, 2, D, seed=7)
    y, present = run("Attention", X, WEIGHTS, BIAS, None, past, num_heads=N, unidirectional=unidirectional, outputs=2)
    q, k, v = projected()
    k, v = np.concatenate([past[0], k], axis=2), np.concatenate([past[1], v], axis=2)
    hidden = np.arange(S + 2) > np.arange(S)[:, None] + 2
    np.testing.assert_allclose(y, by_hand(q, k, v, np.where(hidden, -np.inf, 0) if unidirectional else 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(present, np.stack([k, v]), rtol=1e-4, atol=1e-5)


def test_Attention_shares_a_buffer_with_its_past() -> None:
    """Only past_sequence_length keys of the buffer count, and the present is as long as the buffer."""
    past = draw(2, B, N, 8, D, seed=7)
    used = np.array([2], np.int32)
    y, present = run("Attention", X, WEIGHTS, BIAS, None, past, None, used, num_heads=N, past_present_share_buffer=1, outputs=2)
    expected, short = run("Attention", X, WEIGHTS, BIAS, None, past[:, :, :, :2], num_heads=N, outputs=2)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(present[:, :, :, :5], short)
    np.testing.assert_array_equal(present[:, :, :, 5:], past[:, :, :, 5:])


def test_Attention_may_have_smaller_values() -> None:
    """qkv_hidden_sizes splits the weights unevenly."""
    weights = WEIGHTS[:, : 2 * HIDDEN + 4]
    (y,) = run("Attention", X, weights, None, num_heads=N, qkv_hidden_sizes=(HIDDEN, HIDDEN, 4))
    q, k, v = (heads(part) for part in np.split(X.astype(np.float64) @ weights, [HIDDEN, 2 * HIDDEN], axis=2))
    np.testing.assert_allclose(y, by_hand(q, k, v), rtol=1e-4, atol=1e-5)


def test_MultiHeadAttention_reads_every_layout_alike() -> None:
    """Separate inputs, packed key and value, a packed query, and keys that have their heads split already."""
    expected = by_hand(heads(Q), heads(K), heads(V))
    packed = np.stack([K.reshape(B, T, N, D), V.reshape(B, T, N, D)], axis=3)
    for inputs in ((Q, K, V), (Q, packed), (Q, heads(K), heads(V))):
        np.testing.assert_allclose(run("MultiHeadAttention", *inputs, num_heads=N)[0], expected, rtol=1e-5, atol=1e-6)
    self_packed = np.stack([x[:, :S].reshape(B, S, N, D) for x in (Q, K, V)], axis=3)
    y = run("MultiHeadAttention", self_packed, num_heads=N)[0]
    np.testing.assert_allclose(y, by_hand(heads(Q), heads(K[:, :S]), heads(V[:, :S])), rtol=1e-5, atol=1e-6)


def test_MultiHeadAttention_adds_bias_mask_and_past() -> None:
    """The projection's bias touches the new keys alone; present arrays and scores come out on demand."""
    past = draw(2, B, N, 2, D, seed=8)
    mask = np.array([[1] * 6, [0, 1, 1, 1, 1, 0]], np.int32)
    y, key, value, scores = run("MultiHeadAttention", Q, K, V, BIAS, mask, None, *past, num_heads=N, outputs=4)
    q, k, v = (heads(x + part) for x, part in zip((Q, K, V), np.split(BIAS, 3), strict=True))
    k, v = np.concatenate([past[0], k], axis=2), np.concatenate([past[1], v], axis=2)
    bias = np.where(mask, 0, -10000)[:, None, None]
    np.testing.assert_allclose(y, by_hand(q, k, v, bias), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(key, k)
    np.testing.assert_array_equal(value, v)
    np.testing.assert_allclose(scores, q @ k.swapaxes(2, 3) / np.sqrt(D) + bias, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mask", [np.zeros((B, 1), np.int32), np.zeros((1, 1), np.int32)])
def test_Attention_ignores_a_placeholder_for_a_mask(mask: Array) -> None:
    """A mask of one column is none, as in onnxruntime."""
    inputs = (X, WEIGHTS, BIAS, mask)
    (expected,) = run_peer("Attention", *inputs, num_heads=N)
    np.testing.assert_allclose(run("Attention", *inputs, num_heads=N)[0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(run("Attention", *inputs, num_heads=N)[0], run("Attention", X, WEIGHTS, BIAS, num_heads=N)[0])


@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("with_bias", [False, True])
def test_MultiHeadAttention_shares_a_buffer_with_beams(queries: int, with_bias: bool) -> None:
    """A single query reads the past of the beams that cache_indirection names, several read their own; as in onnxruntime."""
    q, k, v = (draw(4, queries, HIDDEN, seed=seed) for seed in (21, 22, 23))
    buffers = draw(4, N, 6, D, seed=24), draw(4, N, 6, D, seed=25)
    beams = np.random.default_rng(9).integers(0, 2, (2, 2, 6)).astype(np.int32)
    added = draw(1, N, queries, 3 + queries, seed=26) if with_bias else None
    inputs = (q, k, v, BIAS, None, added, *buffers, np.array([3], np.int32), beams)
    found = run("MultiHeadAttention", *inputs, num_heads=N, outputs=3)
    for ours, theirs in zip(found, run_peer("MultiHeadAttention", *inputs, num_heads=N, outputs=3), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_MultiHeadAttention_without_a_buffer_reads_its_own_past() -> None:
    """cache_indirection counts only beside past_sequence_length, as in onnxruntime."""
    q, k, v = (draw(4, 1, HIDDEN, seed=seed) for seed in (21, 22, 23))
    past = draw(4, N, 6, D, seed=24), draw(4, N, 6, D, seed=25)
    beams = np.ones((2, 2, 6), np.int32)
    inputs = (q, k, v, BIAS, None, None, *past, None, beams)
    found = run("MultiHeadAttention", *inputs, num_heads=N, outputs=3)
    for ours, theirs in zip(found, run_peer("MultiHeadAttention", *inputs, num_heads=N, outputs=3), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_half_types_are_kept() -> None:
    """Every output has the type of the query."""
    results = run("MultiHeadAttention", *(x.astype(np.float16) for x in (Q, K, V)), num_heads=N, outputs=4)
    assert {result.dtype for result in results} == {np.dtype(np.float16)}


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("Attention", (X, WEIGHTS[:2]), {}, r"weights \(2, 36\)"),
        ("Attention", (X, WEIGHTS), {"qkv_hidden_sizes": (12, 12, 11)}, "hidden sizes"),
        ("Attention", (X, WEIGHTS, BIAS, None, draw(2, B, N, 2, 5)), {}, "past has shape"),
        ("Attention", (X, WEIGHTS, BIAS, np.zeros((7, 7))), {}, "the mask has shape"),
        ("MultiHeadAttention", (Q,), {}, "key is not given"),
        ("MultiHeadAttention", (Q, K), {}, "value is not given"),
        ("MultiHeadAttention", (Q[..., :5], K, V), {}, "does not split into 2 heads"),
        ("MultiHeadAttention", (Q, K, V, BIAS[:3]), {}, "bias has shape"),
        ("MultiHeadAttention", (Q, np.zeros((B, T, N, 3, D), np.float32)), {}, "packed key has shape"),
        ("MultiHeadAttention", (Q, K, V, None, None, draw(2, 9)), {}, "attention_bias has shape"),
        ("MultiHeadAttention", (Q, K, V, None, None, None, draw(B, N, 2, D), draw(B, N, 2, 3)), {}, "the past has shape"),
        ("Attention", (X, WEIGHTS, BIAS[:5]), {}, "bias has shape"),
    ],
)
def test_bad_inputs_are_named(op_type: str, inputs: tuple[Any, ...], attributes: dict[str, Any], message: str) -> None:
    """The message holds the shape that was found."""
    with pytest.raises(InvalidArgument, match=message):
        run(op_type, *inputs, num_heads=N, **attributes)


def test_QAttention_projects_integers() -> None:
    """It equals Attention of the numbers behind input and weights; weights may have a scale per column."""
    generator = np.random.default_rng(9)
    x = generator.integers(0, 256, (B, S, I_SIZE)).astype(np.uint8)
    weights = generator.integers(-128, 128, (I_SIZE, 3 * HIDDEN)).astype(np.int8)
    scale, zero = generator.random(3 * HIDDEN).astype(np.float32) / 50, np.array(5, np.int8)
    (y,) = run("QAttention", x, weights, BIAS, np.array(0.02, np.float32), scale, None, np.array(7, np.uint8), zero, num_heads=N)
    numbers = (x.astype(np.float32) - 7) * np.float32(0.02), (weights.astype(np.float32) - 5) * scale
    np.testing.assert_allclose(y, run("Attention", *numbers, BIAS, num_heads=N)[0], rtol=1e-4, atol=1e-5)
