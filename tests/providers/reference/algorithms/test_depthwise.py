"""Depthwise convolution by kernel rows, against one tap after another in float64."""

import numpy as np
import pytest
from support.placing import place

from sardonyx.providers.reference.algorithms.depthwise import convolve_depthwise, suits_depthwise
from sardonyx.providers.reference.algorithms.phases import sliding_axes


@pytest.mark.parametrize(
    ("shape", "kernel", "filters", "attributes"),
    [
        ((2, 3, 9, 8), (7, 7), 1, {"pads": (3, 3, 3, 3)}),
        ((1, 5, 12, 11), (5, 3), 2, {"pads": (0, 2, 1, 0)}),
        ((1, 2, 14, 9), (4, 2), 1, {"dilations": (3, 2), "pads": (2, 1, 2, 1)}),
        ((1, 90, 40, 40), (5, 5), 1, {"pads": (2, 2, 2, 2)}),
    ],
)
def test_it_adds_every_tap(shape, kernel, filters, attributes):
    """Padding, dilation, several filters per channel and several blocks agree with the plain sum."""
    rng = np.random.default_rng(sum(shape))
    x, w = rng.standard_normal(shape), rng.standard_normal((shape[1], filters, *kernel))
    offsets = rng.standard_normal((shape[1], filters, 1))
    window = place(shape[2:], kernel, **attributes)
    axes = sliding_axes(shape[2:], window)
    assert suits_depthwise(axes, 1, filters)
    y = np.empty((shape[0], shape[1], filters, *window.output))
    convolve_depthwise(x[:, :, None], w.reshape(shape[1], filters, -1), offsets, axes, y)
    begins, ends = window.begins, window.ends
    padded = np.pad(x, [(0, 0), (0, 0), (begins[0], ends[0]), (begins[1], ends[1])])[:, :, None]
    expected = np.zeros_like(y) + offsets[..., None]
    for row, column in np.ndindex(kernel):
        top, left = row * window.dilations[0], column * window.dilations[1]
        expected += w[:, :, row, column, None, None] * padded[..., top : top + y.shape[3], left : left + y.shape[4]]
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("spatial", "kernel", "channels", "filters", "attributes"),
    [
        ((9,), (7,), 1, 1, {}),
        ((9, 9), (7, 7), 2, 1, {}),
        ((9, 9), (7, 7), 1, 8, {}),
        ((9, 9), (3, 7), 1, 1, {}),
        ((9, 9), (7, 7), 1, 1, {"strides": (2, 1)}),
        ((1000, 1000), (7, 7), 1, 1, {}),
    ],
)
def test_other_convolutions_are_left_to_whole_windows(spatial, kernel, channels, filters, attributes):
    """One axis, several channels a group, many filters, few kernel rows, strides and huge planes do not suit."""
    axes = sliding_axes(spatial, place(spatial, kernel, **attributes))
    assert not suits_depthwise(axes, channels, filters)
