"""Reference kernels of Fourier transforms: DFT, STFT."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import as_int, check_output_size, normalize_axis
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


@kernel("DFT", since=17)
def dft_17(node: Call, x: Array, dft_length: Array | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Array:
    """Compute as DFT-20 with the axis as an attribute, 1 by default. Source: ONNX DFT-17."""
    return _dft(x, dft_length, axis, bool(inverse), bool(onesided))


@kernel("DFT", since=20)
def dft_20(
    node: Call, x: Array, dft_length: Array | None = None, axis: Array | None = None, *, inverse: int = 0, onesided: int = 0
) -> Array:
    """Compute the discrete Fourier transform of x (..., 1) or (..., 2), real or complex, along `axis`; half types in float32.

    `onesided` returns the dft_length // 2 + 1 unique bins of a real signal or, with `inverse`, the real signal of such bins.
    Source: ONNX DFT-20.
    """
    return _dft(x, dft_length, -2 if axis is None else as_int(axis, "axis"), bool(inverse), bool(onesided))


@quiet
def _dft(x: Array, dft_length: Array | None, axis: int, inverse: bool, onesided: bool) -> Array:
    values = _as_complex(x, "input")
    if not -x.ndim <= axis < x.ndim - 1 or axis == -1:
        raise InvalidArgument(f"axis = {axis}, expected one of the signal axes of an input of shape {x.shape}, not the last")
    along = normalize_axis(axis, x.ndim)
    default = 2 * (x.shape[along] - 1) if onesided and inverse else x.shape[along]
    length = default if dft_length is None else as_int(dft_length, "dft_length")
    if length < 1:
        raise InvalidArgument(f"dft_length = {length}, expected 1 or more elements")
    check_output_size((*x.shape[:along], length, *x.shape[along + 1 : -1], 2), x.dtype.itemsize)
    if onesided and inverse:
        return np.fft.irfft(values, length, axis=along).astype(x.dtype)[..., None]
    if onesided:
        if np.iscomplexobj(values):
            raise InvalidArgument(f"input has shape {x.shape}, a complex signal; onesided expects a real one, (..., 1)")
        return _as_pairs(np.fft.rfft(values, length, axis=along), x)
    transform = np.fft.ifft if inverse else np.fft.fft
    return _as_pairs(transform(values, length, axis=along), x)


@kernel("STFT", since=17)
@quiet
def stft(
    node: Call,
    signal: Array,
    frame_step: Array,
    window: Array | None = None,
    frame_length: Array | None = None,
    *,
    onesided: int = 1,
) -> Array:
    """Compute the transforms (N, frames, bins, 2) of windowed frames of signal (N, T, 1) or (N, T, 2); half types in float32.

    `onesided` keeps the unique bins; of a complex signal, which has none, it keeps all. Source: ONNX STFT-17.
    """
    if signal.ndim not in (2, 3) or (window is not None and window.ndim != 1):
        found = None if window is None else window.shape
        raise InvalidArgument(f"signal has shape {signal.shape} and window {found}; expected (N, T, 1) or (N, T, 2), and 1-D")
    values = _as_complex(signal, "signal") if signal.ndim == 3 else widen(signal)
    step = as_int(frame_step, "frame_step")
    given = values.shape[1] if window is None else window.shape[0]
    length = given if frame_length is None else as_int(frame_length, "frame_length")
    if window is not None and window.shape != (length,):
        raise InvalidArgument(f"window has shape {window.shape} and frame_length is {length}; expected one length")
    if step < 1 or not 1 <= length <= values.shape[1]:
        raise InvalidArgument(
            f"frame_step = {step} and frame_length = {length}; expected a step of at least 1 and frames of 1 to "
            f"{values.shape[1]} elements, the signal's length"
        )
    frames = np.lib.stride_tricks.sliding_window_view(values, length, axis=1)[:, ::step]
    check_output_size((*frames.shape, 2), 4)
    weighted = frames if window is None else frames * widen(window)
    if onesided and not np.iscomplexobj(values):
        return _as_pairs(np.fft.rfft(weighted, axis=2), signal)
    return _as_pairs(np.fft.fft(weighted, axis=2), signal)


def _as_complex(x: Array, name: str) -> Array:
    """Return the signal in x (..., 1) as a real array (...), in x (..., 2) as a complex one."""
    if x.ndim < 2 or x.shape[-1] not in (1, 2):
        raise InvalidArgument(f"{name} has shape {x.shape}, expected (..., 1) for a real or (..., 2) for a complex signal")
    wide = widen(x)
    if x.shape[-1] == 1:
        return wide[..., 0]
    values: Array = np.empty(x.shape[:-1], np.result_type(wide.dtype, np.complex64))
    values.real, values.imag = wide[..., 0], wide[..., 1]
    return values


def _as_pairs(values: Array, like: Array) -> Array:
    return np.stack([values.real, values.imag], axis=-1).astype(like.dtype, copy=False)
