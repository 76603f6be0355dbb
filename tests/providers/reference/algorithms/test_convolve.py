"""Convolution by blocks of columns, against a sum over windows in float64."""

from __future__ import annotations

import numpy as np
import pytest
from support.placing import place

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.convolve import convolve
from sardonyx.providers.reference.algorithms.window import PlacedWindow


def _direct(x: Array, w: Array, group: int, window: PlacedWindow) -> Array:
    rank = x.ndim - 2
    pads = [
        (b, e + k * d + s)
        for b, e, k, d, s in zip(window.begins, window.ends, window.kernel, window.dilations, window.strides, strict=True)
    ]
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *pads])
    extents = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilations, strict=True)]
    axes = tuple(range(2, 2 + rank))
    views = np.lib.stride_tricks.sliding_window_view(padded, extents, axis=axes)
    outer = tuple(slice(0, o * s, s) for o, s in zip(window.output, window.strides, strict=True))
    inner = tuple(slice(None, None, d) for d in window.dilations)
    views = views[(slice(None), slice(None), *outer, *inner)]
    views = views.reshape(x.shape[0], group, -1, *views.shape[2:])
    taps, space = "xyz"[:rank], "XYZ"[:rank]
    filters = w.astype(np.float64).reshape(group, -1, *w.shape[1:])
    y: Array = np.einsum(f"ngc{space}{taps},gmc{taps}->ngm{space}", views, filters, optimize=True)
    return y.reshape(x.shape[0], w.shape[0], *window.output)


@pytest.mark.parametrize(
    ("shape", "filters", "group", "attributes"),
    [
        ((2, 3, 17), (5, 3, 3), 1, {"strides": (2,), "pads": (1, 2)}),
        ((1, 4, 9, 13), (6, 2, 3, 2), 2, {"dilations": (2, 1), "pads": (1, 0, 2, 3)}),
        ((3, 6, 8, 8), (6, 1, 3, 3), 6, {"pads": (1, 1, 1, 1)}),
        ((1, 6, 9, 7), (12, 1, 5, 5), 6, {"strides": (2, 3), "pads": (2, 2, 2, 2)}),
        ((2, 2, 5, 6, 7), (4, 2, 2, 3, 2), 1, {"strides": (1, 2, 3), "pads": (1, 0, 1, 0, 1, 2)}),
        ((1, 8, 6, 6), (4, 8, 1, 1), 1, {}),
        ((2, 8, 6, 7), (4, 4, 1, 1), 2, {"strides": (2, 2)}),
        ((2, 3, 1, 40), (4, 3, 1, 9), 1, {"pads": (0, 4, 0, 4)}),
        ((1, 2, 5, 5), (2, 2, 2, 2), 1, {"strides": (4, 4)}),
        ((1, 64, 40, 40), (16, 64, 3, 3), 1, {"pads": (1, 1, 1, 1)}),
        ((1, 2, 400, 400), (2, 1, 7, 7), 2, {"pads": (3, 3, 3, 3)}),
        ((9, 40, 9, 9), (40, 4, 3, 3), 10, {"pads": (1, 1, 1, 1)}),
        ((1, 2, 60000), (3, 2, 9), 1, {"strides": (2,)}),
    ],
)
def test_every_way_of_cutting_gives_the_sum_over_windows(
    shape: tuple[int, ...], filters: tuple[int, ...], group: int, attributes: dict[str, tuple[int, ...]]
) -> None:
    """Groups, depthwise, strides, dilations, uneven padding, and inputs larger than one block agree with float64."""
    rng = np.random.default_rng(sum(shape))
    x, w = rng.standard_normal(shape, dtype=np.float32), rng.standard_normal(filters, dtype=np.float32)
    bias = rng.standard_normal(filters[0], dtype=np.float32)
    window = place(shape[2:], filters[2:], **attributes)  # type: ignore[arg-type]  # one of several keywords
    y = convolve(x, w, bias, group, window)
    expected = _direct(x, w, group, window) + bias.reshape(-1, *(1,) * (x.ndim - 2))
    assert y.dtype == np.float32
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, atol=2e-6 * np.sqrt(np.prod(filters[1:])) * 4, rtol=1e-5)


def test_a_transposed_input_needs_no_copy_first() -> None:
    """A non-contiguous input gives what its contiguous copy gives."""
    x = np.random.default_rng(5).standard_normal((2, 6, 7, 3), dtype=np.float32).transpose(0, 3, 1, 2)
    w = np.random.default_rng(6).standard_normal((4, 3, 3, 3), dtype=np.float32)
    window = place((6, 7), (3, 3), pads=(1, 1, 1, 1))
    assert np.array_equal(convolve(x, w, None, 1, window), convolve(x.copy(), w, None, 1, window))


def test_an_empty_batch_gives_an_empty_output() -> None:
    """No images give no outputs, of the right shape."""
    window = place((4, 4), (3, 3))
    assert convolve(np.zeros((0, 2, 4, 4)), np.zeros((3, 2, 3, 3)), None, 1, window).shape == (0, 3, 2, 2)


def test_float64_stays_float64() -> None:
    """Double operands multiply in double precision."""
    x = np.full((1, 1, 3), 1e-9)
    y = convolve(x + 1, np.ones((1, 1, 2)), None, 1, place((3,), (2,)))
    assert y.tolist() == [[[2 + 2e-9, 2 + 2e-9]]]


def test_equal_filters_give_equal_scores() -> None:
    """The filters of a classifier's last layer that are equal give equal outputs, wherever they stand in the product."""
    rng = np.random.default_rng(5)
    x = rng.random((1, 512, 13, 13), dtype=np.float32) * np.float32(1e8)
    w = np.tile(rng.random((1, 512, 1, 1), dtype=np.float32), (1000, 1, 1, 1))
    y = convolve(x, w, None, 1, place((13, 13), (1, 1)))
    assert (y == y[:, :1]).all()
