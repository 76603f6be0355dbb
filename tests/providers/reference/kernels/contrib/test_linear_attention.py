"""LinearAttention against its recurrence, written out per head in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

B, T, N, M, K, V = 2, 5, 4, 2, 3, 6


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def inputs(rule: str, decay_size: int = M, beta_size: int = M) -> list[Any]:
    decay = -np.abs(draw(B, T, decay_size, seed=4)) if "gated" in rule else None
    beta = np.abs(draw(B, T, beta_size, seed=5)) if "delta" in rule else None
    return [draw(B, T, N * K, seed=1), draw(B, T, M * K, seed=2), draw(B, T, M * V, seed=3), draw(B, M, K, V, seed=6), decay, beta]


def by_hand(q: Array, k: Array, v: Array, past: Array, decay: Array | None, beta: Array | None) -> tuple[Array, Array]:
    state, out = past.astype(np.float64), np.zeros((B, T, N, V))
    for b, t, n in np.ndindex(B, T, N):
        m = n // (N // M)
        if n % (N // M) == 0:
            key, value = k[b, t, m * K : (m + 1) * K], v[b, t, m * V : (m + 1) * V]
            if decay is not None:
                g = decay[b, t, m] if decay.shape[2] == M else decay[b, t, m * K : (m + 1) * K, None]
                state[b, m] *= np.exp(g)
            if beta is not None:
                value = beta[b, t, m if beta.shape[2] == M else 0] * (value - state[b, m].T @ key)
            state[b, m] += np.outer(key, value)
        out[b, t, n] = state[b, m].T @ q[b, t, n * K : (n + 1) * K] / np.sqrt(K)
    return out.reshape(B, T, N * V), state


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize(("decay_size", "beta_size"), [(M, M), (M * K, 1)])
def test_each_rule_follows_its_recurrence(rule: str, decay_size: int, beta_size: int) -> None:
    """Decay per head or per key dimension, beta per head or for all."""
    given = inputs(rule, decay_size, beta_size)
    output, state = run_op("LinearAttention", *given, update_rule=rule, q_num_heads=N, kv_num_heads=M)
    expected, expected_state = by_hand(*given)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state, expected_state, rtol=1e-4, atol=1e-5)


def test_the_past_state_stays_unchanged_and_decides_the_type_of_the_new() -> None:
    """The output follows the query instead."""
    given = inputs("linear")
    given[:3] = [x.astype(np.float16) for x in given[:3]]
    before = given[3].copy()
    output, state = run_op("LinearAttention", *given, update_rule="linear", q_num_heads=N, kv_num_heads=M)
    np.testing.assert_array_equal(given[3], before)
    assert (output.dtype, state.dtype) == (np.float16, np.float32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"update_rule": "linear"}, "takes no input decay"),
        ({"update_rule": "cubic"}, "'cubic'"),
        ({"q_num_heads": 3}, "3 query heads"),
        ({"q_num_heads": 8, "kv_num_heads": 8}, "key has shape"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, Any], message: str) -> None:
    """The message holds the value that was found."""
    attributes = {"update_rule": "gated_delta", "q_num_heads": N, "kv_num_heads": M} | change
    given = inputs("gated_delta")
    given[0] = draw(B, T, 24)
    with pytest.raises(InvalidArgument, match=message):
        run_op("LinearAttention", *given, **attributes)


def microsoft(*given: Any, **attributes: Any) -> Any:
    return run_op("LinearAttention", *given, domain="com.microsoft", **attributes)


def test_com_microsoft_keeps_the_states_of_the_last_steps() -> None:
    """Slot j holds the state after step T - W + j; the last slot is the one that is read."""
    given = inputs("gated_delta")
    options = {"q_num_heads": N, "kv_num_heads": M}
    window = np.stack([np.full_like(given[3], np.nan), given[3]])
    output, states = microsoft(*given[:3], window, *given[4:], state_window=2, **options)
    expected, last = microsoft(*given, **options)
    _, before = microsoft(*(x[:, :-1] for x in given[:3]), given[3], *(x[:, :-1] for x in given[4:]), **options)
    np.testing.assert_array_equal(output, expected)
    np.testing.assert_array_equal(states, np.stack([before, last]))


def test_com_microsoft_fills_slots_without_a_step_with_zeros() -> None:
    """A window longer than the sequence begins with zeros."""
    given = inputs("linear")
    _, states = microsoft(*given[:3], None, update_rule="linear", q_num_heads=N, kv_num_heads=M, state_window=T + 2)
    assert not states[:2].any()
    assert states[2:].any(axis=(1, 2, 3, 4)).all()


def test_com_microsoft_lets_key_heads_share_a_query_head() -> None:
    """With more key heads than query heads each key head gives an output."""
    given = inputs("linear")
    query = given[0][:, :, :K]
    output, _ = microsoft(query, *given[1:4], update_rule="linear", q_num_heads=1, kv_num_heads=M)
    expected, _ = microsoft(np.tile(query, M), *given[1:4], update_rule="linear", q_num_heads=M, kv_num_heads=M)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta"])
def test_inputs_that_the_rule_does_not_use_count_for_nothing(rule: str) -> None:
    """com.microsoft takes a decay and a beta beside every rule, where the standard forbids them."""
    query, key, value, past, decay, beta = inputs("gated_delta")
    used = (decay if rule == "gated" else None, beta if rule == "delta" else None)
    attributes = {"update_rule": rule, "q_num_heads": N, "kv_num_heads": M, "outputs": 2}
    found = microsoft(query, key, value, past, decay, beta, **attributes)
    for given, without in zip(found, microsoft(query, key, value, past, *used, **attributes), strict=True):
        np.testing.assert_array_equal(given, without)
