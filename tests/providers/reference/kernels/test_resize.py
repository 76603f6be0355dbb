"""Facts about Resize and Upsample."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument, InvalidGraph

SQUARE = np.array([[[[1, 2], [3, 4]]]], np.float32)
DOUBLE = np.array([1, 1, 2, 2], np.float32)
LINE = np.array([[[1, 2, 4, 8]]], np.float32)


def sizes(*values):
    return np.array(values, np.int64)


def test_nearest_repeats_elements():
    """Doubling both axes."""
    y = run_op("Resize", SQUARE, None, DOUBLE)
    assert y.tolist() == [[[[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]]]


@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.complex64, np.float16, ml_dtypes.bfloat16, object])
def test_nearest_takes_every_type(dtype):
    """Strings included."""
    y = run_op("Resize", SQUARE.astype(np.float64).astype(dtype), None, None, sizes(1, 1, 4, 2))
    assert (y.shape, y.dtype) == ((1, 1, 4, 2), dtype)


def test_linear_blends_neighbours():
    """Doubling with half-pixel centres; beyond the ends the last element is repeated."""
    y = run_op("Resize", LINE, None, np.array([1, 1, 2], np.float32), mode="linear")
    assert y.tolist() == [[[1, 1.25, 1.75, 2.5, 3.5, 5, 7, 8]]]


def test_sizes_and_scales_agree_on_whole_factors():
    """`sizes` of twice the length resize as scales of 2 do."""
    for mode in ("nearest", "linear", "cubic"):
        by_sizes = run_op("Resize", SQUARE, None, None, sizes(1, 1, 4, 4), mode=mode)
        assert np.array_equal(by_sizes, run_op("Resize", SQUARE, None, DOUBLE, mode=mode))


def test_axes_name_what_is_resized():
    """roi, scales and sizes then have one entry per named axis; negative axes count from the back."""
    y = run_op("Resize", SQUARE, None, None, sizes(4, 1), axes=(-1, 2), coordinate_transformation_mode="asymmetric")
    assert y.tolist() == [[[[1, 1, 2, 2]]]]


@pytest.mark.parametrize(
    ("policy", "shape"), [("not_larger", (1, 1, 3, 6)), ("not_smaller", (1, 1, 4, 8)), ("stretch", (1, 1, 4, 6))]
)
def test_aspect_ratio_policies(policy, shape):
    """One scale for all axes: the smaller of 2 and 1.5, or the larger."""
    x = np.zeros((1, 1, 2, 4), np.float32)
    assert run_op("Resize", x, None, None, sizes(4, 6), axes=(2, 3), keep_aspect_ratio_policy=policy).shape == shape


def test_crops_extrapolate_outside():
    """tf_crop_and_resize puts extrapolation_value where the region leaves the input."""
    roi = np.array([0, 0, 0, 1, 1, 2], np.float32)
    y = run_op(
        "Resize",
        LINE,
        roi,
        None,
        sizes(1, 1, 3),
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=-1.0,
    )
    assert y.tolist() == [[[1, 8, -1]]]


def test_integers_are_truncated():
    """1.25 and 3.75 become 1 and 3; cubic overshoot stops at the type's end."""
    x = np.array([[[0, 5, 255, 255]]], np.uint8)
    assert run_op("Resize", x, None, np.array([1, 1, 2], np.float32), mode="linear")[0, 0, :3].tolist() == [0, 1, 3]
    assert run_op("Resize", x, None, np.array([1, 1, 2], np.float32), mode="cubic").max() == 255


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_blending_keeps_the_type(dtype):
    """Half types compute in float32."""
    y = run_op("Resize", LINE.astype(dtype), None, np.array([1, 1, 2], np.float32), mode="linear")
    assert (y.dtype, y.astype(float).ravel()[:3].tolist()) == (dtype, [1, 1.25, 1.75])


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialiasing_changes_only_what_shrinks(mode):
    """Enlarging is the same with and without it; shrinking averages."""
    x = np.random.default_rng(0).standard_normal((1, 1, 8, 8), dtype=np.float32)
    grown = [run_op("Resize", x, None, DOUBLE, mode=mode, antialias=flag) for flag in (0, 1)]
    np.testing.assert_allclose(grown[0], grown[1], atol=1e-6)
    alternating = np.tile(np.array([0, 1], np.float32), 16).reshape(1, 1, 32)
    y = run_op("Resize", alternating, None, np.array([1, 1, 0.25], np.float32), mode=mode, antialias=1)
    np.testing.assert_allclose(y[..., 1:-1], 0.5, atol=0.02)


