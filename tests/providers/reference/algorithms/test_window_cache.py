"""A cache as long as a window gives what a whole one gives, and holds the rows that it promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.window_cache import resident_count

N, M, D, T = 4, 2, 8, 12


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(*inputs: Any, **options: Any) -> Any:
    return run_op("GroupQueryAttention", *inputs, domain="com.microsoft", num_heads=N, kv_num_heads=M, outputs=3, **options)


Q, K, V = draw(1, T, N * D, seed=1), draw(1, T, M * D, seed=2), draw(1, T, M * D, seed=3)
ROWS = K.reshape(T, M, D).swapaxes(0, 1)


@pytest.mark.parametrize(
    ("capacity", "window", "counts"),
    [(4, 4, [1, 2, 3, 4, 4, 4, 4, 4]), (5, 3, [1, 2, 3, 4, 5, 3, 4, 5]), (3, 1, [1, 2, 3, 1, 2, 3, 1, 2])],
)
def test_resident_count_evicts_by_groups(capacity: int, window: int, counts: list[int]) -> None:
    """A group goes as soon as the cache would overflow; the window always stays."""
    assert [resident_count(total, capacity, window) for total in range(1, 9)] == counts


@pytest.mark.parametrize("capacity", [3, 5])
@pytest.mark.parametrize("steps", [[12], [1] * 12, [7, 5], [2, 9, 1]])
def test_any_split_into_steps_gives_the_same(capacity: int, steps: list[int]) -> None:
    """Outputs are those of a whole cache with the same window; the rows left depend on the number of tokens alone."""
    window = 3
    whole = run(Q, K, V, None, None, np.array([T - 1]), np.array(T), local_window_size=window)[0]
    cache, done, parts = [np.zeros((1, M, capacity, D), np.float32)] * 2, 0, []
    for count in steps:
        piece = slice(done, done + count)
        done += count
        y, *cache = run(
            Q[:, piece],
            K[:, piece],
            V[:, piece],
            *cache,
            np.array([done - 1]),
            np.array(done),
            local_window_size=window,
            sliding_window_cache=1,
        )
        parts.append(y)
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=1e-5, atol=1e-5)
    kept = resident_count(T, capacity, window)
    np.testing.assert_array_equal(cache[0][0, :, :kept], ROWS[:, T - kept :])


def test_a_bias_goes_by_absolute_position() -> None:
    """Its last dimension is as long as the sequence, not as the cache."""
    bias = draw(1, N, 1, T, seed=4)
    cache = [np.zeros((1, M, 4, D), np.float32)] * 2
    options = {"local_window_size": 4}
    head, tail = (slice(0, T - 1), slice(T - 1, T))
    _, *cache = run(
        Q[:, head], K[:, head], V[:, head], *cache, np.array([T - 2]), np.array(T - 1), sliding_window_cache=1, **options
    )
    given = (np.array([T - 1]), np.array(T), None, None, None, bias)
    y, *_ = run(Q[:, tail], K[:, tail], V[:, tail], *cache, *given, sliding_window_cache=1, **options)
    full = [x.reshape(1, T, M, D).swapaxes(1, 2)[:, :, : T - 1] for x in (K, V)]
    expected, *_ = run(Q[:, tail], K[:, tail], V[:, tail], *full, *given, **options)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("window", [-1, 0, 5])
def test_the_window_must_fit_the_cache(window: int) -> None:
    """The message holds both sizes."""
    cache = [np.zeros((1, M, 4, D), np.float32)] * 2
    with pytest.raises(InvalidArgument, match=f"local_window_size is {window} and the cache holds 4 keys"):
        run(Q, K, V, *cache, np.array([T - 1]), np.array(T), local_window_size=window, sliding_window_cache=1)
