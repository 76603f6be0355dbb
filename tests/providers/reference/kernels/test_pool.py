"""Facts about AveragePool, LpPool, MaxPool and the global ones."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument, InvalidGraph

IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)


def test_max_pool_takes_the_largest_of_each_window():
    """Windows of 2 x 2, two apart."""
    assert run_op("MaxPool", IMAGE, kernel_shape=(2, 2), strides=(2, 2)).tolist() == [[[[5, 7], [13, 15]]]]


def test_max_pool_never_takes_padding():
    """Padding does not count, even where every element is negative."""
    y = run_op("MaxPool", -IMAGE - 1, kernel_shape=(3, 3), strides=(3, 3), pads=(1, 1, 1, 1))
    assert y.tolist() == [[[[-1, -3], [-9, -11]]]]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float16, np.float64, ml_dtypes.bfloat16])
def test_max_pool_keeps_its_type(dtype):
    """Every allowed type pools in itself."""
    y = run_op("MaxPool", IMAGE.astype(dtype), kernel_shape=(2, 2), pads=(1, 0, 0, 1))
    assert y.dtype == dtype
    assert y[0, 0, :, 0].astype(int).tolist() == [1, 5, 9, 13]


def test_max_pool_dilates_and_rounds_up():
    """Taps two apart; ceil_mode adds the partial window."""
    y = run_op("MaxPool", IMAGE[:, :, 0], kernel_shape=(2,), dilations=(2,), strides=(3,), ceil_mode=1)
    assert y.tolist() == [[[2, 3]]]


def test_max_pool_indices_count_in_the_flattened_input():
    """The first of equal maxima counts; storage_order 1 numbers the plane column by column."""
    x = np.stack([IMAGE[0], np.zeros((1, 4, 4), np.float32)])
    _, rows = run_op("MaxPool", x, kernel_shape=(2, 2), strides=(2, 2), outputs=2)
    assert rows.dtype == np.int64
    assert rows.ravel().tolist() == [5, 7, 13, 15, 16, 18, 24, 26]
    _, columns = run_op("MaxPool", x, kernel_shape=(2, 2), strides=(2, 2), storage_order=1, outputs=2)
    assert columns.ravel()[:4].tolist() == [5, 13, 7, 15]


def test_max_pool_indices_agree_with_the_values():
    """Each index names an element that equals the maximum, padding and dilation included."""
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 6, 5), dtype=np.float32)
    y, index = run_op("MaxPool", x, kernel_shape=(2, 3, 2), pads=(1, 1, 0, 0, 1, 1), dilations=(2, 1, 1), outputs=2)
    assert np.array_equal(x.ravel()[index], y)
    small, place = run_op("MaxPool", (x * 9).astype(np.int8), kernel_shape=(3, 3, 3), outputs=2)
    assert np.array_equal((x * 9).astype(np.int8).ravel()[place], small)
    assert np.array_equal(y, run_op("MaxPool", x, kernel_shape=(2, 3, 2), pads=(1, 1, 0, 0, 1, 1), dilations=(2, 1, 1)))


def test_average_pool_divides_by_what_it_counts():
    """By default padding is not counted; with count_include_pad it is, but not what ceil_mode reads beyond it."""
    x = np.full((1, 1, 4), 6, np.float32)
    attributes = {"kernel_shape": (3,), "strides": (2,), "pads": (1, 1), "ceil_mode": 1}
    assert run_op("AveragePool", x, **attributes).tolist() == [[[6, 6, 6]]]
    assert run_op("AveragePool", x, count_include_pad=1, **attributes).tolist() == [[[4, 6, 3]]]


def test_average_pool_of_one_tap_leaves_its_input_alone():
    """A window of one element returns the input's values and writes to none."""
    x = IMAGE.copy()
    y = run_op("AveragePool", x, kernel_shape=(1, 1), pads=(1, 1, 1, 1), count_include_pad=1)
    assert y[0, 0, 1:5, 1:5].tolist() == IMAGE[0, 0].tolist()
    assert np.array_equal(run_op("AveragePool", x, kernel_shape=(1, 1)), x)
    assert np.array_equal(x, IMAGE)


def test_average_pool_of_half_types_sums_in_float32():
    """A sum beyond float16's range still has its mean."""
    y = run_op("AveragePool", np.full((1, 1, 8), 60000, np.float16), kernel_shape=(8,))
    assert (y.dtype, y.ravel().tolist()) == (np.float16, [60000])


@pytest.mark.parametrize(("p", "expected"), [(1, 7), (2, 5), (3, 91 ** (1 / 3))])
def test_lp_pool_takes_the_norm(p, expected):
    """The p-norm of (3, -4) is 7, 5 or the cube root of 91."""
    x = np.array([[[3, -4]]], np.float32)
    assert run_op("LpPool", x, kernel_shape=(2,), p=p).ravel() == pytest.approx([expected])
    assert run_op("GlobalLpPool", x, p=p).ravel() == pytest.approx([expected])


