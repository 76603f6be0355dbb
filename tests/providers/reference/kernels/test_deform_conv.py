"""Facts about DeformConv."""

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

RNG = np.random.default_rng(0)
IMAGE = RNG.standard_normal((2, 4, 6, 5), dtype=np.float32)
WEIGHTS = RNG.standard_normal((6, 2, 3, 3), dtype=np.float32)


def test_without_offsets_it_is_conv():
    """Zero offsets give the plain convolution, groups, strides and padding included."""
    attributes = {"group": 2, "pads": (1, 1, 1, 1), "strides": (2, 1)}
    expected = run_op("Conv", IMAGE, WEIGHTS, **attributes)
    offset = np.zeros((2, 2 * 9 * 2, *expected.shape[2:]), np.float32)
    y = run_op("DeformConv", IMAGE, WEIGHTS, offset, offset_group=2, **attributes)
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_whole_offsets_move_the_taps():
    """An offset of one row everywhere convolves the image moved up by a row."""
    offset = np.zeros((2, 9, 2, 4, 3), np.float32)
    offset[:, :, 0] = 1
    y = run_op("DeformConv", IMAGE, WEIGHTS, offset.reshape(2, 18, 4, 3), group=2)
    moved = np.concatenate([IMAGE[:, :, 1:], np.zeros((2, 4, 1, 5), np.float32)], axis=2)
    np.testing.assert_allclose(y, run_op("Conv", moved, WEIGHTS, group=2), atol=1e-5)


def test_fractions_interpolate_and_the_mask_scales():
    """Half an element aside reads the mean of two elements; the mask multiplies it."""
    x = np.array([[[[1, 3, 9]]]], np.float32)
    offset = np.zeros((1, 2, 1, 3), np.float32)
    offset[:, 1] = 0.5
    mask = np.full((1, 1, 1, 3), 2, np.float32)
    y = run_op("DeformConv", x, np.ones((1, 1, 1, 1), np.float32), offset, None, mask)
    assert y.tolist() == [[[[4, 12, 9]]]]


@pytest.mark.parametrize("shape", [(2, 18, 4, 4), (1, 18, 4, 3), (2, 9, 4, 3)])
def test_offsets_of_another_shape_are_refused(shape):
    """There are two offsets per tap and output."""
    with pytest.raises(InvalidArgument, match="offset has shape"):
        run_op("DeformConv", IMAGE, WEIGHTS, np.zeros(shape, np.float32), group=2)
