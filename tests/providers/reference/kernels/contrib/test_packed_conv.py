"""VarlenCausalConvWithState against its definition in float64, and against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.peer import run_peer
from support.run_op import run_op

from sardonyx import errors
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

RANDOM = np.random.default_rng(8)
BOUNDS = np.array([0, 2, 3, 8], np.int32)


def run(*inputs: Any, **attributes: Any) -> Any:
    return run_op("VarlenCausalConvWithState", *inputs, domain="com.microsoft", outputs=3, **attributes)


def drawn(*shape: int, dtype: Any = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("taps", "dilation", "channels", "has_bias", "activation", "slots"),
    [(3, 1, 5, True, "silu", 0), (4, 2, 17, False, "none", 3), (1, 1, 3, True, "swish", 2), (2, 5, 1, True, "none", 8)],
)
def test_each_sequence_is_convolved_after_its_state(
    taps: int, dilation: int, channels: int, has_bias: bool, activation: str, slots: int, dtype: Any
) -> None:
    """No tap reads another sequence; the state is what the next call needs."""
    x, weight = drawn(8, channels, dtype=dtype), drawn(channels, 1, taps, dtype=dtype)
    bias = drawn(channels, dtype=dtype) if has_bias else None
    state = drawn(3, channels, (taps - 1) * dilation, dtype=dtype)
    counts = np.array([5, -1, 4], np.int32) if slots else None
    options: dict[str, Any] = {"activation": activation, "dilation": dilation, "state_update_capacity": slots}
    y, final, update = run(x, weight, BOUNDS, bias, state, counts, **options)
    tolerance = 1e-5 if dtype is np.float32 else 2e-3
    for row in range(3):
        own = x[BOUNDS[row] : BOUNDS[row + 1]]
        joined = np.concatenate([state[row].T, own])
        for place in range(len(own)):
            window = joined[place : place + (taps - 1) * dilation + 1 : dilation].astype(np.float64)
            total = (window * weight[:, 0].T).sum(axis=0) + (0 if bias is None else bias)
            total = total if activation == "none" else total / (1 + np.exp(-total))
            np.testing.assert_allclose(y[BOUNDS[row] + place], total, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(final[row], joined[len(own) :].T)
        count = min([2, 0, 4][row], slots)
        np.testing.assert_array_equal(update[row, :count], own[:count])
        assert not update[row, count:].any()
    theirs = run_peer("VarlenCausalConvWithState", x, weight, BOUNDS, bias, state, counts, outputs=3, **options)
    np.testing.assert_allclose(y, theirs[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(final, theirs[1])
    np.testing.assert_array_equal(update, theirs[2])


def test_an_empty_sequence_keeps_its_state() -> None:
    """As in onnxruntime, though its documentation speaks of at least one token."""
    x, weight, state = drawn(3, 2), drawn(2, 1, 3), drawn(2, 2, 2)
    bounds = np.array([0, 0, 3], np.int32)
    final = run(x, weight, bounds, None, state)[1]
    np.testing.assert_array_equal(final[0], state[0])
    np.testing.assert_array_equal(final, run_peer("VarlenCausalConvWithState", x, weight, bounds, None, state, outputs=2)[1])


X, WEIGHT, STATE = drawn(8, 4), drawn(4, 1, 3), drawn(3, 4, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: drawn(1, 8, 4)}, "input has shape"),
        ({1: drawn(4, 3)}, "and weight"),
        ({1: drawn(4, 1, 0)}, "and weight"),
        ({0: drawn(8, 0), 1: drawn(0, 1, 3)}, "and weight"),
        ({2: np.array([0, 2, 7], np.int32)}, "cumulative_sequence_length"),
        ({3: drawn(3)}, "bias has shape"),
        ({4: drawn(3, 4, 3)}, "initial_state has shape"),
        ({5: np.ones(3, np.int32)}, "capture_count is given"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(change: dict[int, Array], message: str) -> None:
    """Each by its name."""
    inputs: list[Array | None] = [X, WEIGHT, BOUNDS, None, STATE, None]
    for index, array in change.items():
        inputs[index] = array
    with pytest.raises(InvalidArgument, match=message):
        run(*inputs)


@pytest.mark.parametrize("options", [{"activation": "relu"}, {"dilation": 0}])
def test_attributes_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    """Activations are three, and taps lie apart."""
    with pytest.raises(InvalidArgument, match="expected none, silu or swish, and at least 1"):
        run(X, WEIGHT, BOUNDS, None, STATE, **options)


def test_filters_that_change_by_token_are_refused() -> None:
    """As on onnxruntime's CPU."""
    with pytest.raises(errors.NotImplemented, match="for CUDA alone"):
        run(X, drawn(4, 1, 2), BOUNDS, None, drawn(3, 4, 1), None, drawn(8, 2, 4), drawn(8, 1))
