"""Operators of com.microsoft on images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.peer import run_peer
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 5, 6)).astype(np.float32)
ROIS = (RNG.random((4, 4)) * 1.6 - 0.3).astype(np.float32)
OF = np.array([0, 1, 1, 0], np.int32)


def run(op_type: str, *inputs: Any, **attributes: Any) -> Any:
    """Run an operator of com.microsoft."""
    return run_op(op_type, *inputs, domain="com.microsoft", **attributes)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 1), (1, 5), (7, 2)])
def test_crops_are_those_of_the_peer(mode: str, size: tuple[int, int]) -> None:
    """Points outside of the image too."""
    inputs = (X, ROIS, OF, np.array(size, np.int32))
    (expected,) = run_peer("CropAndResize", *inputs, mode=mode, extrapolation_value=-3.0)
    np.testing.assert_allclose(run("CropAndResize", *inputs, mode=mode, extrapolation_value=-3.0), expected, rtol=1e-5, atol=1e-6)


def test_a_crop_of_the_whole_image_is_the_image() -> None:
    """0 and 1 are the centers of the first and the last pixel."""
    whole = np.array([[0, 0, 1, 1]], np.float32)
    found = run("CropAndResize", X, whole, np.array([1], np.int32), np.array([5, 6], np.int32))
    np.testing.assert_allclose(found, X[1:], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("images", "size", "message"),
    [([0, 2, 0, 0], [2, 2], "X has 2 images"), ([0, -1, 0, 0], [2, 2], "X has 2"), ([0] * 4, [0, 2], "at least 1")],
)
def test_images_and_sizes_must_be_there(images: list[int], size: list[int], message: str) -> None:
    """Nothing else is read."""
    with pytest.raises(InvalidArgument, match=message):
        run("CropAndResize", X, ROIS, np.array(images, np.int32), np.array(size, np.int32))


def test_padding_of_a_transposed_convolution_is_an_input() -> None:
    """The result is that of the attribute."""
    w, b = RNG.standard_normal((3, 4, 3, 3)).astype(np.float32), RNG.standard_normal(4).astype(np.float32)
    found = run("ConvTransposeWithDynamicPads", X, w, np.array([1, 0, 1, 2]), b, strides=[2, 1], output_padding=[1, 0])
    expected = run_op("ConvTranspose", X, w, b, pads=[1, 0, 1, 2], strides=[2, 1], output_padding=[1, 0])
    np.testing.assert_array_equal(found, expected)


def test_padding_that_is_an_input_counts_where_it_is_valid() -> None:
    """As in onnxruntime, also in the inferred shape."""
    w, pads = RNG.standard_normal((3, 4, 3, 3)).astype(np.float32), np.array([1, 0, 1, 2])
    inputs: list[Any] = [X, w, pads]
    (expected,) = run_peer("ConvTransposeWithDynamicPads", *inputs, auto_pad="VALID")
    found = run("ConvTransposeWithDynamicPads", *inputs, auto_pad="VALID")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 3]},
        {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 0, 0, 1]},
        {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"},
    ],
)
def test_masked_pools_are_those_of_the_peer(attributes: Any) -> None:
    """A row of a window ends where the mask is 0."""
    mask = (RNG.random((1, 1, 5, 6)) > 0.4).astype(np.int32)
    (expected,) = run_peer("MaxpoolWithMask", X, mask, **attributes)
    np.testing.assert_array_equal(run("MaxpoolWithMask", X, mask, **attributes), expected)


@pytest.mark.parametrize("first", [0, 1])
def test_a_mask_of_one_axis_counts_from_its_first_element(first: int) -> None:
    """With several axes that element counts as 1."""
    mask = np.array([[[first, 1, 0, 1]]], np.int32)
    x = np.array([[[4, 3, 2, 1]]], np.float32)
    (expected,) = run_peer("MaxpoolWithMask", x, mask, kernel_shape=[1])
    np.testing.assert_array_equal(run("MaxpoolWithMask", x, mask, kernel_shape=[1]), expected)


def test_a_mask_has_the_axes_of_the_image() -> None:
    """Another shape is refused."""
    with pytest.raises(InvalidArgument, match="spatial axes of X"):
        run("MaxpoolWithMask", X, np.ones((1, 1, 5, 5), np.int32), kernel_shape=[2, 2])
