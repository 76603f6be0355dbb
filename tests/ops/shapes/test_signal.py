"""Facts about signal processing."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, B, dtype_of, floats, infer_shape, scalar

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor


def test_windows_are_as_long_as_the_input_says() -> None:
    """The input is the length, the attribute the type."""
    assert infer_shape("HannWindow", scalar(16)) == (16,)
    assert infer_shape("HannWindow", tensor(DataType.INT64, ())) == (UNKNOWN_DIM,)
    assert dtype_of("BlackmanWindow", scalar(16), output_datatype=11) is DataType.DOUBLE


def test_dft_lengths() -> None:
    """One-sided keeps half plus one, and its inverse is real."""
    assert infer_shape("DFT", floats(A, 16, 1), None, scalar(1)) == (A, 16, 2)
    assert infer_shape("DFT", floats(A, 16, 1), None, scalar(1), onesided=1) == (A, 9, 2)
    assert infer_shape("DFT", floats(A, 9, 2), None, scalar(1), onesided=1, inverse=1) == (A, 16, 1)
    assert infer_shape("DFT", floats(A, B, 2), scalar(32), version=17, axis=1) == (A, 32, 2)


def test_stft_frames() -> None:
    """Frames that fit in the signal, each with half its length plus one; of complex signals with all of it."""
    assert infer_shape("STFT", floats(A, 128, 1), scalar(8), floats(16)) == (A, 15, 9, 2)
    assert infer_shape("STFT", floats(A, 128, 1), scalar(8), None, scalar(16), onesided=0) == (A, 15, 16, 2)
    assert infer_shape("STFT", floats(A, 128, 2), scalar(8), floats(16)) == (A, 15, 16, 2)


def test_mel_weights() -> None:
    """(spectrum bins, mel bins)."""
    assert infer_shape("MelWeightMatrix", scalar(8), scalar(16), scalar(8192), scalar(0.0), scalar(4096.0)) == (9, 8)
