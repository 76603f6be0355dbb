"""Rounding scaled values to narrow types."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.requantize import center, integer_limits, requantize, round_to


def f32(*values):
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("dtype", "limits"),
    [
        (np.uint8, (0, 255)),
        (np.int16, (-32768, 32767)),
        (ml_dtypes.int4, (-8, 7)),
        (ml_dtypes.uint2, (0, 3)),
        (ml_dtypes.int2, (-2, 1)),
    ],
)
def test_integers_saturate_at_their_limits(dtype, limits):
    """What is out of range becomes the nearest number of the type."""
    assert integer_limits(np.dtype(dtype)) == limits
    y = round_to(f32(-1e9, 1e9), None, np.dtype(dtype), saturate=True)
    assert (y.dtype, tuple(y.astype(int).tolist())) == (dtype, limits)


def test_integers_round_to_even_before_the_zero_point():
    """0.5, 1.5 and 2.5 round to 0, 2 and 2, then 1 is added."""
    y = round_to(f32(0.5, 1.5, 2.5, np.nan), np.array(1, np.uint8), np.dtype(np.uint8), saturate=True)
    assert y[:3].tolist() == [1, 3, 3]


def test_float8_saturates_if_asked_to():
    """float8e4m3fn has no infinity: without saturation what is too large is NaN."""
    dtype = np.dtype(ml_dtypes.float8_e4m3fn)
    assert round_to(f32(1000), None, dtype, saturate=True).astype(float).tolist() == [448]
    assert np.isnan(round_to(f32(1000), None, dtype, saturate=False).astype(float)).all()


def test_center_takes_scalars_and_vectors():
    """A zero point is one for all or one per index of the axis."""
    x = np.array([[0, 255], [1, 2]], np.uint8)
    assert center(x, np.array([255], np.uint8), "z", None).tolist() == [[-255, 0], [-254, -253]]
    assert center(x, np.array([0, 1], np.uint8), "z", 0).tolist() == [[0, 255], [0, 1]]
    with pytest.raises(InvalidArgument, match="z has shape"):
        center(x, np.array([0, 1], np.uint8), "z", None)


def test_requantize_multiplies_the_scales_in_float32():
    """The factor is a_scale * b_scale / y_scale."""
    y = requantize(np.array([10, -10], np.int32), f32(0.5)[0:1], f32(4)[0:1], np.array(2, np.float32), np.array(3, np.int8))
    assert (y.dtype, y.tolist()) == (np.int8, [13, -7])
    with pytest.raises(InvalidArgument, match="scalars"):
        requantize(np.array([1], np.int32), f32(1), f32(1), f32(1, 2), np.array(0, np.int8))
