"""Facts about powers."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.providers.reference.algorithms.power import power


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, 3.0, -1.0, 2.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_scalar_exponents(exponent, dtype):
    """A scalar exponent, with a short cut or without, gives x ** exponent in the type of x."""
    x = np.array([0.5, 1.0, 3.0]).astype(dtype)
    y = power(x, np.array(exponent, np.float32))
    assert y.dtype == dtype
    np.testing.assert_allclose(y.astype(np.float64), x.astype(np.float64) ** exponent, rtol=8e-3 if x.itemsize == 2 else 1e-6)


@pytest.mark.parametrize("exponent_type", [np.int8, np.uint64, np.int64, np.float16, np.float64])
def test_the_exponent_may_have_another_type(exponent_type):
    """The result has the type of the base whatever the exponent's."""
    y = power(np.array([2, 3], np.float32), np.array([3, 2], exponent_type))
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, [8, 9])


def test_an_exponent_of_higher_rank_shapes_the_result():
    """A one-element exponent of more axes than the base broadcasts it."""
    assert power(np.ones(2, np.float32), np.full((1, 1, 1), 2, np.float32)).shape == (1, 1, 2)


def test_integers_are_exact():
    """Integer powers are exact where they fit."""
    np.testing.assert_array_equal(power(np.array([3, -7]), np.array([39, 21])), [3**39, -(7**21)])
    np.testing.assert_array_equal(power(np.array([3], np.int32), np.array([4], np.uint64)), [81])


def test_integers_of_negative_powers_truncate():
    """2 ** -1 is 0, (-1) ** -3 is -1."""
    np.testing.assert_array_equal(power(np.array([2, 1, -1]), np.array([-1, -1, -3])), [0, 1, -1])


def test_a_negative_power_leaves_the_others_exact():
    """Beside it, 3 to the 39th has all its digits, and 0 to the -1st is the least integer."""
    y = power(np.array([3, 0, -1]), np.array([39, -1, -2]))
    np.testing.assert_array_equal(y, [3**39, np.iinfo(np.int64).min, 1])


def test_integers_of_fractional_powers_truncate():
    """10 ** 0.5 is 3 among integers."""
    y = power(np.array([10, 4]), np.array([0.5, 0.5], np.float32))
    assert y.dtype == np.int64
    np.testing.assert_array_equal(y, [3, 2])
