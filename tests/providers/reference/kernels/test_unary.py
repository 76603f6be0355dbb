"""Facts about the operators of one tensor."""

import math

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

FUNCTIONS = {
    "Abs": abs,
    "Acos": math.acos,
    "Asin": math.asin,
    "Asinh": math.asinh,
    "Atan": math.atan,
    "Atanh": math.atanh,
    "Ceil": math.ceil,
    "Cos": math.cos,
    "Cosh": math.cosh,
    "Erf": math.erf,
    "Exp": math.exp,
    "Floor": math.floor,
    "Neg": lambda x: -x,
    "Sign": lambda x: math.copysign(1, x),
    "Sin": math.sin,
    "Sinh": math.sinh,
    "Tan": math.tan,
    "Tanh": math.tanh,
}
TOLERANCE = {np.float64: 1e-15, np.float32: 5e-7, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_each_float_type(name, dtype):
    """Each operator agrees with the math module in every float type, and keeps type and shape."""
    x = np.array([[-0.75, -0.3], [0.2, 0.9]]).astype(dtype)
    y = run_op(name, x)
    assert (y.dtype, y.shape) == (dtype, (2, 2))
    expected = [FUNCTIONS[name](value) for value in x.astype(np.float64).flat]
    np.testing.assert_allclose(y.astype(np.float64).ravel(), expected, rtol=TOLERANCE[dtype])


def test_round_takes_halves_to_even():
    """Round(0.5, 1.5, 2.5, -2.5) is 0, 2, 2, -2."""
    np.testing.assert_array_equal(run_op("Round", np.array([0.5, 1.5, 2.5, -2.5], np.float32)), [0, 2, 2, -2])


def test_sqrt_log_and_reciprocal_follow_ieee_without_warning():
    """Square roots and logarithms of negative numbers are NaN, and 1 / 0 is infinite, all in silence."""
    x = np.array([-1.0, 0.0, 4.0], np.float32)
    np.testing.assert_array_equal(run_op("Sqrt", x), [np.nan, 0, 2])
    np.testing.assert_array_equal(run_op("Reciprocal", x), [-1, np.inf, 0.25])
    np.testing.assert_allclose(run_op("Log", x), [np.nan, -np.inf, math.log(4)], rtol=1e-6)


def test_acosh_starts_at_one():
    """Acosh is 0 at 1 and NaN below."""
    np.testing.assert_array_equal(run_op("Acosh", np.array([1.0, 0.5], np.float64)), [0, np.nan])


def test_integers_stay_integers():
    """Abs, Neg, Sign and BitwiseNot keep an integer type."""
    x = np.array([-3, 0, 5], np.int8)
    for name, expected in {"Abs": [3, 0, 5], "Neg": [3, 0, -5], "Sign": [-1, 0, 1], "BitwiseNot": [2, -1, -6]}.items():
        y = run_op(name, x)
        assert y.dtype == np.int8
        np.testing.assert_array_equal(y, expected)


def test_erf_of_integers_truncates():
    """Erf-9 took integers: erf(1) = 0.84 becomes 0, erf(100) = 1 stays."""
    np.testing.assert_array_equal(run_op("Erf", np.array([-100, 1, 100]), version=9), [-1, 0, 1])


def test_not_inverts_booleans():
    """Not gives bool."""
    np.testing.assert_array_equal(run_op("Not", np.array([True, False])), [False, True])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [True, True, False, False]),
        ({"detect_negative": 0}, [True, False, False, False]),
        ({"detect_positive": 0}, [False, True, False, False]),
        ({"detect_positive": 0, "detect_negative": 0}, [False] * 4),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_isinf_looks_for_the_wanted_signs(attributes, expected, dtype):
    """IsInf finds the infinities that its attributes ask for."""
    x = np.array([np.inf, -np.inf, np.nan, 1], np.float32).astype(dtype)
    np.testing.assert_array_equal(run_op("IsInf", x, **attributes), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_isnan_finds_nan(dtype):
    """IsNaN is True at NaN only, in every float type."""
    np.testing.assert_array_equal(run_op("IsNaN", np.array([np.nan, 1], np.float32).astype(dtype)), [True, False])


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2)])
def test_shapes_are_kept(shape):
    """Scalars and empty tensors give arrays of their shape."""
    y = run_op("Exp", np.zeros(shape, np.float32))
    assert isinstance(y, np.ndarray)
    assert y.shape == shape
