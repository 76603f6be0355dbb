"""DynamicQuantizeLSTM of com.microsoft: an LSTM with 8-bit weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ir.attribute import AttributeValue
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["dynamic_quantize_lstm"]


@kernel("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantize_lstm(
    call: Call,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    peepholes: Array | None,
    weight_scale: Array,
    weight_zero_point: Array,
    recurrence_scale: Array,
    recurrence_zero_point: Array,
    *,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> tuple[Array, ...]:
    """Compute LSTM on W (D, I, 4H) and R (D, H, 4H) of 8 bits, with scales and zero points (D,) or (D, 4H).

    The products are made in float32, which is what quantizing X and Ht-1 as well, as ONNX Runtime does, approximates. Source:
    com.microsoft DynamicQuantizeLSTM.
    """
    attributes: dict[str, AttributeValue] = {
        "activations": activations,
        "activation_alpha": activation_alpha,
        "activation_beta": activation_beta,
    }
    outputs: tuple[Array, ...] = run_standard(
        "LSTM",
        x,
        _dequantize("W", weights, weight_scale, weight_zero_point),
        _dequantize("R", recurrence, recurrence_scale, recurrence_zero_point),
        bias,
        sequence_lens,
        initial_h,
        initial_c,
        peepholes,
        outputs=3,
        clip=clip,
        direction=direction,
        hidden_size=hidden_size,
        input_forget=input_forget,
        **attributes,
    )
    return outputs


def _dequantize(name: str, quantized: Array, scale: Array, zero_point: Array) -> Array:
    """Return weights (D, in, 4H) as float32 (D, 4H, in)."""
    if quantized.ndim != 3:
        raise InvalidArgument(f"{name} has shape {quantized.shape}; expected (directions, inputs, 4 x hidden)")
    D, _, columns = quantized.shape
    if scale.size not in (D, D * columns) or zero_point.size not in (D, D * columns):
        raise InvalidArgument(
            f"the scale of {name} has shape {scale.shape} and its zero point {zero_point.shape}; expected "
            f"({D},) or ({D}, {columns})"
        )
    numbers = quantized.astype(np.float32) - zero_point.astype(np.float32).reshape(D, 1, -1)
    numbers *= scale.astype(np.float32).reshape(D, 1, -1)
    return numbers.swapaxes(1, 2)
