"""Facts about MatMul, Gemm, MatMulInteger, QLinearMatMul and Det."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)


def scalar(value, dtype):
    return np.array(value, dtype)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.uint32, np.uint64]
)
def test_matmul_keeps_every_type(dtype):
    """The product has the type of its factors."""
    y = run_op("MatMul", A.astype(dtype), B.astype(dtype))
    assert y.dtype == dtype
    assert y.astype(int).tolist() == (A @ B).astype(int).tolist()


def test_matmul_of_half_types_sums_in_float32():
    """4097 ones sum to 4097 before the result is rounded, which a sum in float16 never reaches."""
    ones = np.ones((1, 4097), np.float16)
    assert run_op("MatMul", ones, ones.T).tolist() == [[np.float16(4097)]]


def test_matmul_of_integers_is_exact_and_wraps():
    """Products beyond 2^53 keep their last bit, those beyond 2^64 wrap."""
    big = np.array([[2**62 + 1, 2]], np.int64)
    assert run_op("MatMul", big, np.array([[1], [3]], np.int64)).tolist() == [[2**62 + 7]]
    assert run_op("MatMul", np.array([[2**31]], np.uint32), np.array([[2]], np.uint32)).tolist() == [[0]]


def test_matmul_of_infinities_is_silent():
    """Infinity times zero is NaN, without a warning."""
    assert np.isnan(run_op("MatMul", np.array([[np.inf]], np.float32), np.zeros((1, 1), np.float32))).all()


def test_gemm_scales_transposes_and_adds():
    """The result is alpha a' b' + beta c, with c broadcast to the product."""
    expected = 2 * (A @ B) + 3 * np.arange(4)
    y = run_op("Gemm", A.T.copy(), B.T.copy(), np.arange(4, dtype=np.float32), alpha=2.0, beta=3.0, transA=1, transB=1)
    assert np.array_equal(y, expected)
    assert np.array_equal(run_op("Gemm", A, B, np.ones((2, 1), np.float32)), A @ B + 1)
    assert np.array_equal(run_op("Gemm", A, B, scalar(1, np.float32)), A @ B + 1)
    assert np.array_equal(run_op("Gemm", A, B), A @ B)


@pytest.mark.parametrize("version", [1, 6, 7, 9, 11, 13])
def test_gemm_means_the_same_in_every_version(version):
    """The broadcast attribute of versions 1 and 6 permitted what later ones always permit."""
    assert np.array_equal(run_op("Gemm", A, B, np.ones(4, np.float32), version=version), A @ B + 1)


def test_gemm_of_integers_stays_integer():
    """Integers multiply exactly; alpha's product is cut towards zero."""
    y = run_op("Gemm", A.astype(np.int64), B.astype(np.int64), alpha=0.5)
    assert y.dtype == np.int64
    assert y.tolist() == np.trunc(0.5 * (A @ B)).tolist()


@pytest.mark.parametrize("c", [np.zeros((3, 1), np.float32), np.zeros((1, 2, 4), np.float32)])
def test_gemm_refuses_an_addend_that_does_not_fit(c):
    """C broadcasts to the product, not the other way round."""
    with pytest.raises(InvalidArgument, match="C has shape"):
        run_op("Gemm", A, B, c)


def test_gemm_refuses_anything_but_matrices():
    """A and B have rank 2."""
    with pytest.raises(InvalidArgument, match="expected matrices"):
        run_op("Gemm", A[None], B)


def test_matmul_integer_subtracts_zero_points_per_row_and_column():
    """a_zero_point may have one value per row, b_zero_point one per column."""
    a, b = np.array([[1, 2], [3, 4]], np.uint8), np.array([[1, 2], [3, 4]], np.int8)
    rows, columns = np.array([1, 3], np.uint8), np.array([-1, 1], np.int8)
    y = run_op("MatMulInteger", a, b, rows, columns)
    assert y.dtype == np.int32
    assert y.tolist() == ((a.astype(int) - [[1], [3]]) @ (b.astype(int) - [-1, 1])).tolist()


def test_matmul_integer_of_stacks_takes_shaped_zero_points():
    """For stacks the zero points have the stack's shape, with 1 for the summed axis."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (2, 3, 4), np.uint8), rng.integers(-128, 128, (2, 4, 5), np.int8)
    rows, columns = rng.integers(0, 256, (2, 3, 1), np.uint8), rng.integers(-128, 128, (2, 1, 5), np.int8)
    expected = np.matmul(a.astype(int) - rows.astype(int), b.astype(int) - columns.astype(int))
    assert np.array_equal(run_op("MatMulInteger", a, b, rows, columns), expected)
    assert run_op("MatMulInteger", a[0, 0], b[0]).shape == (5,)
    assert run_op("MatMulInteger", a[0, 0], b[0, :, 0]).shape == ()


def test_matmul_integer_refuses_zero_points_of_another_length():
    """Neither one value nor one per row."""
    with pytest.raises(InvalidArgument, match="a_zero_point"):
        run_op("MatMulInteger", np.zeros((2, 3), np.uint8), np.zeros((3, 4), np.uint8), np.zeros(3, np.uint8))


def test_qlinear_matmul_requantizes_with_ties_to_even():
    """Sums 5 and 7 times 1/2 give 2 and 4; scales may come per row and per column."""
    one, zero = scalar(1, np.float32), scalar(0, np.uint8)
    a, b = np.array([[5], [7]], np.uint8), np.array([[1, 2]], np.uint8)
    y = run_op("QLinearMatMul", a, one, zero, b, np.array([0.5, 1], np.float32), np.zeros(2, np.uint8), one, zero)
    assert y.tolist() == [[2, 10], [4, 14]]


def test_qlinear_matmul_takes_float8():
    """float8 factors multiply as floats and saturate in the result's type."""
    f8 = ml_dtypes.float8_e4m3fn
    one, zero = scalar(1, np.float16), scalar(0, f8)
    y = run_op("QLinearMatMul", np.full((1, 2), 16, f8), one, zero, np.array([[1], [100]], f8), one, zero, one, zero)
    assert y.dtype == f8
    assert y.astype(float).tolist() == [[448]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_det_of_stacks(dtype):
    """One determinant per matrix, in the input's type; a 0 x 0 matrix has determinant 1."""
    y = run_op("Det", np.array([[[1, 2], [3, 4]], [[2, 0], [0, 3]]], dtype))
    assert y.dtype == dtype
    np.testing.assert_allclose(y.astype(float), [-2, 6], rtol=1e-3)
    assert run_op("Det", np.zeros((0, 0), dtype)).tolist() == 1


def test_det_refuses_other_than_square():
    """A determinant needs as many rows as columns."""
    with pytest.raises(InvalidArgument, match="square"):
        run_op("Det", A)
