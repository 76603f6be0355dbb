"""CausalConvWithState of com.microsoft: pieces make the same as the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

N, C, T, TAPS = 2, 6, 7, 3


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(*inputs: Any, **options: Any) -> Any:
    return run_op("CausalConvWithState", *inputs, domain="com.microsoft", outputs=2, **options)


X, WEIGHT, BIAS = draw(N, C, T, seed=1), draw(C, 1, TAPS, seed=2), draw(C, seed=3)


@pytest.mark.parametrize("dilation", [1, 2])
def test_outputs_see_the_past_alone(dilation: int) -> None:
    """Tap j reads the position (taps - 1 - j) x dilation before; what lies before the input is zero."""
    y, state = run(X, WEIGHT, BIAS, dilation=dilation)
    length = (TAPS - 1) * dilation
    padded = np.concatenate([np.zeros((N, C, length)), X], axis=2)
    taps = [padded[:, :, j * dilation : j * dilation + T] * WEIGHT[:, :, j] for j in range(TAPS)]
    np.testing.assert_allclose(y, sum(taps) + BIAS[:, None], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(state, X[:, :, T - length :])


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
def test_a_state_continues_the_sequence(activation: str) -> None:
    """Two calls give what one gives."""
    whole, end = run(X, WEIGHT, BIAS, activation=activation)
    first, state = run(X[:, :, :1], WEIGHT, BIAS, activation=activation)
    second, state = run(X[:, :, 1:], WEIGHT, BIAS, state, activation=activation)
    np.testing.assert_allclose(np.concatenate([first, second], axis=2), whole, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(state, end)


def test_channels_may_come_last_and_in_several_axes() -> None:
    """(N, T, 2, 3) has six channels; the state lies alike."""
    y, state = run(X, WEIGHT, BIAS)
    last, last_state = run(X.swapaxes(1, 2).reshape(N, T, 2, 3), WEIGHT, BIAS, channels_last=1)
    np.testing.assert_array_equal(last.reshape(N, T, C).swapaxes(1, 2), y)
    np.testing.assert_array_equal(last_state.reshape(N, TAPS - 1, C).swapaxes(1, 2), state)


def test_a_window_keeps_the_states_of_the_last_positions() -> None:
    """Slot j is the state after position T - W + j, zeros before the first; the last slot is read."""
    _, states = run(X, WEIGHT, state_window=2)
    np.testing.assert_array_equal(states, [X[:, :, T - 3 : T - 1], X[:, :, T - 2 :]])
    y, again = run(X[:, :, :1], WEIGHT, None, states, state_window=2)
    np.testing.assert_array_equal(y, run(X[:, :, :1], WEIGHT, None, states[1])[0])
    assert not again[0].any()


def test_half_types_are_kept() -> None:
    """Output and state have the type of the input."""
    y, state = run(X.astype(np.float16), WEIGHT.astype(np.float16))
    assert (y.dtype, state.dtype) == (np.float16, np.float16)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ((X, WEIGHT[:3]), {}, r"weight \(3, 1, 3\)"),
        ((X, WEIGHT, None, X), {}, "past_state has shape"),
        ((X, WEIGHT), {"activation": "relu"}, "'relu'"),
        ((X, WEIGHT), {"ndim": 2}, "ndim 2"),
    ],
)
def test_bad_arguments_are_named(inputs: tuple[Any, ...], attributes: dict[str, Any], message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        run(*inputs, **attributes)


def test_no_positions_carry_the_state_on():
    """An input of length 0 gives an output of length 0 and the past state."""
    x, weight = np.zeros((1, 3, 0), np.float32), np.ones((3, 1, 2), np.float32)
    past = np.arange(3, dtype=np.float32).reshape(1, 3, 1)
    y, state = run_op("CausalConvWithState", x, weight, None, past, domain="com.microsoft", outputs=2)
    assert y.shape == (1, 3, 0)
    assert (state == past).all()