def test_lp_pool_of_version_1_takes_a_fractional_p():
    """Before version 2 p was a float."""
    y = run_op("LpPool", np.array([[[1, 1]]], np.float32), kernel_shape=(2,), p=0.5, version=1)
    assert y.ravel() == pytest.approx([4])


@pytest.mark.parametrize(("op_type", "expected"), [("GlobalAveragePool", 7.5), ("GlobalMaxPool", 15)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_global_pools_keep_the_rank(op_type, expected, dtype):
    """Every spatial axis shrinks to length 1."""
    y = run_op(op_type, IMAGE.astype(dtype))
    assert (y.shape, y.dtype, float(y.ravel()[0])) == ((1, 1, 1, 1), dtype, expected)


def test_a_transposed_input_pools_alike():
    """A non-contiguous view gives what its copy gives."""
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 3), dtype=np.float32).transpose(0, 3, 1, 2)
    for op_type in ("MaxPool", "AveragePool"):
        y = run_op(op_type, x, kernel_shape=(3, 2), strides=(2, 1), pads=(1, 1, 1, 0))
        assert np.array_equal(y, run_op(op_type, x.copy(), kernel_shape=(3, 2), strides=(2, 1), pads=(1, 1, 1, 0)))


def test_an_empty_batch_pools_to_nothing():
    """No images give an empty output of the right shape."""
    assert run_op("MaxPool", IMAGE[:0], kernel_shape=(2, 2)).shape == (0, 1, 3, 3)
    assert run_op("AveragePool", IMAGE[:0], kernel_shape=(2, 2)).shape == (0, 1, 3, 3)


@pytest.mark.parametrize("attributes", [{}, {"dilations": (2,)}, {"pads": (5, 40)}, {"pads": (40, 7), "dilations": (2,)}])
def test_windows_longer_than_the_output_pool_alike(attributes):
    """A few long windows give what NumPy's windows give."""
    x = np.random.default_rng(0).standard_normal((2, 3, 60))
    begin, end = attributes.get("pads", (0, 0))
    dilation = attributes.get("dilations", (1,))[0]
    padded = np.pad(x, [(0, 0), (0, 0), (begin, end)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 29 * dilation - dilation + 1, axis=2)[:, :, ::5, ::dilation]
    y = run_op("MaxPool", x, kernel_shape=(29,), strides=(5,), **attributes)
    assert np.array_equal(y, windows.max(axis=3))


@pytest.mark.parametrize(
    ("x", "attributes", "message"),
    [
        (IMAGE[0, 0], {"kernel_shape": (2, 2)}, "rank 3"),
        (IMAGE, {"kernel_shape": (2,)}, "a window of .2. taps"),
        (IMAGE, {"kernel_shape": (5, 5)}, "does not fit"),
        (IMAGE, {"kernel_shape": (1, 1), "pads": (1 << 29,) * 4}, "bytes"),
        (IMAGE, {"kernel_shape": (1, 1), "pads": (1 << 39,) * 4}, "2.31"),
        (IMAGE[0], {"kernel_shape": (1 << 21,), "pads": (1 << 21,) * 2}, "2.20"),
    ],
)
def test_wrong_windows_are_refused(x, attributes, message):
    """A window that does not fit its input raises InvalidArgument."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("MaxPool", x, **attributes)


def test_a_pool_needs_a_kernel_shape():
    """There are no weights that would say it."""
    with pytest.raises(InvalidGraph, match="kernel_shape is missing"):
        run_op("MaxPool", IMAGE)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_nothing_is_pooled_from_nothing(op_type):
    """A spatial axis of size 0 has the windows of its padding."""
    x = np.zeros((1, 2, 0, 4), np.float32)
    assert run_op(op_type, x, kernel_shape=(3, 2), pads=(1, 0, 1, 0)).shape == (1, 2, 0, 3)
    assert run_op(op_type, x, kernel_shape=(2, 2), pads=(1, 0, 1, 0)).shape == (1, 2, 1, 3)


@pytest.mark.parametrize(("op_type", "attributes"), [("LpPool", {"kernel_shape": (2, 2)}), ("GlobalLpPool", {})])
def test_norms_are_positive(op_type, attributes):
    """There is no norm of order 0."""
    with pytest.raises(InvalidGraph, match="p=0, expected a number above 0"):
        run_op(op_type, IMAGE, p=0, **attributes)


@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_average_pool_of_a_huge_window_takes_no_memory_for_its_taps(count_include_pad):
    """2**28 taps over padding of 2**27 elements: taps are counted by arithmetic."""
    attributes = {"kernel_shape": (1 << 28,), "pads": (1 << 27, 1 << 27), "count_include_pad": count_include_pad}
    y = run_op("AveragePool", np.full((1, 1, 4), 2.0, np.float32), **attributes)
    expected = 8 / (1 << 28) if count_include_pad else 2
    np.testing.assert_allclose(y, np.full((1, 1, 5), expected, np.float32))
