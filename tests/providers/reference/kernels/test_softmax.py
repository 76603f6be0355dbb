"""Facts about Softmax, LogSoftmax and Hardmax."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidGraph


def _softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_softmax_along_each_axis(axis, dtype):
    """Softmax-13 sums to one along its axis, in each float type."""
    x = np.random.default_rng(0).normal(size=(3, 5, 7)).astype(dtype)
    y = run_op("Softmax", x, axis=axis)
    assert y.dtype == dtype
    rtol = {8: 1e-14, 4: 1e-6, 2: 8e-3}[y.itemsize]
    np.testing.assert_allclose(y.astype(np.float64), _softmax(x.astype(np.float64), axis), rtol=rtol)


def test_log_softmax_is_the_logarithm():
    """LogSoftmax is log(Softmax)."""
    x = np.random.default_rng(1).normal(size=(4, 6))
    np.testing.assert_allclose(run_op("LogSoftmax", x, axis=0), np.log(_softmax(x, 0)), rtol=1e-12)


def test_large_inputs_do_not_overflow():
    """Inputs of 10,000 are as good as 0."""
    x = np.array([[1e4, 1e4 - 1, -np.inf]], np.float32)
    np.testing.assert_allclose(run_op("Softmax", x), [[0.7310586, 0.2689414, 0]], rtol=1e-6)
    np.testing.assert_allclose(run_op("LogSoftmax", x), [[-0.3132617, -1.3132617, -np.inf]], rtol=1e-6)


def test_a_row_of_minus_infinity_is_nan():
    """Where no element is finite the result is NaN, in silence."""
    assert np.isnan(run_op("Softmax", np.full((1, 3), -np.inf, np.float32))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_hardmax_marks_the_first_maximum(dtype):
    """Of equal maxima the first is marked."""
    x = np.array([[1, 3, 3], [2, 0, 1]]).astype(dtype)
    np.testing.assert_array_equal(run_op("Hardmax", x), np.array([[0, 1, 0], [1, 0, 0]]).astype(dtype))


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
def test_before_opset_13_the_tensor_is_a_matrix(name):
    """With axis=1 of (2, 3, 4), rows of twelve are normalized together."""
    x = np.random.default_rng(2).normal(size=(2, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(run_op(name, x, version=11), run_op(name, x.reshape(2, 12)).reshape(2, 3, 4))
    np.testing.assert_array_equal(run_op(name, x, version=1, axis=-3), run_op(name, x.reshape(1, 24)).reshape(2, 3, 4))


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
def test_edges(name):
    """Empty tensors, scalars, strided views and more rows than a block holds."""
    assert run_op(name, np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert run_op(name, np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert float(run_op(name, np.array(2, np.float32))) == (0 if name == "LogSoftmax" else 1)
    x = np.random.default_rng(3).normal(size=(300, 200)).astype(np.float32)
    np.testing.assert_array_equal(run_op(name, x.T[::2]), run_op(name, x.T[::2].copy()))
    np.testing.assert_array_equal(run_op(name, x)[[7, 299]], run_op(name, x[[7, 299]]))


@pytest.mark.parametrize("version", [1, 13])
def test_an_axis_out_of_range_is_refused(version):
    """The axis must lie in the tensor, in every version as in ONNX Runtime."""
    with pytest.raises(InvalidGraph, match="axis=2"):
        run_op("Softmax", np.zeros((2, 3), np.float32), version=version, axis=2)
