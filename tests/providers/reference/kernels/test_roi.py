"""Facts about RoiAlign and MaxRoiPool."""

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

PLANE = np.arange(48, dtype=np.float32).reshape(1, 1, 6, 8)
FIRST = np.zeros(1, np.int64)


def rois(*values):
    return np.array(values, np.float32)


def test_roi_align_of_a_linear_image_reads_bin_centres():
    """The mean over a bin of an image that grows linearly is its value at the bin's centre."""
    y = run_op("RoiAlign", PLANE, rois([1, 1, 5, 3]), FIRST, output_height=2, output_width=2, sampling_ratio=2)
    centres = [[8 * (row - 0.5) + column - 0.5 for column in (2, 4)] for row in (1.5, 2.5)]
    np.testing.assert_allclose(y[0, 0], centres, rtol=1e-6)


def test_roi_align_before_16_does_not_shift_by_half_an_element():
    """Version 10 omits the shift, as "output_half_pixel" does."""
    attributes = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    old = run_op("RoiAlign", PLANE, rois([1, 1, 5, 3]), FIRST, version=10, **attributes)
    new = run_op("RoiAlign", PLANE, rois([1, 1, 5, 3]), FIRST, coordinate_transformation_mode="output_half_pixel", **attributes)
    assert np.array_equal(old, new)
    np.testing.assert_allclose(old[0, 0, 0, 0], 8 * 1.5 + 2, rtol=1e-6)


def test_roi_align_adapts_the_samples_to_each_region():
    """Without sampling_ratio regions of several sizes pool as they do alone."""
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 7), dtype=np.float32)
    regions, images = rois([0, 0, 6, 8], [1, 2, 3, 4], [2, 2, 2, 2]), np.array([1, 0, 1])
    together = run_op("RoiAlign", x, regions, images, output_height=2, output_width=3)
    for index in range(3):
        alone = run_op("RoiAlign", x, regions[index : index + 1], images[index : index + 1], output_height=2, output_width=3)
        np.testing.assert_allclose(together[index], alone[0], rtol=1e-6)
    assert not together[2].any()


def test_roi_align_outside_the_image_is_zero():
    """Samples more than one element outside count as zero."""
    assert run_op("RoiAlign", PLANE + 1, rois([-20, -20, -10, -10]), FIRST).ravel().tolist() == [0]


def test_roi_align_max_takes_weighted_neighbours():
    """The maximum is over the neighbours times their weights, not over interpolated values."""
    x = np.array([[[[4, 8]]]], np.float32)
    y = run_op("RoiAlign", x, rois([0.5, 0.5, 1.5, 0.5]), FIRST, mode="max", sampling_ratio=1)
    assert y.ravel().tolist() == [4]


@pytest.mark.parametrize(
    ("regions", "images", "attributes", "message"),
    [
        (rois([0, 0, 1, 1]), np.array([1]), {}, "images"),
        (rois([0, 0, 1, 1]), np.array([0, 0]), {}, "batch_indices"),
        (rois([0, 0, 1, 1]), FIRST, {"mode": "sum"}, "mode"),
        (rois([0, 0, 1e12, 1]), FIRST, {}, "at most"),
        (rois([0, 0, 1, 1]), FIRST, {"output_height": 0}, "output_height"),
    ],
)
def test_roi_align_refuses_wrong_regions(regions, images, attributes, message):
    """Regions of images that are not there, of absurd size, or of the wrong shape raise InvalidArgument."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("RoiAlign", PLANE, regions, images, **attributes)


def test_max_roi_pool_includes_both_ends():
    """A region from element 1 to element 2 has two elements a side; cells share what lies on their border."""
    y = run_op("MaxRoiPool", PLANE, rois([0, 1, 1, 3, 3]), pooled_shape=(2, 1))
    assert y.tolist() == [[[[19], [27]]]]


def test_max_roi_pool_of_nothing_is_zero():
    """A region outside the image pools to zeros."""
    assert run_op("MaxRoiPool", PLANE + 1, rois([0, 20, 20, 30, 30]), pooled_shape=(1, 1)).ravel().tolist() == [0]


def test_max_roi_pool_refuses_an_unknown_image():
    """The first number of a region is an image of the batch."""
    with pytest.raises(InvalidArgument, match="images"):
        run_op("MaxRoiPool", PLANE, rois([1, 0, 0, 1, 1]), pooled_shape=(1, 1))
