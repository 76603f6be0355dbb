"""Facts about the error function."""

import math

import numpy as np
import pytest

from sardonyx.providers.reference.algorithms.erf import erf_into


def _erf(x):
    out = np.empty_like(x)
    with np.errstate(over="ignore"):
        erf_into(x, out)
    return out


def _largest_error_ulp(x):
    exact = np.array([math.erf(value) for value in x.tolist()])
    spacing = np.spacing(exact.astype(x.dtype)).astype(np.float64)
    return float(np.max(np.abs(_erf(x).astype(np.float64) - exact) / spacing))


@pytest.mark.parametrize(("dtype", "limit_ulp"), [(np.float32, 2.5), (np.float64, 2.0)], ids=["float32", "float64"])
def test_error_is_as_stated(dtype, limit_ulp):
    """Over the whole curved part, and down to the smallest normal numbers, the error keeps what the docstring states."""
    x = np.concatenate([np.linspace(-6.5, 6.5, 100_001), np.logspace(-37, 0, 20_001)]).astype(dtype)
    assert _largest_error_ulp(x[x != 0]) <= limit_ulp


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_scalar_has_one_too(dtype):
    """Arrays of rank 0 are served."""
    assert _erf(np.array(0.5, dtype)).tolist() == pytest.approx(math.erf(0.5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(dtype):
    """Infinities and huge numbers give ±1, NaN gives NaN, and -0 keeps its sign."""
    y = _erf(np.array([np.inf, -np.inf, 1e30, -1e30, 7.0, 0.0, -0.0, np.nan], dtype))
    np.testing.assert_array_equal(y, np.array([1, -1, 1, -1, 1, 0, 0, np.nan], dtype))
    assert list(np.signbit(y[5:7])) == [False, True]
