"""Reference kernels of convolution: Conv, ConvInteger, QLinearConv, CausalConvWithState."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.window import Window
from sardonyx.providers.reference.algorithms.convolve import convolve
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.exact import convolve_integers
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.algorithms.requantize import center, requantize
from sardonyx.providers.reference.algorithms.window import PlacedWindow, place_window
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


@kernel("Conv", view=Conv)
@quiet
def conv(
    node: Call,
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    view: Conv,
) -> Array:
    """Convolve x (N, C, *spatial) with w (M, C / group, *kernel), add b (M,); half types in float32. Source: ONNX Conv-22."""
    window = _checked_window(view, x, w, b)
    bias = None if b is None else widen(b)
    return convolve(widen(x), widen(w), bias, view.group, window).astype(x.dtype, copy=False)


@kernel("ConvInteger", since=10, view=Conv)
def conv_integer(
    node: Call,
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    *,
    view: Conv,
) -> Array:
    """Convolve (x - x_zero_point) with (w - w_zero_point), 8-bit integers, exactly into int32.

    w_zero_point is a scalar or (M,). Padding stands for x_zero_point. Source: ONNX ConvInteger-10.
    """
    window = _checked_window(view, x, w, None)
    return convolve_integers(
        center(x, x_zero_point, "x_zero_point", None), center(w, w_zero_point, "w_zero_point", 0), view.group, window
    )


@kernel("QLinearConv", since=10, view=Conv)
def qlinear_conv(
    node: Call,
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    b: Array | None = None,
    *,
    view: Conv,
) -> Array:
    """Convolve quantized x with quantized w, add b (M,) of int32, and quantize to y_zero_point's type.

    w_scale and w_zero_point are scalars or (M,); the product and the sum are exact, the scaling is float32.
    Source: ONNX QLinearConv-10.
    """
    window = _checked_window(view, x, w, b)
    total = convolve_integers(
        center(x, x_zero_point, "x_zero_point", None), center(w, w_zero_point, "w_zero_point", 0), view.group, window
    )
    if b is not None:
        total += b.reshape(-1, *(1,) * (x.ndim - 2))
    if x_scale.size != 1 or (w_scale.size != 1 and w_scale.shape != w.shape[:1]):
        raise InvalidArgument(
            f"x_scale has shape {x_scale.shape} and w_scale {w_scale.shape}; expected a scalar, and a scalar or {w.shape[:1]}"
        )
    scale = w_scale.reshape(()) if w_scale.size == 1 else w_scale.reshape(-1, *(1,) * (x.ndim - 2))
    return requantize(total, x_scale.reshape(()), scale, y_scale, y_zero_point)


_CAUSAL_ACTIVATIONS = ("none", "silu", "swish")


@kernel("CausalConvWithState", since=27)
@quiet
def causal_conv_with_state(
    node: Call,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    past_state: Array | None = None,
    *,
    activation: str = "none",
) -> tuple[Array, Array]:
    """Convolve each channel of x (N, C, T), continued from past_state (N, C, k - 1), with weight (C, 1, k).

    Returns the output (N, C, T) and the last k - 1 elements of the joined sequence. Source: ONNX CausalConvWithState-27.
    """
    if activation not in _CAUSAL_ACTIVATIONS:
        raise InvalidArgument(f"activation = {activation!r}, expected one of {list(_CAUSAL_ACTIVATIONS)}")
    if x.ndim != 3 or weight.ndim != 3 or weight.shape[:2] != (x.shape[1], 1) or weight.shape[2] == 0:
        raise InvalidArgument(f"input {x.shape} and weight {weight.shape}, expected (N, C, T) and (C, 1, k) with k of at least 1")
    _check_bias(bias, x.shape[1])
    carried = (*x.shape[:2], weight.shape[2] - 1)
    if past_state is not None and past_state.shape != carried:
        raise InvalidArgument(f"past_state has shape {past_state.shape}, expected (N, C, k - 1) = {carried}")
    past = np.zeros(carried, x.dtype) if past_state is None else past_state
    joined = np.concatenate([past, x], axis=2)
    present = joined[:, :, x.shape[2] :]
    if x.size == 0:
        return np.empty_like(x), present
    window = place_window(joined.shape[2:], Window(weight.shape[2:], (1,), (1,), (0, 0)))
    y = convolve(widen(joined), widen(weight), None if bias is None else widen(bias), x.shape[1], window)
    if activation != "none":
        y /= 1 + np.exp(-y)
    return y.astype(x.dtype, copy=False), present


def _checked_window(view: Conv, x: Array, w: Array, b: Array | None) -> PlacedWindow:
    group = view.group
    if x.ndim < 3 or w.ndim != x.ndim:
        raise InvalidArgument(
            f"X has shape {x.shape} and W has shape {w.shape}; expected (N, C, *spatial) and (M, C / group, *kernel) "
            "of one rank, at least 3"
        )
    if x.shape[1] != w.shape[1] * group or w.shape[0] % group:
        raise InvalidArgument(
            f"X has {x.shape[1]} channels, W has shape {w.shape} and group = {group}; expected X's channels to be "
            "group times W's second dimension and W's first dimension to be a multiple of group"
        )
    _check_bias(b, w.shape[0])
    window = place_window(x.shape[2:], view.window(w.shape[2:]))
    check_output_size((x.shape[0], w.shape[0], *window.output), 4)
    return window


def _check_bias(b: Array | None, filters: int) -> None:
    if b is not None and b.shape != (filters,):
        raise InvalidArgument(f"the bias has shape {b.shape}, expected ({filters},): one value per output channel")
