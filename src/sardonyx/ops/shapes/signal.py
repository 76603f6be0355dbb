"""Signal processing."""

from __future__ import annotations

from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import replace_dim, unknown_shape
from sardonyx.ops.shapes.elements import dims_of, int_of
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.element_type import element_type

__all__: list[str] = []


def _one(fact: Fact | None) -> Dim:
    """Return the dimension that a scalar input holds."""
    found = _given(fact)
    return anonymous() if found is None else found


def _given(fact: Fact | None) -> Dim | None:
    return (dims_of(fact) or [None])[0]


@shape_function("BlackmanWindow", "HammingWindow", "HannWindow")
def window(call: ShapeCall, size: Fact, *, output_datatype: int = 1) -> Fact:
    """Return a vector of the size that the input holds."""
    return tensor(element_type(output_datatype, "output_datatype"), (_one(size),))


@shape_function("MelWeightMatrix")
def mel_weight_matrix(call: ShapeCall, bins: Fact, dft_length: Fact, *others: Fact | None, output_datatype: int = 1) -> Fact:
    """Return (dft_length / 2 + 1, bins)."""
    length = _given(dft_length)
    rows = anonymous() if length is None else length // 2 + 1
    return tensor(element_type(output_datatype, "output_datatype"), (rows, _one(bins)))


@shape_function("DFT", since=20)
def dft(
    call: ShapeCall, x: Fact, dft_length: Fact | None = None, axis: Fact | None = None, *, inverse: int = 0, onesided: int = 0
) -> Fact:
    """Return (…, length, …, parts): real or complex in the last axis; one-sided keeps length / 2 + 1."""
    place = -2 if axis is None else int_of(axis)
    return _dft(x, dft_length, place, inverse, onesided)


@shape_function("DFT")
def dft_before_20(
    call: ShapeCall, x: Fact, dft_length: Fact | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Fact:
    """Return the same, with the axis as an attribute."""
    return _dft(x, dft_length, axis, inverse, onesided)


def _dft(x: Fact, dft_length: Fact | None, axis: int | None, inverse: int, onesided: int) -> Fact:
    if x.shape is None:
        return tensor(x.dtype)
    if axis is None:
        return tensor(x.dtype, unknown_shape(len(x.shape)))
    place = normalize_axis(axis, len(x.shape))
    if onesided and inverse:
        length = _one(dft_length) if dft_length is not None else (x.shape[place] - 1) * 2
    else:
        full = x.shape[place] if dft_length is None else _one(dft_length)
        length = full // 2 + 1 if onesided else full
    shape: Shape = replace_dim(x.shape, place, length)
    return tensor(x.dtype, (*shape[:-1], 1 if onesided and inverse else 2))


@shape_function("STFT")
def stft(
    call: ShapeCall,
    signal: Fact,
    frame_step: Fact,
    window: Fact | None = None,
    frame_length: Fact | None = None,
    *,
    onesided: int = 1,
) -> Fact:
    """Infer (N, length, parts) -> (N, frames, frame length, 2); one-sided keeps length / 2 + 1 of real signals."""
    if signal.shape is None or len(signal.shape) < 2:
        return tensor(signal.dtype, unknown_shape(4))
    size = (
        _one(frame_length) if frame_length is not None else window.shape[0] if window is not None and window.shape else anonymous()
    )
    step = int_of(frame_step)
    frames = (signal.shape[1] - size) // step + 1 if step else anonymous()
    parts = signal.shape[2] if len(signal.shape) > 2 else 1
    bins = size if not onesided or parts == 2 else size // 2 + 1 if parts == 1 else anonymous()
    return tensor(signal.dtype, (signal.shape[0], frames, bins, 2))
