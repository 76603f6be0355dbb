"""Facts about Conv, ConvInteger, QLinearConv and CausalConvWithState."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument, InvalidGraph

IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
ONES = np.ones((1, 1, 3, 3), np.float32)


def scalar(value, dtype):
    return np.array(value, dtype)


def test_conv_sums_windows_and_adds_the_bias():
    """A kernel of ones sums each window."""
    y = run_op("Conv", IMAGE, ONES, np.array([100], np.float32))
    assert y.tolist() == [[[[145, 154], [181, 190]]]]


@pytest.mark.parametrize("version", [1, 11, 22])
def test_conv_means_the_same_in_every_version(version):
    """No schema bump of Conv changed its meaning."""
    assert run_op("Conv", IMAGE, ONES, version=version, auto_pad="SAME_UPPER")[0, 0, 0].tolist() == [10, 18, 24, 18]


def test_conv_pads_each_side_as_told():
    """Asymmetric padding shifts the output."""
    y = run_op("Conv", IMAGE, ONES, pads=(0, 1, 1, 0), strides=(2, 1))
    assert y.tolist() == [[[[27, 45, 54], [42, 66, 72]]]]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_conv_of_half_types_rounds_once(dtype):
    """4096 products of 1 and 1 + 1 sum to 4097 in float32, which the half type rounds; a sum in it would stop growing."""
    x = np.ones((1, 4097, 1), dtype)
    y = run_op("Conv", x, np.ones((1, 4097, 1), dtype))
    assert y.dtype == dtype
    assert y.reshape(()) == dtype(4097)


def test_conv_of_float64_stays_float64():
    """Doubles convolve as doubles."""
    y = run_op("Conv", IMAGE.astype(np.float64) + 1e-12, ONES.astype(np.float64))
    assert y.dtype == np.float64
    assert y[0, 0, 0, 0] != 45


def test_conv_leaves_its_inputs_alone():
    """A pointwise convolution with a bias writes to neither input."""
    x, before = IMAGE.copy(), IMAGE.copy()
    run_op("Conv", x, np.ones((1, 1, 1, 1), np.float32), np.ones(1, np.float32))
    assert np.array_equal(x, before)


@pytest.mark.parametrize(
    ("x", "w", "attributes", "message"),
    [
        (IMAGE[0, 0], ONES[0, 0], {}, "rank, at least 3"),
        (IMAGE, np.ones((1, 2, 3, 3), np.float32), {}, "channels"),
        (IMAGE, np.ones((1, 1, 5, 5), np.float32), {}, "does not fit"),
        (IMAGE, ONES, {"pads": (1 << 30, 1 << 30, 0, 0)}, "bytes"),
        (IMAGE, ONES, {"pads": (1 << 39, 0, 1 << 39, 0)}, "2.31"),
        (IMAGE, ONES, {"pads": (1 << 39, 0, 1 << 39, 0), "dilations": (1 << 38, 1)}, "2.31"),
    ],
)
def test_conv_refuses_what_does_not_fit(x, w, attributes, message):
    """Shapes and attributes that disagree raise InvalidArgument."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("Conv", x, w, **attributes)


@pytest.mark.parametrize("attributes", [{"group": 0}, {"kernel_shape": (2, 2)}, {"pads": (1, 1)}])
def test_conv_refuses_attributes_that_fit_no_input(attributes):
    """They raise InvalidGraph, which names the attribute."""
    with pytest.raises(InvalidGraph, match=next(iter(attributes))):
        run_op("Conv", IMAGE, ONES, **attributes)


def test_conv_refuses_a_bias_of_another_length():
    """The bias has one value per output channel."""
    with pytest.raises(InvalidArgument, match="bias"):
        run_op("Conv", IMAGE, ONES, np.zeros(2, np.float32))


def test_conv_integer_pads_with_the_zero_point():
    """Padding stands for zero, that is for x_zero_point."""
    x = np.full((1, 1, 2, 2), 7, np.uint8)
    y = run_op("ConvInteger", x, np.ones((1, 1, 3, 3), np.uint8), scalar(5, np.uint8), pads=(1, 1, 1, 1))
    assert y.dtype == np.int32
    assert y.tolist() == [[[[8, 8], [8, 8]]]]


def test_conv_integer_takes_a_zero_point_per_filter():
    """w_zero_point may have one value per output channel."""
    x, w = np.full((1, 1, 1), 10, np.uint8), np.full((2, 1, 1), 3, np.int8)
    assert run_op("ConvInteger", x, w, None, np.array([1, -1], np.int8)).ravel().tolist() == [20, 40]
    with pytest.raises(InvalidArgument, match="w_zero_point"):
        run_op("ConvInteger", x, w, None, np.zeros(3, np.int8))


def test_qlinear_conv_rounds_half_to_even_and_saturates():
    """Sums 5 and 7 times 1/2 give 2 and 4 (ties to even); large ones stop at the type's end."""
    x = np.array([[[5, 7, 255]]], np.uint8)
    one = scalar(1, np.float32)
    zero = scalar(0, np.uint8)
    y = run_op("QLinearConv", x, one, zero, np.ones((1, 1, 1), np.uint8), one, zero, scalar(2, np.float32), zero)
    assert y.tolist() == [[[2, 4, 128]]]
    low = run_op("QLinearConv", x, one, zero, np.ones((1, 1, 1), np.uint8), one, zero, one, scalar(-100, np.int8))
    assert low.dtype == np.int8
    assert low.tolist() == [[[-95, -93, 127]]]


def test_qlinear_conv_scales_each_filter_and_adds_the_bias():
    """w_scale may have one value per output channel; the bias is added to the integer sum."""
    x = np.full((1, 1, 1, 1), 4, np.uint8)
    one, zero = scalar(1, np.float32), scalar(0, np.uint8)
    scales = np.array([1, 10], np.float32)
    w = np.ones((2, 1, 1, 1), np.int8)
    y = run_op("QLinearConv", x, one, zero, w, scales, np.zeros(2, np.int8), one, zero, np.array([1, 2], np.int32))
    assert y.ravel().tolist() == [5, 60]


def test_causal_conv_continues_from_the_state():
    """Two calls that hand on the state give what one call over the whole sequence gives."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 9), dtype=np.float32)
    w, b = rng.standard_normal((3, 1, 4), dtype=np.float32), rng.standard_normal(3, dtype=np.float32)
    whole, state = run_op("CausalConvWithState", x, w, b, activation="silu", outputs=2)
    first, middle = run_op("CausalConvWithState", x[:, :, :2], w, b, activation="silu", outputs=2)
    second, end = run_op("CausalConvWithState", x[:, :, 2:], w, b, middle, activation="silu", outputs=2)
    np.testing.assert_allclose(np.concatenate([first, second], axis=2), whole, rtol=1e-6, atol=1e-7)
    assert np.array_equal(end, state)
    assert np.array_equal(state, x[:, :, -3:])


def test_causal_conv_refuses_a_state_of_another_length():
    """past_state holds k - 1 elements per channel."""
    with pytest.raises(InvalidArgument, match="past_state"):
        run_op("CausalConvWithState", np.zeros((1, 2, 3)), np.zeros((2, 1, 3)), None, np.zeros((1, 2, 3)))
    with pytest.raises(InvalidArgument, match="activation"):
        run_op("CausalConvWithState", np.zeros((1, 2, 3)), np.zeros((2, 1, 3)), activation="relu")
