"""Facts about reductions."""

import ml_dtypes
import numpy as np
import pytest
from support.cancelling import checks_of
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

FUNCTIONS = {
    "ReduceL1": lambda x, axes: np.abs(x).sum(axes),
    "ReduceL2": lambda x, axes: np.sqrt(np.square(x).sum(axes)),
    "ReduceLogSum": lambda x, axes: np.log(x.sum(axes)),
    "ReduceLogSumExp": lambda x, axes: np.log(np.exp(x).sum(axes)),
    "ReduceMax": lambda x, axes: x.max(axes),
    "ReduceMean": lambda x, axes: x.mean(axes),
    "ReduceMin": lambda x, axes: x.min(axes),
    "ReduceProd": lambda x, axes: x.prod(axes),
    "ReduceSum": lambda x, axes: x.sum(axes),
    "ReduceSumSquare": lambda x, axes: np.square(x).sum(axes),
}
X = np.random.default_rng(0).uniform(0.5, 1.5, size=(2, 3, 4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("axes", [(0,), (-1,), (0, 2), (1, 0), (0, 1, 2)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_reduction_over_some_axes(name, axes, dtype):
    """Every reduction agrees with NumPy in float64 and keeps its type."""
    x = X.astype(dtype)
    y = run_op(name, x, np.array(axes), keepdims=0)
    assert y.dtype == dtype
    rtol = {8: 1e-12, 4: 3e-6, 2: 1e-2}[y.itemsize]
    np.testing.assert_allclose(y.astype(np.float64), FUNCTIONS[name](x.astype(np.float64), axes), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_axes_were_an_attribute(name):
    """Before opset 18 (ReduceSum 13) the axes are an attribute, with the same meaning."""
    y = run_op(name, X, version=11, axes=(1,))
    np.testing.assert_array_equal(y, run_op(name, X, np.array([1])))
    assert y.shape == (2, 1, 4)


def test_reduce_sum_took_axes_as_input_first():
    """ReduceSum-13 has them as an input."""
    assert run_op("ReduceSum", X, np.array([1]), version=13).shape == (2, 1, 4)


@pytest.mark.parametrize("axes", [None, np.zeros(0, np.int64)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_axes_are_all_of_them(name, axes):
    """Axes left out or empty reduce everything."""
    y = run_op(name, X, axes)
    assert y.shape == (1, 1, 1)
    np.testing.assert_allclose(float(y[0, 0, 0]), FUNCTIONS[name](X, None))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_axes_are_none_of_them_if_asked(name):
    """With noop_with_empty_axes each element is reduced alone: squares and logarithms are still taken."""
    np.testing.assert_allclose(run_op(name, X, None, noop_with_empty_axes=1), FUNCTIONS[name](X, ()), atol=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ReduceL1", 0),
        ("ReduceL2", 0),
        ("ReduceLogSum", -np.inf),
        ("ReduceLogSumExp", -np.inf),
        ("ReduceMax", -np.inf),
        ("ReduceMin", np.inf),
        ("ReduceProd", 1),
        ("ReduceSum", 0),
        ("ReduceSumSquare", 0),
    ],
)
def test_reductions_of_nothing(name, expected):
    """An empty axis gives the neutral element."""
    np.testing.assert_array_equal(run_op(name, np.zeros((2, 0), np.float32), np.array([1]), keepdims=0), [expected] * 2)


@pytest.mark.parametrize(("dtype", "least", "greatest"), [(np.int8, -128, 127), (np.uint8, 0, 255), (np.bool_, False, True)])
def test_extremes_of_nothing(dtype, least, greatest):
    """Without infinities the extremes of the type serve."""
    empty = np.zeros((0,), dtype)
    assert run_op("ReduceMax", empty, keepdims=0) == least
    assert run_op("ReduceMin", empty, keepdims=0) == greatest


def test_integer_reductions_keep_the_type():
    """Integer sums wrap in their own type, means and norms truncate."""
    x = np.array([-3, -4], np.int32)
    for name, expected in {"ReduceSum": -7, "ReduceMean": -3, "ReduceL2": 5, "ReduceProd": 12, "ReduceL1": 7}.items():
        y = run_op(name, x, keepdims=0)
        assert (y.dtype, int(y)) == (np.int32, expected)
    assert int(run_op("ReduceSum", np.array([2**31 - 1, 1], np.int32), keepdims=0)) == -(2**31)


def test_booleans_have_extremes():
    """ReduceMax-20 takes bool: False < True."""
    y = run_op("ReduceMax", np.array([[True, False], [False, False]]), np.array([1]), keepdims=0)
    assert y.dtype == np.bool_
    assert y.tolist() == [True, False]


def test_log_sum_exp_does_not_overflow():
    """Numbers around 1000, infinities and negative infinity alone."""
    x = np.array([[1000, 1000], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    y = run_op("ReduceLogSumExp", x, np.array([1]), keepdims=0)
    np.testing.assert_allclose(y, [1000 + np.log(2), -np.inf, np.inf], rtol=1e-6)


def test_sums_of_narrow_floats_are_taken_in_float32():
    """10,000 ones add up in bfloat16, whose own sums would stop at 256."""
    assert float(run_op("ReduceSum", np.ones(10_000, ml_dtypes.bfloat16), keepdims=0)) == 9984


def test_a_scalar_reduces_to_itself():
    """Rank zero has no axes to reduce."""
    assert float(run_op("ReduceSum", np.array(3.0))) == 3


@pytest.mark.parametrize("axes", [[1, 1], [1, -2]])
def test_an_axis_may_be_named_twice(axes):
    """It is reduced once, as in ONNX Runtime."""
    np.testing.assert_array_equal(run_op("ReduceSum", X, np.array(axes)), run_op("ReduceSum", X, np.array([1])))


@pytest.mark.parametrize("axes", [[3], [-4]])
def test_bad_axes_are_refused(axes):
    """Axes out of range are refused."""
    with pytest.raises(InvalidArgument, match="axes"):
        run_op("ReduceSum", X, np.array(axes))


@pytest.mark.parametrize(("name", "first", "last"), [("ArgMax", [1, 0], [2, 1]), ("ArgMin", [0, 2], [0, 2])])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8])
def test_arg_extremes(name, first, last, dtype):
    """The first index of the extreme, or the last if asked, as int64."""
    x = np.array([[1, 3, 3], [2, 2, 0]]).astype(dtype)
    y = run_op(name, x, axis=1, keepdims=0)
    assert (y.dtype, y.tolist()) == (np.int64, first)
    assert run_op(name, x, axis=-1, select_last_index=1).tolist() == [[index] for index in last]


def test_arg_max_of_nothing_is_refused():
    """An empty axis has no maximum."""
    with pytest.raises(InvalidArgument, match="no element"):
        run_op("ArgMax", np.zeros((2, 0)), axis=1)


@pytest.mark.parametrize(
    ("attributes", "sums", "products"),
    [
        ({}, [1, 3, 6], [1, 2, 6]),
        ({"exclusive": 1}, [0, 1, 3], [1, 1, 2]),
        ({"reverse": 1}, [6, 5, 3], [6, 6, 3]),
        ({"exclusive": 1, "reverse": 1}, [5, 3, 0], [6, 3, 1]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16, ml_dtypes.bfloat16])
def test_cumulative_sum_and_product(attributes, sums, products, dtype):
    """The examples of ONNX CumSum-14 and CumProd-26."""
    x = np.array([[1, 2, 3]]).astype(dtype)
    for name, expected in {"CumSum": sums, "CumProd": products}.items():
        y = run_op(name, x, np.array(-1), **attributes)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y.astype(np.float64), [expected])


def test_cumulative_sum_of_nothing():
    """An empty axis stays empty, exclusive or not."""
    assert run_op("CumSum", np.zeros((2, 0)), np.array(1), exclusive=1).shape == (2, 0)


def test_cumulative_sum_refuses_an_axis_that_is_not_there():
    """The axis must lie in the tensor and be one number."""
    with pytest.raises(InvalidArgument, match="axis=1"):
        run_op("CumSum", np.zeros(3), np.array(1))
    with pytest.raises(InvalidArgument, match=r"shape \(2,\)"):
        run_op("CumSum", np.zeros(3), np.array([0, 0]))


@pytest.mark.parametrize(("shape", "axis"), [((9_000_000,), 0), ((3, 3_000_000), 1), ((3_000_000, 3), 0)])
def test_long_cumulative_sums_are_made_in_parts(shape, axis):
    """Each goes on where the one before ended, bit for bit, and they ask whether the run is to end."""
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    np.testing.assert_array_equal(run_op("CumSum", x, np.array(axis)), np.add.accumulate(x, axis))
    assert checks_of(lambda: run_op("CumSum", x, np.array(axis))) >= 3


@pytest.mark.parametrize("length", [127, 128, 129, 10_007, 65_536])
def test_long_sums_along_an_outer_axis_keep_their_digits(length):
    """Sums of n equal numbers along the first axis keep four digits even if all roundings agree."""
    x = np.full((length, 3), 0.1, np.float32)
    np.testing.assert_allclose(run_op("ReduceSum", x, np.array([0]), keepdims=0), np.float32(0.1) * np.float64(length), rtol=2e-5)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_cumulative_sum_of_long_slices(axis):
    """Along any axis of (3, 20, 130), and from the end: as np.add.accumulate, bit for bit."""
    x = np.random.default_rng(0).random((3, 20, 130), np.float32)
    assert (run_op("CumSum", x, axis) == np.add.accumulate(x, axis=axis)).all()
    flipped = np.flip(np.add.accumulate(np.flip(x, axis), axis=axis), axis)
    assert (run_op("CumSum", x, axis, reverse=1) == flipped).all()
    zeros = np.zeros_like(x.take([0], axis))
    exclusive = np.concatenate([zeros, np.add.accumulate(x, axis=axis)], axis).take(range(x.shape[axis]), axis)
    assert (run_op("CumSum", x, axis, exclusive=1) == exclusive).all()
