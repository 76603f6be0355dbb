"""VarlenCausalConvWithState of com.microsoft: a causal depthwise convolution of sequences that lie one after another.

Dimension letters: B sequences, T tokens of all of them, C channels, K taps, H the state's length, (K - 1) x dilation.
"""

from __future__ import annotations

import numpy as np

from sardonyx import errors
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.packed_sequences import captured_counts, packed_ranges
from sardonyx.providers.reference.algorithms.precision import quiet, require_floats, widen
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["varlen_causal_conv_with_state"]


@kernel("VarlenCausalConvWithState", domain="com.microsoft")
@quiet
def varlen_causal_conv_with_state(
    call: Call,
    x: Array,
    weight: Array,
    cumulative_sequence_length: Array,
    bias: Array | None,
    initial_state: Array,
    capture_count: Array | None = None,
    kernel_delta: Array | None = None,
    previous_mask: Array | None = None,
    *,
    activation: str = "none",
    delta_offset: int = 0,
    dilation: int = 1,
    group_size: int = 1,
    state_update_capacity: int = 0,
) -> tuple[Array, Array, Array]:
    """Convolve each channel of X (T, C) with weight (C, 1, K), every sequence continued from its initial_state (B, C, H).

    Sequence i ends before token cumulative_sequence_length[i + 1]; it may be empty. Returns the output (T, C), the last H tokens
    of each state and sequence (B, C, H), and the first `capture_count` tokens of each sequence (B, state_update_capacity, C),
    then zeros. Sums are float32. Source: com.microsoft VarlenCausalConvWithState without kernel_delta, as on ONNX Runtime's CPU.
    """
    if kernel_delta is not None or previous_mask is not None or group_size != 1 or delta_offset != 0:
        raise errors.NotImplemented("kernel_delta, previous_mask, group_size and delta_offset are for CUDA alone; leave them out")
    require_floats(x, weight, bias, initial_state)
    if activation not in ("none", "silu", "swish") or dilation < 1:
        raise InvalidArgument(f"activation is {activation!r} and dilation {dilation}; expected none, silu or swish, and at least 1")
    if x.ndim != 2 or x.shape[1] == 0 or weight.ndim != 3 or weight.shape[:2] != (x.shape[1], 1) or weight.shape[2] == 0:
        raise InvalidArgument(
            f"input has shape {x.shape} and weight {weight.shape}; expected (tokens, channels) and (channels, 1, taps), with "
            "at least one channel and tap"
        )
    T, C = x.shape
    if bias is not None and bias.shape != (C,):
        raise InvalidArgument(f"bias has shape {bias.shape}; expected ({C},), a number for each channel")
    ranges = packed_ranges(cumulative_sequence_length, T, "cumulative_sequence_length", may_be_empty=True)
    state = (len(ranges), C, (weight.shape[2] - 1) * dilation)
    if initial_state.shape != state:
        raise InvalidArgument(f"initial_state has shape {initial_state.shape}; expected {state}")
    counts = captured_counts(capture_count, state_update_capacity, ranges)
    check_output_size((len(ranges), max(state_update_capacity, 1), C), x.itemsize)
    y, final = np.empty((T, C), np.float32), np.empty(state, x.dtype)
    update = np.zeros((len(ranges), state_update_capacity, C), x.dtype)
    for index, (part, count) in enumerate(zip(ranges, counts, strict=True)):
        joined = np.concatenate([initial_state[index].T.astype(x.dtype, copy=False), x[part]])
        y[part] = _convolve(widen(joined), widen(weight)[:, 0], bias, dilation)
        final[index] = joined[len(joined) - state[2] :].T
        update[index, :count] = x[part][:count]
    y = y if activation == "none" else run_standard("Swish", y)
    return y.astype(x.dtype, copy=False), final, update


def _convolve(joined: Array, weight: Array, bias: Array | None, dilation: int) -> Array:
    """Return for tokens (H + T, C) and weight (C, K) the sums (T, C)."""
    taps = weight.shape[1]
    count = len(joined) - (taps - 1) * dilation
    sums = np.zeros((count, joined.shape[1]), np.float32)
    if bias is not None:
        sums += widen(bias)
    for tap in range(taps):
        sums += joined[tap * dilation : tap * dilation + count] * weight[:, tap]
    return sums
