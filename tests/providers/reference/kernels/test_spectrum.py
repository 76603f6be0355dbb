"""Facts about DFT and STFT."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

SIGNAL = np.random.default_rng(0).standard_normal((2, 10, 3, 1), dtype=np.float32)


def pairs(values):
    return np.stack([values.real, values.imag], axis=-1)


def complex_of(y):
    return y[..., 0] + 1j * y[..., 1]


def test_a_real_signal_transforms_along_the_last_signal_axis():
    """Version 20 takes axis -2 by default, version 17 axis 1."""
    np.testing.assert_allclose(run_op("DFT", SIGNAL), pairs(np.fft.fft(SIGNAL[..., 0], axis=2)), atol=1e-5)
    np.testing.assert_allclose(run_op("DFT", SIGNAL, version=17), pairs(np.fft.fft(SIGNAL[..., 0], axis=1)), atol=1e-5)


def test_the_inverse_undoes_the_transform():
    """On a complex signal, along an axis given as an input."""
    x = np.random.default_rng(1).standard_normal((2, 7, 2))
    y = run_op("DFT", x, None, np.array(1))
    assert y.dtype == np.float64
    np.testing.assert_allclose(run_op("DFT", y, None, np.array(-2), inverse=1), x, atol=1e-12)


@pytest.mark.parametrize("length", [9, 10])
def test_onesided_transforms_undo_each_other(length):
    """The inverse of the unique bins of a real signal is the signal, once its length is given."""
    x = SIGNAL[:, :length]
    bins = run_op("DFT", x, None, np.array(1), onesided=1)
    assert bins.shape == (2, length // 2 + 1, 3, 2)
    back = run_op("DFT", bins, np.array(length), np.array(1), onesided=1, inverse=1)
    np.testing.assert_allclose(back, x, atol=1e-5)


@pytest.mark.parametrize("length", [4, 16])
def test_dft_length_cuts_or_pads_the_signal(length):
    """A shorter length uses the first elements, a longer one adds zeros."""
    y = run_op("DFT", SIGNAL, np.array(length), np.array(1))
    np.testing.assert_allclose(complex_of(y), np.fft.fft(SIGNAL[..., 0], length, axis=1), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_transforms_keep_the_type(dtype):
    """Half types compute in float32."""
    assert run_op("DFT", SIGNAL.astype(dtype)).dtype == dtype
    assert run_op("STFT", SIGNAL[:, :, 0].astype(dtype), np.array(2), None, np.array(4)).dtype == dtype


def test_stft_transforms_windowed_frames():
    """Frames every 2 elements, each times the window."""
    x, window = SIGNAL[:, :, 0], np.hanning(4).astype(np.float32)
    y = run_op("STFT", x, np.array(2), window)
    assert y.shape == (2, 4, 3, 2)
    for frame in range(4):
        expected = np.fft.rfft(x[:, 2 * frame : 2 * frame + 4, 0] * window)
        np.testing.assert_allclose(complex_of(y[:, frame]), expected, atol=1e-5)


def test_stft_defaults():
    """Without a window frames are rectangular; without a length one frame is the whole signal; complex ones keep all bins."""
    assert run_op("STFT", SIGNAL[:, :, 0], np.array(3)).shape == (2, 1, 6, 2)
    assert run_op("STFT", SIGNAL[:, :, 0], np.array(3), None, np.array(5), onesided=0).shape == (2, 2, 5, 2)
    both = np.concatenate([SIGNAL[:, :, 0], SIGNAL[:, :, 0]], axis=2)
    assert run_op("STFT", both, np.array(3), None, np.array(5)).shape == (2, 2, 5, 2)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ((SIGNAL[..., 0],), {}, "real or"),
        ((SIGNAL, None, np.array(3)), {}, "axis = 3"),
        ((SIGNAL, None, np.array(-1)), {}, "axis = -1"),
        ((SIGNAL, np.array(0)), {}, "dft_length = 0"),
        ((SIGNAL, np.array(1 << 50)), {}, "bytes"),
        ((np.zeros((1, 4, 2), np.float32),), {"onesided": 1}, "complex signal"),
    ],
)
def test_wrong_transforms_are_refused(inputs, attributes, message):
    """Axes, lengths and shapes that make no sense raise InvalidArgument."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("DFT", *inputs, **attributes)


@pytest.mark.parametrize(("step", "length", "window"), [(0, 4, None), (1, 11, None), (1, 0, None), (1, 4, np.ones(5, np.float32))])
def test_wrong_frames_are_refused(step, length, window):
    """Frames lie within the signal and move forward; the window has their length."""
    with pytest.raises(InvalidArgument, match="frame_length"):
        run_op("STFT", SIGNAL[:, :, 0], np.array(step), window, np.array(length))
