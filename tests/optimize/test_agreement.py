"""When two results count as the same."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.optimize.agreement import difference

ONES = np.ones(4, np.float32)


def test_equal_results_agree():
    """Equal arrays, with NaN and infinities at the same places, agree under tolerance 0."""
    odd = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    assert difference([odd, ONES], [odd.copy(), ONES.copy()], 0) is None


@pytest.mark.parametrize(
    ("other", "tolerance", "found"),
    [
        (ONES * np.float32(1.001), 1e-5, "gives numbers up to 0.001 apart, 1e-05 allowed, of up to 1"),
        (np.array([1, 1, 1, np.nan], np.float32), 1, "gives infinite or undefined numbers"),
        (np.ones(3, np.float32), 1, r"gives float32[3] for float32[4]"),
        (np.ones(4), 1, r"gives float64[4] for float32[4]"),
        ([1.0], 1, "gives [1.0] for array"),
    ],
)
def test_differences_are_described(other, tolerance, found):
    """What differs is said with numbers."""
    assert found in (difference([ONES], [other], tolerance) or "")


@pytest.mark.parametrize(
    ("dtype", "apart", "agree"),
    [
        (np.float32, 5e-6, True),
        (np.float32, 5e-5, False),
        (np.float16, 5e-3, True),
        (np.float64, 5e-9, True),
        (np.float64, 5e-8, False),
        (ml_dtypes.bfloat16, 5e-2, True),
        (np.complex64, 5e-6, True),
    ],
)
def test_tolerance_follows_the_type(dtype, apart, agree):
    """A tolerance of float32 grows for coarser types, and shrinks for double to a thousandth."""
    one = np.array([1, 100], dtype)
    assert (difference([one], [(one * (1 + apart)).astype(dtype)], 1e-5) is None) == agree


def test_integers_may_differ_by_steps():
    """Integers are equal unless steps are allowed; booleans and strings are equal always."""
    one, other = np.array([5, 250], np.uint8), np.array([6, 249], np.uint8)
    assert "up to 1 apart, 0 allowed" in (difference([one], [other], 1) or "")
    assert difference([one], [other], 0, integer_steps=1) is None
    assert difference([np.array([True])], [np.array([False])], 1, integer_steps=9) == "gives other elements"
    assert difference([np.array(["a"], object)], [np.array(["b"], object)], 1) == "gives other elements"


def test_sequences_are_compared_by_element():
    """Lists are compared one by one, and by length."""
    assert difference([[ONES, ONES]], [[ONES, ONES]], 0) is None
    assert difference([[ONES]], [[ONES, ONES]], 0) == "gives 2 outputs for 1"
    assert difference([None], [None], 0) is None


def test_the_output_is_named_where_there_are_several():
    """With several outputs the first that differs is named."""
    assert difference([ONES, ONES], [ONES, ONES * 2], 0) == "gives numbers up to 1 apart, 0 allowed, of up to 1 in output 1"
