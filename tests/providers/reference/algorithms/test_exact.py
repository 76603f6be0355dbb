"""Exact products of small integers."""

from __future__ import annotations

import numpy as np
import pytest
from support.placing import place

from sardonyx.providers.reference.algorithms import exact
from sardonyx.providers.reference.algorithms.exact import convolve_integers, multiply_integers


@pytest.mark.parametrize("length", [0, 1, 257, 258, 259, 5000])
def test_long_sums_of_the_largest_products_are_exact(length: int) -> None:
    """Sums that a float32 cannot hold come out exact, whatever their length."""
    a, b = np.full((2, length), -255, np.int16), np.full((length, 3), 255, np.int16)
    y = multiply_integers(a, b)
    assert y.dtype == np.int32
    assert (y == -255 * 255 * length).all()


def test_leading_axes_broadcast() -> None:
    """A stack of matrices times one matrix multiplies each."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (2, 1, 3, 700), np.int16), rng.integers(-128, 128, (4, 700, 5), np.int16)
    assert np.array_equal(multiply_integers(a, b), np.matmul(a.astype(np.int32), b.astype(np.int32)))


@pytest.mark.parametrize("shape", [(9, 4), (1, 9), (0, 4), (9, 0)])
def test_large_products_are_added_up_some_rows_at_a_time(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that fill a part never, once, or often come out the same."""
    monkeypatch.setattr(exact, "_MOST_SUMS", 8)
    a, b = np.random.default_rng(0).integers(-255, 255, (shape[0], 600)), np.full((600, shape[1]), 255)
    assert np.array_equal(multiply_integers(a, b), np.matmul(a, b))


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(("channels", "kernel"), [(4, 3), (80, 3), (2, 23)])
def test_convolution_of_large_values_is_exact(group: int, channels: int, kernel: int) -> None:
    """Neither many channels nor large kernels lose a bit, with groups or without."""
    rng = np.random.default_rng(channels)
    x = rng.integers(200, 256, (1, channels * group, 24, 24), np.int16)
    w = rng.integers(200, 256, (2 * group, channels, kernel, kernel), np.int16)
    window = place((24, 24), (kernel, kernel))
    y = convolve_integers(x, w, group, window)
    views = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (kernel, kernel), axis=(2, 3))
    views = views.reshape(1, group, channels, *views.shape[2:])
    expected = np.einsum("ngcHWhw,gmchw->ngmHW", views, w.astype(np.int64).reshape(group, 2, channels, kernel, kernel))
    assert y.dtype == np.int32
    assert np.array_equal(y, expected.reshape(y.shape))


def test_no_channels_give_zeros() -> None:
    """A convolution over no input channels is zero."""
    y = convolve_integers(np.zeros((1, 0, 3), np.int16), np.zeros((2, 0, 2), np.int16), 1, place((3,), (2,)))
    assert y.tolist() == [[[0, 0], [0, 0]]]
