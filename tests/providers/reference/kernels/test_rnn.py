"""RNN, GRU and LSTM against their equations, written out in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

T, N, H, FEATURES = 5, 3, 2, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def parameters(op_type: str, directions: int = 1) -> list[Any]:
    gates = GATES[op_type]
    return [
        draw(T, N, FEATURES, seed=1),
        draw(directions, gates * H, FEATURES, seed=2),
        draw(directions, gates * H, H, seed=3),
        draw(directions, 2 * gates * H, seed=4),
    ]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(x: Array, w: Array, r: Array, b: Array, p: Array, h: Array, c: Array) -> tuple[Array, Array]:
    states = []
    for t in range(len(x)):
        i, o, f, g = np.split(x[t] @ w.T + h @ r.T + b[: 4 * H] + b[4 * H :], 4, axis=1)
        i, f = sigmoid(i + p[:H] * c), sigmoid(f + p[2 * H :] * c)
        c = f * c + i * np.tanh(g)
        h = sigmoid(o + p[H : 2 * H] * c) * np.tanh(c)
        states.append(h)
    return np.stack(states), c


def test_LSTM_follows_its_equations_with_peepholes_and_initial_states() -> None:
    """Gates i, o, f, c, with Po looking at the new cell."""
    x, w, r, b = parameters("LSTM")
    h, c, p = draw(1, N, H, seed=5), draw(1, N, H, seed=6), draw(1, 3 * H, seed=7)
    wide = [a.astype(np.float64) for a in (x, w[0], r[0], b[0], p[0], h[0], c[0])]
    expected_y, expected_c = lstm_by_hand(*wide)
    y, y_h, y_c = run_op("LSTM", x, w, r, b, None, h, c, p, hidden_size=H, outputs=3)
    np.testing.assert_allclose(y[:, 0], expected_y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y_h[0], expected_y[-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y_c[0], expected_c, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("linear_before_reset", [0, 1])
def test_GRU_resets_before_or_behind_the_recurrence(linear_before_reset: int) -> None:
    """linear_before_reset moves the reset gate behind Ht-1 Rh^T + Rbh."""
    x, w, r, b = parameters("GRU")
    h = np.zeros((N, H))
    w_bias, r_bias = b[0].astype(np.float64).reshape(2, 3 * H)
    for t in range(T):
        z, s, g = np.split(x[t].astype(np.float64) @ w[0].T + w_bias, 3, axis=1)
        rz, rs, _ = np.split(h @ r[0].T + r_bias, 3, axis=1)
        z, s = sigmoid(z + rz), sigmoid(s + rs)
        rh, rbh = r[0, 2 * H :], r_bias[2 * H :]
        g = np.tanh(g + (s * (h @ rh.T + rbh) if linear_before_reset else (s * h) @ rh.T + rbh))
        h = (1 - z) * g + z * h
    _, y_h = run_op("GRU", x, w, r, b, outputs=2, linear_before_reset=linear_before_reset)
    np.testing.assert_allclose(y_h[0], h, rtol=1e-5, atol=1e-6)


def test_RNN_applies_tanh_by_default() -> None:
    """Ht = tanh(Xt W^T + Ht-1 R^T + biases)."""
    x, w, r, b = parameters("RNN")
    h = np.zeros((N, H))
    for t in range(T):
        h = np.tanh(x[t].astype(np.float64) @ w[0].T + h @ r[0].T + b[0, :H] + b[0, H:])
    _, y_h = run_op("RNN", x, w, r, b, outputs=2)
    np.testing.assert_allclose(y_h[0], h, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_reverse_is_forward_on_the_reversed_sequence(op_type: str) -> None:
    """Y of the reverse direction is written at the steps that it read."""
    x, *rest = parameters(op_type)
    reverse = run_op(op_type, x, *rest, direction="reverse")
    forward = run_op(op_type, x[::-1], *rest)
    np.testing.assert_array_equal(reverse[0], forward[0][::-1])
    np.testing.assert_array_equal(reverse[1], forward[1])


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_bidirectional_holds_both_directions(op_type: str) -> None:
    """The second slice of each parameter serves the reverse direction."""
    x, w, r, b = parameters(op_type, directions=2)
    both = run_op(op_type, x, w, r, b, direction="bidirectional")
    forward = run_op(op_type, x, w[:1], r[:1], b[:1])
    reverse = run_op(op_type, x, w[1:], r[1:], b[1:], direction="reverse")
    for result, one, other in zip(both, forward, reverse, strict=True):
        np.testing.assert_array_equal(result, np.concatenate([one, other], axis=-3))


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_sequence_lens_ends_each_sequence_on_its_own(op_type: str, direction: str) -> None:
    """Each batch row equals a run of its own prefix; behind its end Y is zero; a length of 0 keeps the initial state."""
    x, w, r, b = parameters(op_type)
    lengths, h = np.array([2, 5, 0], np.int32), draw(1, N, H, seed=8)
    y, y_h, *y_c = run_op(op_type, x, w, r, b, lengths, h, direction=direction)
    for n, length in enumerate(lengths):
        one = run_op(op_type, x[:length, n : n + 1], w, r, b, None, h[:, n : n + 1], direction=direction)
        np.testing.assert_allclose(y[:length, :, n], one[0][:, :, 0], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(y[length:, :, n], 0)
        np.testing.assert_allclose(y_h[:, n], one[1][:, 0], rtol=1e-5, atol=1e-6)
        if y_c:
            np.testing.assert_allclose(y_c[0][:, n], one[2][:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_layout_1_puts_the_batch_first(op_type: str) -> None:
    """X, initial states and outputs swap their first axes; Y becomes (N, T, D, H)."""
    x, *rest = parameters(op_type)
    h = draw(1, N, H, seed=8)
    y, *states = run_op(op_type, x, *rest, None, h)
    batch_first = run_op(op_type, x.swapaxes(0, 1), *rest, None, h.swapaxes(0, 1), layout=1)
    np.testing.assert_array_equal(batch_first[0], y.transpose(2, 0, 1, 3))
    for ours, theirs in zip(batch_first[1:], states, strict=True):
        np.testing.assert_array_equal(ours, theirs.swapaxes(0, 1))


def test_LSTM_input_forget_couples_the_gates() -> None:
    """With input_forget the forget gate is 1 - i, whatever its weights are."""
    x, w, r, b = parameters("LSTM")
    other = w.copy()
    other[:, 2 * H : 3 * H] += 1
    np.testing.assert_array_equal(run_op("LSTM", x, w, r, b, input_forget=1)[0], run_op("LSTM", x, other, r, b, input_forget=1)[0])


def test_clip_bounds_the_input_of_the_activation() -> None:
    """Affine with alpha 1 shows the clipped sum itself."""
    x, w, r, b = parameters("RNN")
    y, _ = run_op("RNN", x, w, r, b, activations=("Affine",), clip=0.25)
    assert np.abs(y).max() == 0.25


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_types_are_kept(dtype: Any) -> None:
    """Half types compute in float32 and round once at the end."""
    inputs = [a.astype(dtype) for a in parameters("LSTM")]
    results = run_op("LSTM", *inputs, outputs=3)
    wide = run_op("LSTM", *[a.astype(np.float32) for a in inputs], outputs=3)
    for result, expected in zip(results, wide, strict=True):
        assert result.dtype == dtype
        if dtype is not np.float64:
            np.testing.assert_array_equal(result, expected.astype(dtype))


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("shape", [(0, N, FEATURES), (T, 0, FEATURES), (T, N, 0), (1, 1, FEATURES)])
def test_empty_and_single_sizes(op_type: str, shape: tuple[int, ...]) -> None:
    """No step leaves the initial state; no batch row and no feature give arrays of the right shape."""
    _, w, r, b = parameters(op_type)
    y, y_h, *_ = run_op(op_type, np.ones(shape, np.float32), w[:, :, : shape[2]], r, b)
    assert y.shape == (shape[0], 1, shape[1], H)
    assert y_h.shape == (1, shape[1], H)


def test_inputs_may_be_views_and_stay_unchanged() -> None:
    """A transposed X gives what its copy gives, and the initial states are not written to."""
    x, *rest = parameters("LSTM")
    view = np.asfortranarray(x)
    state = np.zeros((1, N, H), np.float32)
    np.testing.assert_array_equal(run_op("LSTM", view, *rest, None, state, state)[0], run_op("LSTM", x, *rest)[0])
    assert not state.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"direction": "sideways"}, "direction is 'sideways'"),
        ({"layout": 2}, "layout is 2"),
        ({"hidden_size": 7}, "hidden_size is 7"),
        ({"direction": "bidirectional"}, "W has shape"),
        ({"activations": ("Tanh", "Tanh")}, "takes 3"),
        ({"activations": ("Tanh", "Cosine", "Tanh")}, "'Cosine' is unknown"),
    ],
)
def test_bad_attributes_are_named(change: dict[str, Any], message: str) -> None:
    """The message holds the value that was found."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("LSTM", *parameters("LSTM"), **change)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, draw(T, N), "rank 3"),
        (1, draw(1, 3, FEATURES), "W has shape"),
        (3, draw(1, 3), "B has shape"),
        (4, np.array([1, 2, 9], np.int32), "between 0 and the 5 steps"),
        (5, draw(1, N, 9), "initial_h has shape"),
        (7, draw(1, 9), "P has shape"),
    ],
)
def test_bad_shapes_are_named(position: int, value: Array, message: str) -> None:
    """The message names the input and both shapes."""
    inputs = [*parameters("LSTM"), None, None, None, None]
    inputs[position] = value
    with pytest.raises(InvalidArgument, match=message):
        run_op("LSTM", *inputs)
