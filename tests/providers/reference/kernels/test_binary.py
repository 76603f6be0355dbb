"""Facts about the operators of two and more tensors."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

ARITHMETIC = {"Add": 5, "Sub": 1, "Mul": 6, "Div": 1.5, "Max": 3, "Min": 2, "Sum": 5, "Mean": 2.5}
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_keeps_the_type(name, dtype):
    """3 and 2 under each operator, in each float type."""
    y = run_op(name, np.array([3]).astype(dtype), np.array([2]).astype(dtype))
    assert y.dtype == dtype
    assert float(y[0]) == ARITHMETIC[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Equal", [0, 1, 0]), ("Greater", [0, 0, 1]), ("GreaterOrEqual", [0, 1, 1]), ("Less", [1, 0, 0]), ("LessOrEqual", [1, 1, 0])],
)
@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.uint64])
def test_comparisons_give_bool(name, expected, dtype):
    """1, 2, 3 against 2."""
    y = run_op(name, np.array([1, 2, 3]).astype(dtype), np.array(2).astype(dtype))
    assert y.dtype == np.bool_
    np.testing.assert_array_equal(y, np.array(expected, bool))


def test_equal_compares_strings():
    """Equal-19 takes strings."""
    y = run_op("Equal", np.array(["a", "b"], object), np.array(["a", "a"], object))
    assert y.dtype == np.bool_
    np.testing.assert_array_equal(y, [True, False])


@pytest.mark.parametrize(("name", "expected"), [("And", [0, 0, 1]), ("Or", [0, 1, 1]), ("Xor", [0, 1, 0])])
def test_logic(name, expected):
    """The truth tables."""
    a, b = np.array([False, False, True]), np.array([False, True, True])
    np.testing.assert_array_equal(run_op(name, a, b), np.array(expected, bool))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integer_division_truncates_toward_zero(dtype):
    """-7 / 2 is -3, as in C; division by zero gives 0 in silence."""
    a, b = np.array([7, -7, 7, -7, 6, 5], dtype), np.array([2, 2, -2, -2, -3, 0], dtype)
    y = run_op("Div", a, b)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, [3, -3, -3, 3, -2, 0])


def test_unsigned_division():
    """Unsigned division rounds down."""
    np.testing.assert_array_equal(run_op("Div", np.array([7, 255], np.uint8), np.array([2, 4], np.uint8)), [3, 63])


def test_integer_sums_wrap():
    """200 + 100 is 44 in uint8, without warning."""
    np.testing.assert_array_equal(run_op("Add", np.array(200, np.uint8), np.array(100, np.uint8)), 44)


def test_mod_takes_the_sign_of_the_divisor_or_of_the_dividend():
    """fmod=0 follows Python's %, fmod=1 C's fmod."""
    a, b = np.array([-7, 7, -7]), np.array([3, -3, -3])
    np.testing.assert_array_equal(run_op("Mod", a, b), [2, -2, -1])
    np.testing.assert_array_equal(run_op("Mod", a, b, fmod=1), [-1, 1, -1])


def test_mod_of_floats_at_infinity_and_zero():
    """The special cases that ONNX Mod-28 lists."""
    a, b = np.array([1, -1, np.inf, 1, np.nan], np.float32), np.array([np.inf, np.inf, 1, 0, 1], np.float32)
    np.testing.assert_array_equal(run_op("Mod", a, b), [1, np.inf, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(run_op("Mod", a, b, fmod=1), [1, -1, np.nan, np.nan, np.nan])


def test_pow_broadcasts_and_keeps_the_type_of_the_base():
    """Pow-7 broadcasts; Pow-1 does so by attribute."""
    x = np.array([[1, 2], [3, 4]], np.float32)
    np.testing.assert_array_equal(run_op("Pow", x, np.array([1, 2], np.int64)), [[1, 4], [3, 16]])
    y = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run_op("Pow", x, y, version=1, broadcast=1, axis=0), [[1, 2], [9, 16]])


@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div", "Equal", "Greater", "Less", "And", "Or", "Xor"])
def test_old_operators_broadcast_by_attribute(name):
    """Before opset 7, broadcast=1 with axis=0 sets a vector along the rows; without it shapes must agree."""
    dtype = np.bool_ if name in ("And", "Or", "Xor") else np.float32
    a, b = np.ones((2, 3), dtype), np.array([1, 0], dtype)
    y = run_op(name, a, b, version=6, axis=0, broadcast=1)
    np.testing.assert_array_equal(y, run_op(name, a, b[:, None]))
    with pytest.raises(InvalidArgument, match="broadcast=1"):
        run_op(name, a, b, version=6)


@pytest.mark.parametrize(
    ("dtype", "direction", "expected"),
    [
        (np.uint8, "LEFT", [2, 0, 254, 0]),
        (np.uint8, "RIGHT", [0, 0, 127, 64]),
        (np.int8, "LEFT", [2, 0, -2, 0]),
        (np.int8, "RIGHT", [0, 0, -1, -64]),
    ],
)
def test_bit_shift(dtype, direction, expected):
    """Shifts by one place and by too many; signed right shifts copy the sign."""
    x = np.array([1, 1, 255, 128], np.uint8).astype(dtype)
    y = run_op("BitShift", x, np.array([1, 100, 1, 1], dtype), direction=direction)
    np.testing.assert_array_equal(y, expected)


def test_bit_shift_by_a_negative_number_leaves_the_sign():
    """Negative places: -1 for a right shift of a negative number, else 0 (ONNX BitShift-28)."""
    x, y = np.array([-5, 5], np.int32), np.array([-1, -1], np.int32)
    np.testing.assert_array_equal(run_op("BitShift", x, y, direction="RIGHT"), [-1, 0])
    np.testing.assert_array_equal(run_op("BitShift", x, y, direction="LEFT"), [0, 0])


def test_bit_shift_refuses_another_direction():
    """Directions are LEFT and RIGHT."""
    with pytest.raises(InvalidArgument, match="direction='UP'"):
        run_op("BitShift", np.ones(1, np.uint8), np.ones(1, np.uint8), direction="UP")


def test_bitwise_operators():
    """6 and 3, bit by bit."""
    for name, expected in {"BitwiseAnd": 2, "BitwiseOr": 7, "BitwiseXor": 5}.items():
        assert int(run_op(name, np.array([6]), np.array([3]))[0]) == expected


@pytest.mark.parametrize("name", ["Max", "Min"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_wins_in_max_and_min(name, dtype):
    """NaN in any input is NaN in the result."""
    a, b = np.array([np.nan, 1]).astype(dtype), np.array([1, np.nan]).astype(dtype)
    assert np.isnan(run_op(name, a, b)).all()


@pytest.mark.parametrize("name", ["Max", "Min", "Sum", "Mean"])
def test_one_input_is_the_result(name):
    """The variadic operators take a single input."""
    np.testing.assert_array_equal(run_op(name, np.array([1.0, 2.0])), [1, 2])


def test_sum_of_narrow_floats_rounds_once():
    """1 + 2^-11 + 2^-11 is 1 + 2^-10 in float16 only where no partial sum is rounded."""
    parts = [np.array([value], np.float16) for value in (1, 2**-11, 2**-11)]
    assert float(run_op("Sum", *parts)[0]) == 1 + 2**-10


def test_variadic_operators_broadcast():
    """Three shapes meet."""
    y = run_op("Sum", np.ones((2, 1)), np.ones(3), np.ones(()))
    np.testing.assert_array_equal(y, np.full((2, 3), 3))


@pytest.mark.parametrize("dtype", [*FLOATS, np.bool_, np.int8, np.complex64, object])
def test_where_takes_any_type(dtype):
    """Where chooses among elements of any type and broadcasts three ways."""
    x, y = np.array([1, 1]).astype(dtype), np.array([[0], [0]]).astype(dtype)
    z = run_op("Where", np.array([True, False]), x, y)
    assert z.dtype == dtype
    np.testing.assert_array_equal(z, np.array([[1, 0], [1, 0]]).astype(dtype))


def test_where_names_shapes_that_do_not_meet():
    """The three shapes are named."""
    with pytest.raises(InvalidArgument, match=r"\(2,\), \(3,\) and \(3,\)"):
        run_op("Where", np.array([True, False]), np.ones(3), np.ones(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.float64, np.complex64, object])
def test_where_of_many_elements_takes_them_by_bits(dtype):
    """100 x 100, a row against a matrix on either side, and transposed: as np.where."""
    generator = np.random.default_rng(0)
    condition = generator.random((100, 100)) > 0.5
    x, row = ((generator.random(shape) * 100).astype(dtype) for shape in ((100, 100), (100,)))
    for one, other in ((x, row), (row, x), (x.T, x)):
        np.testing.assert_array_equal(run_op("Where", condition, one, other), np.where(condition, one, other))


@pytest.mark.parametrize(
    ("left", "right"), [((50_000,), (50_000,)), ((3, 20_000), (1,)), ((40_000, 1), (1, 2)), ((0, 5), (5,)), ((), ())]
)
def test_texts_are_compared_some_at_a_time(left, right):
    """In any shape; the result is that of comparing each."""
    a, b = (np.resize(np.array(list("abcde")[:count], object), shape) for count, shape in ((5, left), (3, right)))
    equal = run_op("Equal", a, b)
    assert equal.dtype == np.bool_
    np.testing.assert_array_equal(equal, np.equal(a.astype("U1"), b.astype("U1")))
