"""GatedDeltaNet against its recurrence in float64, and against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.peer import run_peer
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

RANDOM = np.random.default_rng(21)
NAMES = "query key value cu_seqlens decay beta initial_state a_log dt_bias capture_count state_update_active".split()
N, K, M, V = 2, 8, 4, 6
BOUNDS = np.array([0, 2, 2, 7], np.int32)
RULES = {"linear": (), "gated": ("decay",), "delta": ("beta",), "gated_delta": ("decay", "beta")}


def drawn(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def inputs_of(rule: str = "gated_delta", *, by_key: bool = False, dtype: Any = np.float32) -> dict[str, Array]:
    """Three sequences, one of them empty, with keys of length 1."""
    key = drawn(7, N, K)
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    decay, beta = -np.abs(drawn(7, M, K) if by_key else drawn(7, M)), 1 / (1 + np.exp(-drawn(7, M)))
    given = {"query": drawn(7, N, K).astype(dtype), "key": key.astype(dtype), "value": drawn(7, M, V).astype(dtype)}
    given |= {"cu_seqlens": BOUNDS, "initial_state": drawn(3, M, V, K)}
    return given | {name: {"decay": decay, "beta": beta}[name] for name in RULES[rule]}


def run(given: dict[str, Array], **attributes: Any) -> Any:
    return run_op("GatedDeltaNet", *map(given.get, NAMES), domain="com.microsoft", outputs=3, **attributes)


def peer(given: dict[str, Array], **attributes: Any) -> Any:
    return run_peer("GatedDeltaNet", *map(given.get, NAMES), outputs=3, **attributes)


def recurrence(given: dict[str, Array], gates: Array | None, rates: Array | None, scale: float) -> tuple[Array, Array]:
    """The definition for each head, with S (K, V); gates (7, M, 1 or K) are logarithms."""
    wide = {name: array.astype(np.float64) for name, array in given.items()}
    output, states = np.zeros((7, M, V)), np.zeros((3, M, V, K))
    for sequence, head in np.ndindex(3, M):
        state = wide["initial_state"][sequence, head].T if "initial_state" in given else np.zeros((K, V))
        for token in range(BOUNDS[sequence], BOUNDS[sequence + 1]):
            k, added = wide["key"][token, head // (M // N)], wide["value"][token, head]
            state = state if gates is None else np.exp(gates[token, head])[:, None] * state
            added = added if rates is None else rates[token, head] * (added - state.T @ k)
            state = state + np.outer(k, added)
            output[token, head] = scale * state.T @ wide["query"][token, head // (M // N)]
        states[sequence, head] = state.T
    return output, states


def check(given: dict[str, Array], gates: Array | None, rates: Array | None, factor: float = K**-0.5, **attributes: Any) -> None:
    """Compare output and states with the definition and with onnxruntime."""
    found = run(given, **attributes)
    tolerance = 1e-5 if given["query"].dtype == np.float32 else 2e-3
    assert found[0].dtype == given["query"].dtype
    for ours, exact, theirs in zip(found[:2], recurrence(given, gates, rates, factor), peer(given, **attributes)[:2], strict=True):
        np.testing.assert_allclose(ours, exact, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def gates_of(given: dict[str, Array]) -> Array | None:
    return given["decay"].astype(np.float64).reshape(7, M, -1) if "decay" in given else None


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_each_rule_has_its_terms(rule: str, by_key: bool, dtype: Any) -> None:
    """Decay of the state, correction by what it holds, both or neither; heads share queries and keys."""
    given = inputs_of(rule, by_key=by_key, dtype=dtype)
    check(given, gates_of(given), given.get("beta"), update_rule=rule)


def test_sequences_without_a_state_begin_at_zero() -> None:
    """Their bounds say how many there are; the scale may be given."""
    given = {name: array for name, array in inputs_of().items() if name != "initial_state"}
    check(given, gates_of(given), given["beta"], 0.25, scale=0.25)


@pytest.mark.parametrize(
    ("by_key", "bias"), [(False, (M,)), (True, (M,)), (True, (M, K)), (True, (M * K,))], ids=["head", "shared", "matrix", "flat"]
)
@pytest.mark.parametrize("activation", ["softplus", "qwen", "sigmoid", "kda"])
def test_a_decay_is_computed_from_its_projection(activation: str, by_key: bool, bias: tuple[int, ...]) -> None:
    """By softplus, or by a sigmoid down to a bound."""
    given = inputs_of(by_key=by_key) | {"a_log": drawn(M), "dt_bias": drawn(*bias)}
    wide = {name: given[name].astype(np.float64) for name in ("a_log", "dt_bias", "decay")}
    raw, factor = wide["decay"].reshape(7, M, -1) + wide["dt_bias"].reshape(M, -1), np.exp(wide["a_log"])[:, None]
    gates = -factor * np.log1p(np.exp(raw)) if activation in ("softplus", "qwen") else -3 / (1 + np.exp(-factor * raw))
    check(given, gates, given["beta"], gate_activation=activation, gate_lower_bound=-3.0)


def test_rates_and_lengths_may_be_left_to_the_operator() -> None:
    """A sigmoid of beta, and queries and keys over their lengths."""
    given = inputs_of() | {"key": 3 * drawn(7, N, K), "query": 1e-6 * drawn(7, N, K), "beta": drawn(7, M)}
    attributes = {"qk_l2_norm": 1, "beta_activation": "sigmoid"}
    units = {name: given[name].astype(np.float64) for name in ("query", "key")}
    units = {name: x / np.sqrt(np.square(x).sum(-1, keepdims=True) + 1e-12) for name, x in units.items()}
    exact = recurrence(given | units, gates_of(given), 1 / (1 + np.exp(-given["beta"].astype(np.float64))), K**-0.5)
    for ours, expected, theirs in zip(run(given, **attributes), exact, peer(given, **attributes)[:2], strict=False):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def even() -> dict[str, Array]:
    """Two sequences of three tokens."""
    given = {name: array[:6] for name, array in inputs_of().items() if name != "cu_seqlens"}
    return given | {"initial_state": drawn(2, M, V, K)}


def test_tokens_may_have_two_axes_or_one() -> None:
    """Without bounds sequences are of one length."""
    given = even()
    two = {name: array if name == "initial_state" else array.reshape(2, 3, *array.shape[1:]) for name, array in given.items()}
    output, states, _ = run(two)
    flat = run(given)
    np.testing.assert_array_equal(output.reshape(6, M, V), flat[0])
    np.testing.assert_array_equal(states, flat[1])
    np.testing.assert_allclose(output, peer(two)[0], rtol=1e-5, atol=1e-5)


def test_a_query_may_hold_key_and_value() -> None:
    """Its sizes are those of the state."""
    given = even()
    joined = np.concatenate([given[name].reshape(6, -1) for name in ("query", "key", "value")], axis=1)
    packed = {"query": joined} | {name: given[name] for name in ("decay", "beta", "initial_state")}
    np.testing.assert_array_equal(run(packed)[0], run(given)[0])
    np.testing.assert_allclose(run(packed)[0], peer(packed)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("by_key", [False, True])
def test_captured_steps_replay_the_state(by_key: bool) -> None:
    """Decays, keys and what was added lie one after another; slots that hold none are zeros."""
    given = inputs_of(by_key=by_key) | {"capture_count": np.array([1, 3, 9], np.int32)}
    width = M * K if by_key else M
    _, states, update = run(given, state_update_capacity=5)
    assert update.shape == (3, 5 * (width + N * K + M * V))
    decays, keys, added = np.split(update, [5 * width, 5 * (width + N * K)], axis=1)
    state = given["initial_state"][2]
    for slot in range(5):
        key = np.repeat(keys.reshape(3, 5, N, K)[2, slot], M // N, axis=0)
        state = state * decays.reshape(3, 5, M, 1, -1)[2, slot] + added.reshape(3, 5, M, V)[2, slot][..., None] * key[:, None]
    np.testing.assert_allclose(state, states[2], rtol=1e-5, atol=1e-5)
    assert not update[1].any()
    np.testing.assert_allclose(update, peer(given, state_update_capacity=5)[2], rtol=1e-5, atol=1e-5)
    given["state_update_active"] = np.zeros(1, np.int32)
    assert not run(given, state_update_capacity=5)[2].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": None}, "one of key and value"),
        ({"key": drawn(7, M, K)}, "query, key and value"),
        ({"value": drawn(7, 3, V)}, "query, key and value"),
        ({"query": drawn(7, N, 0), "key": drawn(7, N, 0)}, "no head is empty"),
        ({"key": None, "value": None}, "query has 8 features"),
        ({"key": None, "value": None, "initial_state": None}, "with no initial_state"),
        ({"query": drawn(7, 57), "key": None, "value": None}, "query has 57 features"),
        ({"cu_seqlens": np.array([0, 3, 2, 7], np.int32)}, "cu_seqlens goes"),
        ({"cu_seqlens": None}, "7 tokens for 3 sequences"),
        ({"cu_seqlens": None, "initial_state": None}, "both left out"),
        ({"initial_state": drawn(2, M, V, K)}, "initial_state has shape"),
        ({"decay": None}, "decay is left out"),
        ({"beta": None}, "beta is left out"),
        ({"decay": drawn(7, N)}, "decay has shape"),
        ({"beta": drawn(7, 1)}, "beta has shape"),
        ({"a_log": drawn(M)}, "belong to gate_activation"),
        ({"capture_count": np.ones(3, np.int32)}, "capture_count is given"),
        ({"state_update_active": np.ones(2, np.int32)}, "state_update_active has shape"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(change: dict[str, Array | None], message: str) -> None:
    """Each by its name."""
    with pytest.raises(InvalidArgument, match=message):
        run({name: array for name, array in (inputs_of() | change).items() if array is not None})


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"update_rule": "x"}, "update_rule is 'x'"),
        ({"gate_activation": "x"}, "gate_activation 'x'"),
        ({"beta_activation": "x"}, "beta_activation 'x'"),
        ({"gate_lower_bound": 0.0}, "gate_lower_bound is 0.0"),
        ({"update_rule": "delta"}, "decay is given"),
        ({"gate_activation": "softplus"}, "belong to gate_activation"),
        ({"state_update_capacity": 9}, "state_update_capacity is 9"),
    ],
)
def test_attributes_that_mean_nothing_are_refused(attributes: dict[str, Any], message: str) -> None:
    """Or that do not go with the inputs."""
    with pytest.raises(InvalidArgument, match=message):
        run(inputs_of(), **attributes)


def test_a_bias_for_each_key_belongs_to_such_a_decay() -> None:
    """A decay for each head has a bias for each head."""
    given = inputs_of() | {"a_log": drawn(M), "dt_bias": drawn(M, K)}
    with pytest.raises(InvalidArgument, match="a_log and dt_bias have shapes"):
        run(given, gate_activation="softplus")
