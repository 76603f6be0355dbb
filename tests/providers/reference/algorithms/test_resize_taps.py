"""Coordinates, nearest elements and blending weights of Resize."""

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.resize_taps import AxisResize, blend_taps, nearest_index, original_coordinates


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("half_pixel", [-0.25, 0.25, 0.75, 1.25]),
        ("pytorch_half_pixel", [-0.25, 0.25, 0.75, 1.25]),
        ("half_pixel_symmetric", [-0.25, 0.25, 0.75, 1.25]),
        ("align_corners", [0, 1 / 3, 2 / 3, 1]),
        ("asymmetric", [0, 0.5, 1, 1.5]),
        ("tf_half_pixel_for_nn", [0.25, 0.75, 1.25, 1.75]),
        ("tf_crop_and_resize", [0.5, 1 / 6 + 0.5, 2 / 6 + 0.5, 1]),
    ],
)
def test_coordinates_of_every_transformation(mode, expected):
    """Doubling an axis of two elements; the region of interest is its second half."""
    at = original_coordinates(AxisResize(2, 4, 2.0, 0.5, 1.0), mode)
    assert at.dtype == np.float32
    np.testing.assert_allclose(at, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("mode", "expected"), [("pytorch_half_pixel", 0), ("align_corners", 0), ("tf_crop_and_resize", 2), ("half_pixel", 2)]
)
def test_a_single_output_has_a_place_of_its_own(mode, expected):
    """Modes that would divide by zero define where the one output lies."""
    assert original_coordinates(AxisResize(5, 1, 0.2), mode).tolist() == [expected]


def test_symmetric_centres_what_a_fractional_scale_leaves_over():
    """An output cut from 4.5 to 4 elements samples symmetrically."""
    at = original_coordinates(AxisResize(9, 4, 0.5), "half_pixel_symmetric")
    np.testing.assert_allclose(at + at[::-1], 8)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("floor", [0, 0, 1, 2]), ("ceil", [0, 1, 2, 2]), ("round_prefer_floor", [0, 0, 1, 2]), ("round_prefer_ceil", [0, 1, 2, 2])],
)
def test_nearest_breaks_ties_as_told_and_stays_inside(mode, expected):
    """Coordinates -0.5, 0.5, 1.5 and 2.5 on an axis of three elements."""
    assert nearest_index(np.array([-0.5, 0.5, 1.5, 2.5], np.float32), 3, mode).tolist() == expected


def taps(at, axis, mode, **options):
    settings = {"cubic_coeff_a": -0.75, "antialias": False, "exclude_outside": False} | options
    return blend_taps(np.array(at, np.float32), axis, mode, **settings)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("exclude_outside", [False, True])
def test_weights_sum_to_one(mode, antialias, exclude_outside):
    """Whatever the filter, a constant stays constant."""
    axis = AxisResize(7, 3, 3 / 7)
    found = taps([0.1, 2.9, 6.3], axis, mode, antialias=antialias, exclude_outside=exclude_outside)
    np.testing.assert_allclose(found.weight.sum(axis=0), 1, rtol=1e-6)
    assert ((found.index >= 0) & (found.index < 7)).all()


def test_cubic_weights_are_those_of_the_paper():
    """Halfway between elements with a = -0.75: -3/32, 19/32, 19/32, -3/32."""
    found = taps([1.5], AxisResize(4, 4, 1.0), "cubic")
    assert found.index[:, 0].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(found.weight[:, 0] * 32, [-3, 19, 19, -3], rtol=1e-6)


def test_antialiasing_reads_more_elements_where_the_axis_shrinks():
    """Halving with a triangle filter blends four elements: 1, 3, 3 and 1 eighths."""
    found = taps([2.5], AxisResize(6, 3, 0.5), "linear", antialias=True)
    weights = dict(zip(found.index[:, 0].tolist(), found.weight[:, 0].tolist(), strict=True))
    assert {index: weight * 8 for index, weight in weights.items() if weight} == pytest.approx({1: 1, 2: 3, 3: 3, 4: 1})


def test_unknown_modes_are_refused():
    """The message lists what is known."""
    with pytest.raises(InvalidArgument, match="half_pixel_symmetric"):
        original_coordinates(AxisResize(2, 4, 2.0), "half")
    with pytest.raises(InvalidArgument, match="round_prefer_ceil"):
        nearest_index(np.zeros(1, np.float32), 3, "round")
