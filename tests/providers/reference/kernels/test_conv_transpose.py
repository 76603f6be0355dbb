"""Facts about ConvTranspose and Col2Im."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument, InvalidGraph

LINE = np.arange(1, 4, dtype=np.float32).reshape(1, 1, 3)
TAPS = np.array([[[1, 10, 100]]], np.float32)


def row(*args, **attributes):
    return run_op("ConvTranspose", *args, **attributes).ravel().tolist()


def test_conv_transpose_spreads_each_element_over_the_kernel():
    """Overlapping windows add up; a stride moves them apart."""
    assert row(LINE, TAPS) == [1, 12, 123, 230, 300]
    assert row(LINE, TAPS, strides=(2,)) == [1, 10, 102, 20, 203, 30, 300]


def test_conv_transpose_pads_cut_and_output_padding_appends():
    """`pads` remove elements from the ends, `output_padding` adds some at the end."""
    assert row(LINE, TAPS, pads=(1, 2)) == [12, 123]
    assert row(LINE, TAPS, strides=(2,), output_padding=(1,)) == [1, 10, 102, 20, 203, 30, 300, 0]


@pytest.mark.parametrize(
    ("auto_pad", "expected"),
    [
        ("SAME_UPPER", [1, 10, 102, 20, 203, 30]),
        ("SAME_LOWER", [10, 102, 20, 203, 30, 300]),
        ("NOTSET", [10, 102, 20, 203, 30, 300]),
    ],
)
def test_conv_transpose_output_shape_decides_the_padding(auto_pad, expected):
    """One element is cut: from the end for SAME_UPPER, else from the beginning."""
    assert row(LINE, TAPS, strides=(2,), output_shape=(6,), auto_pad=auto_pad) == expected


def test_conv_transpose_same_multiplies_the_length_by_the_stride():
    """With SAME_UPPER the output has stride times the input's length, even where the kernel is shorter than the stride."""
    assert row(LINE, TAPS[:, :, :1], strides=(2,), auto_pad="SAME_UPPER") == [1, 0, 2, 0, 3, 0]


def test_conv_transpose_is_the_gradient_of_conv():
    """<conv(x), y> equals <x, conv_transpose(y)> with groups, strides, dilations and padding."""
    rng = np.random.default_rng(0)
    attributes = {"strides": (2, 1), "dilations": (1, 2), "pads": (1, 0, 2, 1), "group": 2}
    x, w = rng.standard_normal((2, 4, 9, 8)), rng.standard_normal((6, 2, 3, 2))
    y = rng.standard_normal(run_op("Conv", x, w, **attributes).shape)
    back = run_op("ConvTranspose", y, w, output_padding=(1, 0), **attributes)
    assert np.isclose(np.sum(run_op("Conv", x, w, **attributes) * y), np.sum(x * back))


def test_conv_transpose_adds_the_bias_everywhere():
    """Elements that no window reaches hold the bias."""
    assert row(LINE, TAPS[:, :, :1], np.array([5], np.float32), strides=(2,)) == [6, 5, 7, 5, 8]


def test_conv_transpose_of_bfloat16_stays_bfloat16():
    """Half types compute in float32 and round to their own type."""
    y = run_op("ConvTranspose", LINE.astype(ml_dtypes.bfloat16), TAPS.astype(ml_dtypes.bfloat16))
    assert y.dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("w", "attributes", "message"),
    [
        (TAPS[0], {}, "rank"),
        (np.ones((2, 1, 3), np.float32), {}, "channels"),
        (TAPS, {"pads": (3, 3)}, "leave an output"),
        (TAPS, {"output_shape": (1, 2)}, "output_shape"),
        (TAPS, {"strides": (1 << 40,)}, "bytes"),
    ],
)
def test_conv_transpose_refuses_what_does_not_fit(w, attributes, message):
    """Shapes and attributes that disagree raise InvalidArgument."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("ConvTranspose", LINE, w, **attributes)


def test_conv_transpose_refuses_an_unknown_padding():
    """It raises InvalidGraph."""
    with pytest.raises(InvalidGraph, match="auto_pad='SAME'"):
        run_op("ConvTranspose", LINE, TAPS, auto_pad="SAME")


def test_col2im_adds_overlapping_blocks():
    """Each column is one block of the image, row-major; blocks that overlap add up."""
    columns = np.array([[[1, 2], [10, 20]]], np.float32)
    y = run_op("Col2Im", columns, np.array([1, 3]), np.array([1, 2]))
    assert y.tolist() == [[[[1, 12, 20]]]]


def test_col2im_keeps_integer_types():
    """Integers add up as integers."""
    y = run_op("Col2Im", np.ones((1, 4, 4), np.int64), np.array([3, 3]), np.array([2, 2]))
    assert y.dtype == np.int64
    assert y.tolist() == [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]


def test_col2im_refuses_another_number_of_columns():
    """The number of columns is the number of block positions."""
    with pytest.raises(InvalidArgument, match="4"):
        run_op("Col2Im", np.ones((1, 4, 5), np.float32), np.array([3, 3]), np.array([2, 2]))


def test_col2im_refuses_a_block_without_elements() -> None:
    """Nothing would be added up."""
    with pytest.raises(InvalidArgument, match=r"block_shape = \[2, 0\]: each value must be at least 1"):
        run_op("Col2Im", np.ones((1, 4, 5), np.float32), np.array([3, 3]), np.array([2, 0]))