def test_a_transposed_input_resizes_alike():
    """A non-contiguous view gives what its copy gives."""
    x = np.random.default_rng(0).standard_normal((5, 4, 3), dtype=np.float32).transpose(2, 0, 1)[None]
    for mode in ("nearest", "cubic"):
        assert np.array_equal(run_op("Resize", x, None, DOUBLE, mode=mode), run_op("Resize", x.copy(), None, DOUBLE, mode=mode))


def test_lengths_are_floored_in_float32():
    """10 times 0.7 is 7 in float32, though the nearest float32 to 0.7 is below it."""
    assert run_op("Resize", np.zeros(10, np.float32), None, np.array([0.7], np.float32)).shape == (7,)


def test_resize_10_and_upsample_start_at_the_origin():
    """Before version 11 output i lies at i / scale: below on an axis that grows, above on one that shrinks."""
    scales = np.array([1, 1, 0.6], np.float32)
    assert run_op("Resize", LINE, scales, version=10).tolist() == [[[1, 4]]]
    double = np.array([1, 1, 2], np.float32)
    assert run_op("Resize", LINE, double, version=10, mode="linear").tolist() == [[[1, 1.5, 2, 3, 4, 6, 8, 8]]]
    assert run_op("Upsample", LINE, double, version=9).tolist() == [[[1, 1, 2, 2, 4, 4, 8, 8]]]
    assert run_op("Upsample", LINE, version=7, scales=(1.0, 1.0, 2.0)).tolist() == [[[1, 1, 2, 2, 4, 4, 8, 8]]]
    assert run_op("Upsample", SQUARE, version=1, height_scale=1.0, width_scale=2.0, mode="bilinear").shape == (1, 1, 2, 4)


@pytest.mark.parametrize(
    ("x", "inputs", "attributes", "message"),
    [
        (SQUARE, (None, None, None), {}, "neither"),
        (SQUARE, (None, DOUBLE, sizes(1, 1, 2, 2)), {}, "both"),
        (SQUARE, (None, DOUBLE[:3]), {}, "one per resized axis"),
        (SQUARE, (None, -DOUBLE), {}, "positive"),
        (SQUARE, (None, DOUBLE * np.float32(np.nan)), {}, "positive"),
        (SQUARE, (None, None, sizes(1, 1, -2, 2)), {}, "sizes"),
        (SQUARE, (None, None, sizes(1, 1, 1 << 40, 2)), {}, "bytes"),
        (SQUARE, (None, DOUBLE), {"coordinate_transformation_mode": "tf_crop_and_resize"}, "roi"),
        (SQUARE[..., :0], (None, None, sizes(1, 1, 2, 2)), {}, "empty"),
        (SQUARE.astype(object), (None, DOUBLE), {"mode": "linear"}, "nearest"),
    ],
)
def test_wrong_arguments_are_refused(x, inputs, attributes, message):
    """What fits neither the input nor the standard raises InvalidArgument."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("Resize", x, *inputs, **attributes)


@pytest.mark.parametrize("attributes", [{"mode": "area"}, {"keep_aspect_ratio_policy": "fit"}])
def test_unknown_modes_are_refused(attributes):
    """They raise InvalidGraph, which names the attribute."""
    with pytest.raises(InvalidGraph, match=next(iter(attributes))):
        run_op("Resize", SQUARE, None, DOUBLE, **attributes)
