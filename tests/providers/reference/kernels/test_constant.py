"""Facts about operators that make tensors."""

import ml_dtypes
import numpy as np
import pytest
from support.cancelling import checks_of
from support.run_op import run_op

from sardonyx.errors import InvalidArgument


@pytest.mark.parametrize(
    ("attributes", "dtype", "expected"),
    [
        ({"value_float": 0.5}, np.float32, 0.5),
        ({"value_floats": (0.5, 1.5)}, np.float32, [0.5, 1.5]),
        ({"value_int": 3}, np.int64, 3),
        ({"value_ints": (3, 4)}, np.int64, [3, 4]),
        ({"value_ints": ()}, np.int64, []),
        ({"value_string": "a"}, object, "a"),
        ({"value_strings": ("a", "bc")}, object, ["a", "bc"]),
        ({"value": np.array([1, 2], np.int8)}, np.int8, [1, 2]),
        ({"sparse_value": np.array([0, 2.0])}, np.float64, [0, 2]),
    ],
)
def test_constant_of_each_attribute(attributes, dtype, expected):
    """Numbers and strings become 0-d and 1-D arrays, tensors stay."""
    y = run_op("Constant", **attributes)
    assert isinstance(y, np.ndarray)
    assert y.dtype == dtype
    assert y.tolist() == expected


@pytest.mark.parametrize("attributes", [{}, {"value_int": 1, "value_float": 1.0}])
def test_constant_takes_exactly_one_attribute(attributes):
    """None and two are refused."""
    with pytest.raises(InvalidArgument, match="expected exactly one"):
        run_op("Constant", **attributes)


def test_constant_of_shape_is_float_zero_by_default():
    """Without a value the tensor holds float32 zeros."""
    y = run_op("ConstantOfShape", np.array([2, 3]))
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, np.zeros((2, 3)))


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e8m0fnu])
def test_constant_of_shape_has_the_type_of_its_value(dtype):
    """The value gives the type and every element."""
    y = run_op("ConstantOfShape", np.array([2]), value=np.array([1]).astype(dtype))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.float32), [1, 1])


def test_constant_of_an_empty_shape_is_a_scalar():
    """A shape without entries makes a scalar, a size of 0 an empty tensor."""
    assert run_op("ConstantOfShape", np.zeros(0, np.int64)).shape == ()
    assert run_op("ConstantOfShape", np.array([0, 4])).shape == (0, 4)


@pytest.mark.parametrize("shape", [[-1], [1 << 40, 1 << 20]])
def test_constant_of_shape_refuses_impossible_shapes(shape):
    """A negative size and a tensor that no machine holds are refused before anything is allocated."""
    with pytest.raises(InvalidArgument):
        run_op("ConstantOfShape", np.array(shape))


def test_eye_like_takes_shape_and_type_of_its_input():
    """Ones stand on diagonal k; dtype overrides the type."""
    x = np.zeros((2, 3), np.int32)
    y = run_op("EyeLike", x, k=1)
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, [[0, 1, 0], [0, 0, 1]])
    assert run_op("EyeLike", x, dtype=16).dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(run_op("EyeLike", x, k=-(1 << 62)), np.zeros((2, 3)))


def test_eye_like_wants_a_matrix():
    """Another rank is refused."""
    with pytest.raises(InvalidArgument, match="expected a matrix"):
        run_op("EyeLike", np.zeros(3))


@pytest.mark.parametrize("x", [np.ones(2), [np.ones(2)], None, {"a": 1.0}])
def test_identity_returns_what_it_gets(x):
    """Tensors, sequences, maps and empty optionals pass."""
    assert run_op("Identity", x) is x


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_range_of_each_type(dtype):
    """From 10 down to, not including, 4 by -2."""
    y = run_op("Range", *(np.array(value).astype(dtype) for value in (10, 4, -2)))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.float64), [10, 8, 6])


def test_range_counts_as_the_standard_does():
    """max(0, ceil((limit - start) / delta)) elements, start + i delta each."""
    y = run_op("Range", np.float32(1), np.float32(2), np.float32(0.3))
    np.testing.assert_allclose(y, [1, 1.3, 1.6, 1.9], rtol=1e-6)
    assert run_op("Range", np.array(3), np.array(3), np.array(1)).shape == (0,)
    assert run_op("Range", np.array(3), np.array(9), np.array(-1)).shape == (0,)


def test_a_long_range_of_float16_is_exact():
    """Elements of a narrow range come from float32, not from repeated additions."""
    y = run_op("Range", np.float16(0), np.float16(4000), np.float16(1))
    np.testing.assert_array_equal(y.astype(np.float64), np.arange(4000).astype(np.float16).astype(np.float64))


@pytest.mark.parametrize("bounds", [(0, 5, 0), (0, 1 << 62, 1)])
def test_range_refuses_endless_ones(bounds):
    """A delta of 0 and an impossible length are refused."""
    with pytest.raises(InvalidArgument):
        run_op("Range", *(np.array(value) for value in bounds))


def test_range_refuses_infinite_bounds():
    """A range to infinity has no length."""
    with pytest.raises(InvalidArgument, match="no finite length"):
        run_op("Range", np.float32(0), np.float32(np.inf), np.float32(1))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [2, 3, 4]),
        ({"start": -1}, [4]),
        ({"end": -1}, [2, 3]),
        ({"start": 1, "end": 2}, [3]),
        ({"start": -9, "end": 9}, [2, 3, 4]),
        ({"start": 2, "end": 1}, []),
    ],
)
def test_shape_takes_a_slice(attributes, expected):
    """Both ends clamp as in a slice."""
    y = run_op("Shape", np.zeros((2, 3, 4)), **attributes)
    assert y.dtype == np.int64
    assert y.tolist() == expected


def test_size_counts_elements():
    """Size is a 0-d int64."""
    y = run_op("Size", np.zeros((2, 0, 4)))
    assert (y.dtype, y.shape, int(y)) == (np.int64, (), 0)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float16])
def test_a_long_range_is_made_in_parts(dtype):
    """Each goes on where the one before ended, and they ask whether the run is to end."""
    bounds = (
        [np.array(value, dtype) for value in (3, 60_000, 0.02)] if dtype != np.int64 else [np.array(v) for v in (3, -3_000_000, -1)]
    )
    found = run_op("Range", *bounds)
    first, _, step = (bound.item() for bound in bounds)
    wide = np.float32 if dtype == np.float16 else dtype
    np.testing.assert_array_equal(found, (np.arange(len(found)).astype(wide) * wide(step) + wide(first)).astype(dtype))
    assert len(found) > 2_900_000
    assert checks_of(lambda: run_op("Range", *bounds)) >= 3
