"""Facts about the precision that kernels compute in."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet, require_same_type, widen


@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn])
def test_narrow_floats_compute_in_float32(narrow):
    """Every float narrower than float32 has float32 as its compute type."""
    assert compute_type(np.dtype(narrow)) == np.float32


@pytest.mark.parametrize("own", [np.float32, np.float64, np.int8, np.uint64, np.bool_, ml_dtypes.int4])
def test_other_types_compute_in_themselves(own):
    """float32, float64, integers and bool are their own compute type."""
    assert compute_type(np.dtype(own)) == own


def test_widen_copies_nothing_that_is_wide():
    """A float32 array is widened to itself."""
    x = np.ones(3, np.float32)
    assert widen(x) is x


def test_quiet_silences_overflow():
    """A function under `quiet` overflows to infinity without a warning."""
    assert quiet(np.exp)(np.float32(1000)) == np.inf


def test_require_same_type_names_the_types():
    """Arrays of two types are refused by a message that names both."""
    with pytest.raises(InvalidArgument, match=r"types float, int64; .*Cast"):
        require_same_type(np.ones(1, np.float32), np.ones(1, np.int64))
