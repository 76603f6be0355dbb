"""PagedAttention against the formula in float64, one sequence at a time."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

N, M, D, LENGTH = 4, 2, 8, 4
PAST, NEW = (3, 0, 6), (1, 5, 2)
CUMULATIVE = np.cumsum([0, *NEW]).astype(np.int32)
TABLE = np.array([[5, -1, -1], [0, 2, -1], [3, 1, -1]], np.int32)
TOKENS = sum(NEW)


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


QUERY, KEY, VALUE = draw(TOKENS, N * D, seed=1), draw(TOKENS, M * D, seed=2), draw(TOKENS, M * D, seed=3)
KEYS, VALUES = draw(6, LENGTH, M, D, seed=4), draw(6, LENGTH, M, D, seed=5)
LISTS = (CUMULATIVE, np.array(PAST, np.int32), TABLE)


def run(*inputs: Any, outputs: int = 3, **attributes: Any) -> Any:
    return run_op("PagedAttention", *inputs, domain="com.microsoft", outputs=outputs, num_heads=N, kv_num_heads=M, **attributes)


def by_hand(keys: Array, values: Array, window: int = -1) -> Array:
    """The result, with the new keys and values written to the blocks already."""
    rows = []
    for sequence, (past, new) in enumerate(zip(PAST, NEW, strict=True)):
        slots = [TABLE[sequence, position // LENGTH] * LENGTH + position % LENGTH for position in range(past + new)]
        k, v = (cache.reshape(-1, M, D)[slots].astype(np.float64).repeat(N // M, axis=1) for cache in (keys, values))
        for step in range(new):
            q = QUERY[CUMULATIVE[sequence] + step].astype(np.float64).reshape(N, D)
            first = max(0, past + step + 1 - window) if window > 0 else 0
            scores = np.einsum("nd,tnd->nt", q, k[first : past + step + 1]) / np.sqrt(D)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            rows.append(np.einsum("nt,tnd->nd", weights / weights.sum(-1, keepdims=True), v[first : past + step + 1]).reshape(-1))
    return np.array(rows)


@pytest.mark.parametrize("window", [-1, 3])
def test_tokens_attend_to_the_blocks_of_their_sequence(window: int) -> None:
    """Keys are written where the table says, and read from there, each token up to itself or a window back."""
    y, keys, values = run(QUERY, KEY, VALUE, KEYS, VALUES, *LISTS, local_window_size=window)
    np.testing.assert_array_equal(keys.reshape(-1, M * D)[5 * LENGTH + 3], KEY[0])
    np.testing.assert_array_equal(values.reshape(-1, M * D)[2 * LENGTH], VALUE[5])
    np.testing.assert_allclose(y.astype(np.float64), by_hand(keys, values, window), rtol=1e-2, atol=2e-3)


def test_queries_may_hold_keys_and_values() -> None:
    """A packed query gives the same."""
    packed = run(np.concatenate([QUERY, KEY, VALUE], axis=1), None, None, KEYS, VALUES, *LISTS)
    for ours, theirs in zip(packed, run(QUERY, KEY, VALUE, KEYS, VALUES, *LISTS), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("dtype", "name", "tolerance"),
    [(np.int8, "", 0.05), (ml_dtypes.float8_e4m3fn, "", 0.2), (np.uint8, "int4", 0.6), (np.uint8, "float4e2m1", 0.8)],
)
def test_caches_may_be_narrow(dtype: Any, name: str, tolerance: float) -> None:
    """What is read back differs from what was written by the rounding of the type; 4-bit types take half the bytes."""
    width = D // 2 if dtype == np.uint8 else D
    empty = np.zeros((6, LENGTH, M, width), dtype)
    scale = np.full((M, 1, D), {"int4": 0.4, "float4e2m1": 0.6}.get(name, 4 / 127 if dtype == np.int8 else 0.1), np.float32)
    lists = (CUMULATIVE, np.zeros(3, np.int32), TABLE)
    extra = (None,) * 6
    options = {"k_cache_dtype": name, "v_cache_dtype": name}
    y, keys, _ = run(QUERY, KEY, VALUE, empty, empty, *lists, *extra, scale, scale, **options)
    expected, _, _ = run(QUERY, KEY, VALUE, KEYS, VALUES, *lists)
    assert keys.dtype == dtype
    assert keys.shape == empty.shape
    np.testing.assert_allclose(y.astype(np.float64), expected.astype(np.float64), atol=tolerance)


def test_a_slot_mapping_says_where_tokens_go() -> None:
    """-1 keeps a token out of the cache."""
    slots = np.array([-1, 0, 1, 2, 3, 8, 6, 7], np.int32)
    _, keys, _ = run(QUERY, KEY, VALUE, KEYS, VALUES, *LISTS, None, None, slots)
    flat = keys.reshape(-1, M * D)
    np.testing.assert_array_equal(flat[5 * LENGTH + 3], KEYS.reshape(-1, M * D)[5 * LENGTH + 3])
    np.testing.assert_array_equal(flat[8], KEY[5])


def test_heads_are_normalized_and_rotated() -> None:
    """Norm and rotation happen before keys are stored; positions count from the past."""
    angles = np.outer(np.arange(16), [1.0, 0.1]).astype(np.float16)
    ones = np.ones(D, np.float16)
    inputs = (QUERY, KEY, VALUE, KEYS, VALUES, *LISTS, np.cos(angles), np.sin(angles), None, None, ones, ones)
    _, keys, _ = run(*inputs, do_rotary=1, rotary_offset=4)
    head = KEY[0, :D].astype(np.float64)
    head /= np.sqrt(np.mean(head**2) + 1e-6)
    cos, sin = (np.asarray(f(angles.astype(np.float64)))[PAST[0]] for f in (np.cos, np.sin))
    turned = np.concatenate([head[:4], head[4:6] * cos - head[6:] * sin, head[6:] * cos + head[4:6] * sin])
    np.testing.assert_allclose(keys[5, 3, 0].astype(np.float64), turned, atol=5e-3)


def test_a_latent_cache_holds_values_in_its_keys() -> None:
    """One head's leading channels are the values."""
    inputs = (draw(TOKENS, N * D, seed=1), draw(TOKENS, D, seed=2), None, draw(6, LENGTH, 1, D, seed=4), None, *LISTS)
    options = {"kv_cache_layout": "LATENT", "v_head_size": 5, "scale": 0.3}
    y, keys = run_op("PagedAttention", *inputs, domain="com.microsoft", outputs=2, num_heads=N, kv_num_heads=1, **options)
    apart = (inputs[0], inputs[1], inputs[1], inputs[3], inputs[3], *LISTS)
    both = run_op("PagedAttention", *apart, domain="com.microsoft", outputs=3, num_heads=N, kv_num_heads=1, scale=0.3)
    assert y.shape == (TOKENS, N * 5)
    np.testing.assert_array_equal(y.reshape(TOKENS, N, 5), both[0].reshape(TOKENS, N, D)[..., :5])
    np.testing.assert_array_equal(keys, both[1])


def test_what_does_not_fit_is_refused() -> None:
    """Blocks outside the cache, sequences longer than their blocks, lists that contradict each other."""
    with pytest.raises(InvalidArgument, match="outside the 6 of the cache"):
        run(QUERY, KEY, VALUE, KEYS, VALUES, CUMULATIVE, LISTS[1], TABLE + 9)
    with pytest.raises(InvalidArgument, match="do not hold them"):
        run(QUERY, KEY, VALUE, KEYS, VALUES, CUMULATIVE, LISTS[1] + 30, TABLE)
    with pytest.raises(InvalidArgument, match="for 8 tokens"):
        run(QUERY, KEY, VALUE, KEYS, VALUES, CUMULATIVE + 1, LISTS[1], TABLE)
