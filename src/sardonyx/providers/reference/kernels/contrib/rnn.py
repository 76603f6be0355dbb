"""DynamicQuantizeLSTM of com.microsoft: an LSTM with 8-bit weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.rnn_cell import LstmCell
from sardonyx.providers.reference.kernels.rnn import LstmOptions, run_lstm
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["dynamic_quantize_lstm"]


class _QuantizedCell(LstmCell):
    """The cell of an LSTM that multiplies by the hidden state rounded to 8 bits, over the sequences that go on."""

    _ended: Array | None = None

    def step(self, projected: Array, hidden: Array, out: Array) -> None:
        """See Cell."""
        read = hidden if self._ended is None else np.where(self._ended[:, None], np.float32(0), hidden)
        super().step(projected, _rounded(read), out)

    def freeze(self, ended: Array) -> None:
        """See Cell; what has ended is zeros from the next step on."""
        super().freeze(ended)
        self._ended = ended


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

    X is quantized to uint8 over its range up to the end of the longest sequence, and Ht-1 in each step over that of the sequences
    that go on, as DynamicQuantizeLinear does it. Source: com.microsoft DynamicQuantizeLSTM of ONNX Runtime 1.31, whose results
    these are but for the rounding of floats.
    """
    if sequence_lens is not None and x.ndim == 3:
        x = np.where(np.arange(len(x))[:, None, None] < sequence_lens.max(initial=0), x, np.float32(0))
    w = _dequantize("W", weights, weight_scale, weight_zero_point)
    r = _dequantize("R", recurrence, recurrence_scale, recurrence_zero_point)
    return run_lstm(
        call,
        (_rounded(x), w, r, bias, sequence_lens, initial_h, initial_c, peepholes),
        LstmOptions(activations, activation_alpha, activation_beta, clip, direction, hidden_size, bool(input_forget)),
        _QuantizedCell,
    )


def _rounded(x: Array) -> Array:
    """Return the numbers that x stands for once it is quantized to uint8, over its range extended to 0."""
    low, high = x.min(initial=0), x.max(initial=0)
    scale = (high - low) / np.float32(255) if high > low else np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    integers = np.clip(np.rint(x / scale) + zero, 0, 255)
    return np.asarray((integers - zero) * scale, np.float32)


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
