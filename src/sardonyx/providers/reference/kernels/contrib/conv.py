"""CausalConvWithState of com.microsoft: a causal depthwise convolution that carries the end of its input to the next call.

Dimension letters: N batch, C channels, T positions along the causal axis, H the state's length, (taps - 1) x dilation.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["microsoft_causal_conv_with_state"]


@kernel("CausalConvWithState", domain="com.microsoft")
def microsoft_causal_conv_with_state(
    call: Call,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    past_state: Array | None = None,
    *,
    activation: str = "none",
    channels_last: int = 0,
    dilation: int = 1,
    ndim: int = 1,
    state_window: int = 0,
) -> tuple[Array, Array]:
    """Convolve each channel of X (N, C, T) with weight (C, 1, taps), continued from past_state (N, C, H).

    Returns the output, of the shape of X, and the last H positions of past and X; with `state_window` W the states (W, N, …)
    after each of the last W positions, zeros where there is none. With channels_last X is (N, T, …) and so are the states.
    Source: com.microsoft CausalConvWithState with `ndim` 1.
    """
    if activation not in ("none", "silu", "swish") or dilation < 1 or ndim != 1:
        raise InvalidArgument(
            f"activation is {activation!r}, dilation {dilation} and ndim {ndim}; expected none, silu or swish, at least 1, and 1"
        )
    first = _channels_first(x, channels_last)
    if first.ndim != 3 or weight.ndim != 3 or weight.shape[:2] != (first.shape[1], 1) or weight.shape[2] == 0:
        raise InvalidArgument(f"input has shape {x.shape} and weight {weight.shape}; expected (N, C, T) and (C, 1, taps)")
    length = (weight.shape[2] - 1) * dilation
    if past_state is not None and state_window and len(past_state) != state_window:
        raise InvalidArgument(f"past_state has shape {past_state.shape}; expected state_window, {state_window}, slots in front")
    past = None if past_state is None else past_state[-1] if state_window else past_state
    check_output_size((max(state_window, 1), *first.shape[:2], length), x.itemsize)
    joined = np.concatenate([_start(past, first, length, channels_last), first], axis=-1)
    wide = None if bias is None else widen(bias)
    y = np.zeros(first.shape, np.float32)
    if first.size:
        y = run_standard("Conv", widen(joined), widen(weight), wide, group=weight.shape[0], dilations=(dilation,))
    y = y if activation == "none" else run_standard("Swish", y)
    y = _channels_back(y.astype(x.dtype, copy=False), channels_last, x.shape)
    states = [_state_after(joined, first.shape[-1] - back, length) for back in range(max(state_window, 1) - 1, -1, -1)]
    shaped = [_channels_back(state, channels_last, (x.shape[0], length, *x.shape[2:])) for state in states]
    return y, np.stack(shaped) if state_window else shaped[0]


def _channels_first(x: Array, channels_last: int) -> Array:
    """Return X as (N, C, T); from (N, T, …) the channels are merged."""
    if not channels_last:
        return x
    if x.ndim < 3:
        raise InvalidArgument(
            f"input has shape {x.shape}; with channels_last it has batch, positions and at least one channel axis"
        )
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:])).swapaxes(1, 2)


def _channels_back(y: Array, channels_last: int, shape: tuple[int, ...]) -> Array:
    return y.swapaxes(1, 2).reshape(shape) if channels_last else y


def _start(past: Array | None, x: Array, length: int, channels_last: int) -> Array:
    """Return the inputs before X: the past (N, C, H), or zeros."""
    shape = (*x.shape[:-1], length)
    if past is None:
        return np.zeros(shape, x.dtype)
    first = _channels_first(past, channels_last)
    if first.shape != shape:
        raise InvalidArgument(f"past_state has shape {past.shape}; read with its channels first it must be {shape}")
    return first.astype(x.dtype, copy=False)


def _state_after(joined: Array, position: int, length: int) -> Array:
    """Return the last `length` elements up to `position` elements of X; zeros where X does not reach that far back."""
    if position < 0 or (position == 0 and joined.shape[-1] > length):
        return np.zeros((*joined.shape[:-1], length), joined.dtype)
    return joined[..., position : position + length]
