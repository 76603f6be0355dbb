"""GroupQueryAttention: prompt, steps and ragged batches over its own cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

B, N, M, D = 2, 4, 2, 8
CACHE = tuple(f(np.arange(80).reshape(20, 4) / 7).astype(np.float32) for f in (np.cos, np.sin))

NO_PAST = (None, None)


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(*inputs: Any, **options: Any) -> Any:
    options = {"num_heads": N, "kv_num_heads": M, "outputs": 3} | options
    return run_op("GroupQueryAttention", *inputs, domain="com.microsoft", **options)


def step(
    q: Array, k: Array | None, v: Array | None, past: Sequence[Array | None], totals: list[int], do_rotary: int = 0, **options: Any
) -> Any:
    lengths = np.array(totals, np.int32) - 1
    caches = CACHE if do_rotary else ()
    return run(q, k, v, *past, lengths, np.array(max(totals), np.int32), *caches, do_rotary=do_rotary, **options)


def causal_by_hand(q: Array, k: Array, v: Array, offset: int = 0, window: int | None = None) -> Array:
    q4, k4, v4 = (x.astype(np.float64).reshape(*x.shape[:2], -1, D).swapaxes(1, 2) for x in (q, k, v))
    k4, v4 = np.repeat(k4, N // M, axis=1), np.repeat(v4, N // M, axis=1)
    distance = np.arange(q.shape[1])[:, None] + offset - np.arange(k.shape[1])
    seen = (distance >= 0) & (distance < (window or 10**6))
    scores = np.where(seen, q4 @ k4.swapaxes(2, 3) / np.sqrt(D), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v4).swapaxes(1, 2).reshape(q.shape)


Q, K, V = draw(B, 5, N * D, seed=1), draw(B, 5, M * D, seed=2), draw(B, 5, M * D, seed=3)


@pytest.mark.parametrize("window", [None, 2])
def test_a_prompt_is_causal(window: int | None) -> None:
    """local_window_size counts the query's own key."""
    y, key, _ = step(Q, K, V, NO_PAST, [5, 5], local_window_size=window or -1)
    np.testing.assert_allclose(y, causal_by_hand(Q, K, V, window=window), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(key, K.reshape(B, 5, M, D).swapaxes(1, 2))


def test_a_packed_query_holds_key_and_value() -> None:
    """Heads lie in the order query, key, value."""
    packed = np.concatenate([Q, K, V], axis=2)
    np.testing.assert_array_equal(step(packed, None, None, NO_PAST, [5, 5])[0], step(Q, K, V, NO_PAST, [5, 5])[0])


@pytest.mark.parametrize("length", [3, 9])
@pytest.mark.parametrize("do_rotary", [0, 1])
def test_steps_continue_a_prompt(length: int, do_rotary: int) -> None:
    """Two steps after three give what five give at once, over a cache of just that length or a longer one."""
    whole = step(Q, K, V, NO_PAST, [5, 5], do_rotary=do_rotary)
    empty = np.zeros((B, M, length if length > 3 else 0, D), np.float32)
    _, key, value = step(Q[:, :3], K[:, :3], V[:, :3], (empty, empty), [3, 3], do_rotary=do_rotary)
    for t in (3, 4):
        y, key, value = step(Q[:, t : t + 1], K[:, t : t + 1], V[:, t : t + 1], [key, value], [t + 1, t + 1], do_rotary=do_rotary)
        np.testing.assert_allclose(y[:, 0], whole[0][:, t], rtol=1e-5, atol=1e-5)
    assert key.shape[2] == max(length, 5)
    np.testing.assert_allclose(key[:, :, :5], whole[1], rtol=1e-5, atol=1e-6)


def test_ragged_batches_append_each_at_its_own_end() -> None:
    """After prompts of 2 and 4 tokens, one step each equals runs on their own."""
    past = tuple(draw(B, M, 4, D, seed=seed) for seed in (4, 5))
    y, key, _ = step(Q[:, :1], K[:, :1], V[:, :1], past, [3, 5])
    for b, used in enumerate((2, 4)):
        row = slice(b, b + 1)
        alone, alone_key, _ = step(Q[row, :1], K[row, :1], V[row, :1], tuple(x[row, :, :used] for x in past), [used + 1])
        np.testing.assert_allclose(y[b], alone[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(key[b, :, : used + 1], alone_key[0])


def test_rotation_takes_given_positions() -> None:
    """position_ids (B, S) stand in for those that the lengths imply."""
    rotary = (None, None, np.array([4, 4]), np.array(5), *CACHE)
    implied = run(Q, K, V, *rotary, do_rotary=1)
    given = run(Q, K, V, *rotary, np.arange(5)[None].repeat(B, 0), do_rotary=1)
    np.testing.assert_array_equal(implied[0], given[0])


def test_sinks_take_probability_away() -> None:
    """smooth_softmax is a sink of 0; head_sink gives one per head; the scores come out behind the softmax."""
    base = (Q, K, V, None, None, np.array([4, 4]), np.array(5))
    smooth = run(*base, smooth_softmax=1, qk_output=2, outputs=4)
    sunk = run(*base, None, None, None, None, np.zeros(N, np.float32), qk_output=2, outputs=4)
    np.testing.assert_array_equal(smooth[0], sunk[0])
    assert (smooth[3].sum(-1) < 1).all()


@pytest.mark.parametrize("window", [-1, 2])
def test_scores_of_keys_that_are_not_seen_are_zero(window: int) -> None:
    """Before the softmax, behind the query and before its window, as onnxruntime writes them; the others are scaled products."""
    scores = run(Q, K, V, None, None, np.array([4, 2]), np.array(5), local_window_size=window, qk_output=1, outputs=4)[3]
    distance = np.arange(5)[:, None] - np.arange(5)
    seen = (distance >= 0) & (distance < (window if window > 0 else 5)) & (np.arange(5) < np.array([5, 3])[:, None, None, None])
    q4, k4 = (x.reshape(B, 5, -1, D).swapaxes(1, 2) for x in (Q, K))
    products = q4 @ np.repeat(k4, N // M, axis=1).swapaxes(2, 3) / np.sqrt(D)
    np.testing.assert_allclose(scores, np.where(seen, products, 0), rtol=1e-5, atol=1e-5)


def test_query_and_key_may_be_normalized() -> None:
    """Weights of 1 scale each head to a mean square of 1."""
    ones = np.ones(D, np.float32)
    _, key, _ = run(Q, K, V, None, None, np.array([4, 4]), np.array(5), *[None] * 7, ones, ones)
    np.testing.assert_allclose(np.square(key).mean(-1), 1, rtol=1e-4)


def test_without_causal_every_key_is_seen() -> None:
    """The last row of a causal run is the same."""
    y = step(Q, K, V, NO_PAST, [5, 5], causal=0)[0]
    np.testing.assert_allclose(y[:, -1], causal_by_hand(Q, K, V)[:, -1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ((Q, K[:, :2], V), {}, "do not fit 4 query heads"),
        ((Q[..., :30], None, None), {}, "4 \\+ 2 x 2 heads"),
        ((Q, K, V, draw(B, M, 2, 3), draw(B, M, 2, 3)), {}, "past_key has shape"),
        ((Q, K, V), {"totals": [9, 9]}, "past_key holds 0 keys"),
        ((Q, K, V), {"totals": [5, 7], "longest": 6}, "total_sequence_length 6"),
        ((Q, K, V), {"do_rotary": 1}, "cos_cache or sin_cache is not given"),
        ((Q, K, V), {"kv_num_heads": 3}, "4 query heads and 3 key"),
        ((Q, K, V), {"sliding_window_cache": 1}, "sliding_window_cache is 1, but past_key"),
        ((Q, K, V), {"k_quant_type": "PER_TENSOR"}, "the key cache is quantized with no past"),
    ],
)
def test_bad_arguments_are_named(inputs: tuple[Any, ...], attributes: dict[str, Any], message: str) -> None:
    """The message holds what was found."""
    totals = attributes.pop("totals", [5, 5])
    longest = attributes.pop("longest", max(totals))
    padded = [*inputs, *[None] * (5 - len(inputs))]
    with pytest.raises(InvalidArgument, match=message):
        run(*padded, np.array(totals) - 1, np.array(longest), **attributes)


@pytest.mark.parametrize(("dtype", "bits", "error"), [(np.int8, 8, 0.05), (np.uint8, 4, 1.0), (ml_dtypes.float8_e4m3fn, 8, 0.2)])
def test_a_quantized_cache_is_what_is_attended_to(dtype: Any, bits: int, error: float) -> None:
    """A step over a stored prompt gives what the same numbers give in a float cache."""
    size = D * bits // 8
    empty = np.zeros((B, M, 0, size), dtype)
    scale = np.full((1, M, 1, D), 0.03 if bits == 8 else 0.4, np.float32)
    options = {"k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_CHANNEL", "kv_cache_bit_width": bits}
    rest = (None, None, None, None, None, scale, scale)
    prompt = (x[:, :4] for x in (Q, K, V))
    _, key, value = run(*prompt, empty, empty, np.array([3, 3]), np.array(4), *rest, **options)
    assert (key.shape, key.dtype) == ((B, M, 4, size), dtype)
    step_inputs = [x[:, 4:] for x in (Q, K, V)]
    y, *_ = run(*step_inputs, key, value, np.array([4, 4]), np.array(5), *rest, **options)
    plain = step(Q, K, V, NO_PAST, [5, 5])[0]
    assert np.abs(y - plain[:, 4:]).max() < error


LAYOUTS = np.array([[[1, 0], [1, 1]], [[1, 0], [0, 1]]], bool)
ROW_INDICES, COLUMN_INDICES = np.array([[0, 1, 3], [0, 1, 2]], np.int32), np.array([[0, 0, 1], [0, 1, -1]], np.int32)


def sparse(q: Array, k: Array, v: Array, past: Sequence[Array], totals: list[int], **options: Any) -> Any:
    lengths = np.array(totals, np.int32)
    options = {"num_heads": N, "kv_num_heads": M, "sparse_block_size": 4, "outputs": 3} | options
    given = (q, k, v, *past, ROW_INDICES, COLUMN_INDICES, lengths.max().reshape(1), lengths)
    return run_op("SparseAttention", *given, domain="com.microsoft", **options)


def test_SparseAttention_sees_the_blocks_of_its_layout() -> None:
    """Heads take the layouts in turn; within the blocks attention is causal."""
    empty = [np.zeros((B, M, 8, D), np.float32)] * 2
    y, key, _ = sparse(Q, K, V, empty, [5, 5])
    q4, k4, v4 = (x.astype(np.float64).reshape(B, 5, -1, D).swapaxes(1, 2) for x in (Q, K, V))
    k4, v4 = np.repeat(k4, N // M, axis=1), np.repeat(v4, N // M, axis=1)
    blocks = np.arange(5) // 4
    seen = LAYOUTS[np.arange(N) % 2][:, blocks][:, :, blocks] & np.tri(5, dtype=bool)
    scores = np.where(seen, q4 @ k4.swapaxes(2, 3) / np.sqrt(D), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (weights / weights.sum(-1, keepdims=True) @ v4).swapaxes(1, 2).reshape(Q.shape)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(key[:, :, :5], K.reshape(B, 5, M, D).swapaxes(1, 2))


def test_SparseAttention_continues_ragged_batches() -> None:
    """One step each after 4 and 1 tokens equals the rows of the prompts that they continue."""
    empty = [np.zeros((B, M, 8, D), np.float32)] * 2
    whole = sparse(Q, K, V, empty, [5, 5])
    past = [x.copy() for x in whole[1:]]
    rows = np.arange(B), np.array([4, 1])
    y, _, _ = sparse(*(x[rows][:, None] for x in (Q, K, V)), past, [5, 2])
    np.testing.assert_allclose(y[:, 0], whole[0][rows], rtol=1e-5, atol=1e-5)


def test_SparseAttention_checks_its_layouts() -> None:
    """Blocks must cover the keys, and layouts divide the heads."""
    empty = [np.zeros((B, M, 8, D), np.float32)] * 2
    with pytest.raises(InvalidArgument, match="2 layouts of 2 blocks of 2 do not serve 4 heads and 5 keys"):
        sparse(Q, K, V, empty, [5, 5], sparse_block_size=2)
