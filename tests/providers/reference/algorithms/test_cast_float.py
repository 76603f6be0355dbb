"""Facts about conversion to narrow floats: the tables of ONNX Cast-25."""

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.cast_float import convert_narrow

LARGEST = {DataType.FLOAT8E4M3FN: 448, DataType.FLOAT8E4M3FNUZ: 240, DataType.FLOAT8E5M2: 57344, DataType.FLOAT8E5M2FNUZ: 57344}


def _convert(values, wanted, saturate=True, round_mode="up", dtype=np.float32):
    with np.errstate(all="ignore"):
        y = convert_narrow(np.array(values, dtype), wanted, saturate=saturate, round_mode=round_mode)
    assert y.dtype == wanted.numpy
    return y.astype(np.float64)


@pytest.mark.parametrize("wanted", LARGEST, ids=str)
def test_float8_saturates(wanted):
    """Infinities and what is too large become the largest number, NaN stays."""
    y = _convert([np.inf, -np.inf, 1e9, -1e9, np.nan, 0.0], wanted)
    largest = LARGEST[wanted]
    np.testing.assert_array_equal(y, [largest, -largest, largest, -largest, np.nan, 0])


@pytest.mark.parametrize("wanted", LARGEST, ids=str)
def test_float8_overflows_where_it_may_not_saturate(wanted):
    """Only E5M2 has infinities; the others become NaN."""
    y = _convert([np.inf, -np.inf, 1e9, -1e9], wanted, saturate=False)
    expected = [np.inf, -np.inf, np.inf, -np.inf] if wanted is DataType.FLOAT8E5M2 else [np.nan] * 4
    np.testing.assert_array_equal(y, expected)


def test_float8_rounds_to_even_before_it_judges_the_range():
    """464 lies halfway between 448 and 480 and rounds to 448, which E4M3FN still has."""
    np.testing.assert_array_equal(_convert([464, 465], DataType.FLOAT8E4M3FN, saturate=False), [448, np.nan])
    np.testing.assert_array_equal(_convert([17, 19, 1.0625, 1.1875], DataType.FLOAT8E4M3FN), [16, 20, 1, 1.25])


@pytest.mark.parametrize(("wanted", "negative"), [(DataType.FLOAT8E5M2, True), (DataType.FLOAT8E5M2FNUZ, False)])
def test_the_sign_of_zero(wanted, negative):
    """-0 stays -0 but in the types without it."""
    assert bool(np.signbit(_convert([-0.0], wanted)[0])) is negative


@pytest.mark.parametrize(("wanted", "largest"), [(DataType.FLOAT4E2M1, 6), (DataType.FLOAT6E2M3, 7.5), (DataType.FLOAT6E3M2, 28)])
def test_small_types_always_saturate(wanted, largest):
    """Types without infinity and NaN hold their largest number for all that exceeds it."""
    for saturate in (True, False):
        y = _convert([100, -np.inf, 1.5, 0.25], wanted, saturate)
        np.testing.assert_array_equal(y[:3], [largest, -largest, 1.5])
        assert abs(y[3]) <= 0.25


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_sources_of_other_types(dtype):
    """Other types of NumPy's own convert by value."""
    np.testing.assert_array_equal(_convert([1, -2, 3], DataType.FLOAT8E4M3FN, dtype=dtype), [1, -2, 3])
    np.testing.assert_array_equal(_convert([1, -2, 3], DataType.BFLOAT16, dtype=dtype), [1, -2, 3])


@pytest.mark.parametrize(
    ("round_mode", "expected"), [("up", [1, 2, 2, 2, 4, 4]), ("nearest", [1, 1, 2, 2, 2, 4]), ("down", [1, 1, 1, 1, 2, 2])]
)
def test_exponents_round_as_asked(round_mode, expected):
    """float8e8m0 holds powers of two: up takes the next, down the last, nearest breaks ties upwards."""
    np.testing.assert_array_equal(_convert([1, 1.25, 1.5, 1.75, 2.5, 3], DataType.FLOAT8E8M0, round_mode=round_mode), expected)


def test_exponents_saturate_or_do_not():
    """0 and infinity become the least and greatest power, or NaN."""
    values = [0, np.inf, np.nan, 3e38]
    np.testing.assert_array_equal(_convert(values, DataType.FLOAT8E8M0), [2.0**-127, 2.0**127, np.nan, 2.0**127])
    np.testing.assert_array_equal(_convert(values, DataType.FLOAT8E8M0, False, "nearest"), [np.nan] * 4)


def test_exponents_of_subnormal_numbers():
    """2^-127 and 2^-130 are subnormal in float32; the first has an exponent of its own."""
    np.testing.assert_array_equal(
        _convert([2.0**-127, 2.0**-130, 2.0**-126], DataType.FLOAT8E8M0), [2.0**-127, 2.0**-127, 2.0**-126]
    )


def test_an_unknown_rounding_is_refused():
    """The modes are named."""
    with pytest.raises(InvalidArgument, match="round_mode='even'"):
        _convert([1], DataType.FLOAT8E8M0, round_mode="even")
