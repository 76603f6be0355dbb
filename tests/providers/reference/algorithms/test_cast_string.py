"""Facts about numbers as strings."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.cast_string import parse_strings, print_numbers


def _strings(*texts):
    return np.array(texts, object)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.47892547, np.float32, "0.47892547"),
        (0.1, np.float32, "0.1"),
        (0.1, np.float64, "0.1"),
        (1 / 3, np.float64, "0.3333333333333333"),
        (0.1, np.float16, "0.1"),
        (1.0, np.float32, "1"),
        (-0.0, np.float32, "-0"),
        (1e20, np.float32, "100000000000000000000"),
        (1e-7, np.float64, "0.0000001"),
        (np.inf, np.float32, "INF"),
        (-np.inf, np.float32, "-INF"),
        (np.nan, np.float32, "NaN"),
        (True, np.bool_, "1"),
        (-3, np.int64, "-3"),
        (2**64 - 1, np.uint64, "18446744073709551615"),
    ],
)
def test_numbers_print_plainly(value, dtype, text):
    """The fewest digits that keep the value, without exponent."""
    x = np.array([value], dtype)
    assert print_numbers(x, x.dtype).tolist() == [text]


def test_floats_that_numpy_lacks_print_like_float32():
    """The value of a bfloat16 is exact in float32."""
    x = np.array([3.140625], np.float32)
    assert print_numbers(x, np.dtype(ml_dtypes.bfloat16)).tolist() == ["3.140625"]


def test_shapes_are_kept():
    """Strings and numbers have one shape, also without elements."""
    assert print_numbers(np.zeros((2, 0)), np.dtype(np.float64)).shape == (2, 0)
    assert print_numbers(np.array(1.5), np.dtype(np.float64)).shape == ()
    assert parse_strings(_strings("1", "2").reshape(2, 1), DataType.INT32).shape == (2, 1)


@pytest.mark.parametrize("text", ["INF", "inf", "+inf", "+INF", "Inf"])
def test_infinity_in_any_case(text):
    """The literals for infinity do not depend on case."""
    assert parse_strings(_strings(text), DataType.FLOAT).tolist() == [np.inf]


def test_floats_in_plain_and_scientific_notation():
    """Both notations, signs and NaN."""
    y = parse_strings(_strings("3.14", "1E8", "-1e-5", "nan"), DataType.FLOAT)
    np.testing.assert_array_equal(y, [3.14, 1e8, -1e-5, np.nan])


@pytest.mark.parametrize(
    ("text", "wanted", "number"),
    [
        ("42", DataType.INT64, 42),
        ("100.5", DataType.INT32, 100),
        ("9007199254740993", DataType.INT64, 9007199254740993),
        ("18446744073709551615", DataType.UINT64, 2**64 - 1),
        ("-1", DataType.INT8, -1),
        ("0", DataType.BOOL, False),
        ("2", DataType.BOOL, True),
    ],
)
def test_integers(text, wanted, number):
    """Integers are exact to 64 bits, fractions are cut off."""
    assert parse_strings(_strings(text), wanted).tolist() == [number]


@pytest.mark.parametrize(
    ("text", "wanted"), [("Hello", DataType.FLOAT), ("Hello", DataType.INT32), ("INF", DataType.INT32), ("", DataType.FLOAT)]
)
def test_other_texts_are_refused(text, wanted):
    """What is no number is named."""
    with pytest.raises(InvalidArgument, match=f"cannot cast '{text}'"):
        parse_strings(_strings(text), wanted)
