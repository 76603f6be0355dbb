"""Facts about conversion between element types."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import DataType, is_float, is_integer
from sardonyx.errors import InvalidArgument

TYPES = [item for item in DataType if is_float(item) or is_integer(item) or item in (DataType.BOOL, DataType.STRING)]


@pytest.mark.parametrize(("source", "wanted"), list(itertools.product(TYPES, TYPES)), ids=str)
def test_one_is_one_in_every_type(source, wanted):
    """From every type to every type, 1 stays 1, in the type asked for."""
    x = np.array([["1"]], object) if source is DataType.STRING else np.ones((1, 1), np.float32).astype(source.numpy)
    y = run_op("Cast", x, to=int(wanted))
    assert (y.dtype, y.shape) == (wanted.numpy, (1, 1))
    assert float(y[0, 0]) == 1.0


def test_a_cast_to_the_same_type_copies_nothing():
    """The input itself comes back."""
    x = np.ones(3, np.float32)
    assert run_op("Cast", x, to=1) is x


def test_integers_keep_their_low_bits():
    """200 becomes -56 in int8, 17 becomes 1 in uint4, 9 becomes -7 in int4, 6 becomes -2 in int2."""
    assert run_op("Cast", np.array([200], np.int16), to=3).tolist() == [-56]
    for value, wanted, expected in [
        (17, DataType.UINT4, 1),
        (9, DataType.INT4, -7),
        (6, DataType.INT2, -2),
        (6, DataType.UINT2, 2),
    ]:
        assert int(run_op("Cast", np.array([value]), to=int(wanted))[0]) == expected


def test_floats_truncate_toward_zero():
    """2.9 is 2 and -2.9 is -2 among integers, in four bits as well."""
    x = np.array([2.9, -2.9], np.float32)
    for wanted in (DataType.INT8, DataType.INT64, DataType.INT4):
        assert run_op("Cast", x, to=int(wanted)).astype(np.int64).tolist() == [2, -2]


@pytest.mark.parametrize("wanted", [item for item in TYPES if is_integer(item)], ids=str)
def test_floats_out_of_range_do_not_warn(wanted):
    """What has no meaning among integers gives some integer in silence."""
    x = np.array([1e30, -1e30, np.nan, np.inf], np.float32)
    assert run_op("Cast", x, to=int(wanted)).dtype == wanted.numpy


def test_floats_out_of_range_of_floats_are_infinite():
    """1e30 is infinite in float16, 1e300 in float32 and bfloat16."""
    assert np.isinf(run_op("Cast", np.array([1e30], np.float32), to=10)[0])
    assert np.isinf(run_op("Cast", np.array([1e300]), to=1)[0])
    assert np.isinf(run_op("Cast", np.array([1e300]), to=16)[0])


def test_bool_is_whether_not_zero():
    """Small numbers and NaN are True, zeros of both signs False."""
    x = np.array([0.0, -0.0, 0.25, np.nan, -3], np.float32)
    assert run_op("Cast", x, to=9).tolist() == [False, False, True, True, True]


def test_strings_both_ways():
    """Numbers become plain text, text becomes numbers."""
    assert run_op("Cast", np.array([314.15926, 1e-5]), to=8).tolist() == ["314.15926", "0.00001"]
    np.testing.assert_array_equal(run_op("Cast", np.array(["1e-5", "-INF"], object), to=1), np.array([1e-5, -np.inf], np.float32))
    assert run_op("Cast", np.array(["300"], object), to=2).tolist() == [44]


def test_cast_1_names_its_type():
    """The attribute of opset 1 is a name."""
    assert run_op("Cast", np.array([1.5]), version=1, to="INT32").dtype == np.int32
    with pytest.raises(InvalidArgument, match="to='REAL'"):
        run_op("Cast", np.array([1.5]), version=1, to="REAL")


@pytest.mark.parametrize("to", [0, 99])
def test_unknown_types_are_refused(to):
    """Numbers that name no type of tensors are refused."""
    with pytest.raises(InvalidArgument, match=f"to={to}"):
        run_op("Cast", np.array([1.5]), to=to)


def test_cast_like_takes_the_type_of_its_second_input():
    """Saturation is passed on."""
    target = np.zeros(0, ml_dtypes.float8_e4m3fn)
    x = np.array([1e9], np.float32)
    assert float(run_op("CastLike", x, target)[0]) == 448
    assert np.isnan(float(run_op("CastLike", x, target, saturate=0)[0]))


def test_scalars_and_views():
    """0-d arrays stay 0-d; strided views are read in order."""
    assert run_op("Cast", np.array(2.5), to=7).shape == ()
    x = np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(run_op("Cast", x, to=6), x)


@pytest.mark.parametrize(
    ("x", "wanted", "expected"),
    [
        (np.array([1.0], np.float32), DataType.INT32, 0x3F800000),
        (np.array([-1], np.int64), DataType.UINT64, 2**64 - 1),
        (np.array([0x3C00], np.uint16), DataType.FLOAT16, 1.0),
        (np.array([0x3F80], np.uint16), DataType.BFLOAT16, 1.0),
        (np.array([True]), DataType.UINT8, 1),
        (np.array([3], np.uint8), DataType.BOOL, True),
        (np.array([-1]).astype(ml_dtypes.int4), DataType.UINT4, 15),
        (np.array([2]).astype(ml_dtypes.uint4), DataType.FLOAT4E2M1, 1.0),
    ],
)
def test_bit_cast_reads_the_same_bits(x, wanted, expected):
    """The bits of one type are read as another of the same width."""
    y = run_op("BitCast", x, to=int(wanted))
    assert y.dtype == wanted.numpy
    assert float(y[0]) == float(expected)


@pytest.mark.parametrize("wanted", [DataType.INT16, DataType.STRING])
def test_bit_cast_refuses_another_width(wanted):
    """The message names both types."""
    with pytest.raises(InvalidArgument, match=f"float.*{wanted}"):
        run_op("BitCast", np.ones(1, np.float32), to=int(wanted))
