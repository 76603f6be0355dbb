"""Facts about QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument

ROW = np.array([[-1, 0.5, 1.5, 300]], np.float32)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


@pytest.mark.parametrize("version", [10, 13, 19, 21, 23, 25, 28])
def test_quantize_rounds_to_even_and_saturates(version):
    """To uint8 by default, in every version."""
    y = run_op("QuantizeLinear", ROW, scalar(1), version=version)
    assert (y.dtype, y.tolist()) == (np.uint8, [[0, 0, 2, 255]])


@pytest.mark.parametrize(
    "dtype",
    [
        np.int8,
        np.uint16,
        np.int16,
        ml_dtypes.int4,
        ml_dtypes.uint4,
        ml_dtypes.int2,
        ml_dtypes.uint2,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float4_e2m1fn,
        ml_dtypes.float6_e2m3fn,
        ml_dtypes.float6_e3m2fn,
    ],
)
def test_quantize_and_back_for_every_type(dtype):
    """Small whole numbers survive the way to each type, named by the zero point or by output_dtype, and back."""
    x = np.array([[0, 2, 2, 0]], np.float32)
    y = run_op("QuantizeLinear", x, scalar(2), scalar(0, dtype))
    assert y.dtype == dtype
    assert run_op("DequantizeLinear", y, scalar(2), scalar(0, dtype)).tolist() == x.tolist()
    named = run_op("QuantizeLinear", x, scalar(2), output_dtype=int(DataType.from_numpy(dtype)))
    assert (named.dtype, named.tobytes()) == (y.dtype, y.tobytes())


def test_quantize_per_axis():
    """One scale and zero point per index of the axis, 1 by default."""
    x = np.array([[[1, 2], [30, 40]]], np.float32)
    y = run_op("QuantizeLinear", x, np.array([1, 10], np.float32), np.array([0, 5], np.uint8))
    assert y.tolist() == [[[1, 2], [8, 9]]]
    last = run_op("QuantizeLinear", x, np.array([1, 10], np.float32), axis=-1)
    assert last.tolist() == [[[1, 0], [30, 4]]]


def test_quantize_by_blocks():
    """A scale serves block_size neighbours along the axis; the last block may be short."""
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    scales = np.array([[1, 2, 4], [1, 0.5, 1]], np.float32)
    y = run_op("QuantizeLinear", x, scales, axis=1, block_size=2, output_dtype=int(DataType.INT8))
    assert y.tolist() == [[0, 1, 1, 2, 1], [5, 6, 14, 16, 9]]
    back = run_op("DequantizeLinear", y, scales, axis=1, block_size=2)
    assert back.tolist() == [[0, 1, 2, 4, 4], [5, 6, 7, 8, 9]]


def test_quantize_of_large_tensors_is_the_same_in_every_block():
    """Many blocks give what one gives."""
    x = np.random.default_rng(0).standard_normal((3, 50_000), dtype=np.float32)
    y = run_op("QuantizeLinear", x.T, scalar(0.02), scalar(-3, np.int8))
    assert np.array_equal(y, np.clip(np.rint(x.T / np.float32(0.02)) - 3, -128, 127))


def test_quotients_have_the_precision_of_the_scale():
    """2.5005 rounds to 2.5 in float16, hence to 2; in float32 it is above the tie, hence 3."""
    x = scalar(2.5005).reshape(1)
    assert run_op("QuantizeLinear", x, scalar(1)).tolist() == [3]
    assert run_op("QuantizeLinear", x, scalar(1, np.float16)).tolist() == [2]
    assert run_op("QuantizeLinear", x, scalar(1), precision=int(DataType.FLOAT16)).tolist() == [2]


def test_quantize_takes_integers_and_powers_of_two():
    """int32 input, and scales of float8e8m0."""
    assert run_op("QuantizeLinear", np.array([40], np.int32), scalar(4)).tolist() == [10]
    assert run_op("QuantizeLinear", np.array([40], np.float32), scalar(4, ml_dtypes.float8_e8m0fnu)).tolist() == [10]


def test_dequantize_has_the_type_of_the_scale_or_output_dtype():
    """Both half types and float32."""
    x = np.array([3, 200], np.uint8)
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32):
        assert run_op("DequantizeLinear", x, scalar(0.5, dtype)).dtype == dtype
    y = run_op("DequantizeLinear", x, scalar(0.5), scalar(1, np.uint8), output_dtype=int(DataType.FLOAT16))
    assert (y.dtype, y.tolist()) == (np.float16, [1, 99.5])


def test_dequantize_of_int32_is_exact_before_the_product():
    """int32 differences are taken as integers."""
    y = run_op("DequantizeLinear", np.array([2**24 + 1], np.int32), scalar(1), scalar(2**24, np.int32))
    assert y.tolist() == [1]


def test_dynamic_quantize_covers_the_range_and_zero():
    """The scale is the range, extended to 0, over 255."""
    y, scale, zero_point = run_op("DynamicQuantizeLinear", np.array([[0, 2, -3]], np.float32), outputs=3)
    assert (y.dtype, scale.shape, zero_point.dtype) == (np.uint8, (), np.uint8)
    assert (y.tolist(), int(zero_point)) == ([[153, 255, 0]], 153)
    assert float(scale) == pytest.approx(5 / 255)


@pytest.mark.parametrize("x", [np.zeros((2, 2), np.float32), np.zeros((0,), np.float32)])
def test_dynamic_quantize_of_nothing_has_scale_one(x):
    """A tensor of zeros, or without elements, has no range."""
    y, scale, zero_point = run_op("DynamicQuantizeLinear", x, outputs=3)
    assert (y.shape, float(scale), int(zero_point)) == (x.shape, 1, 0)


@pytest.mark.parametrize(
    ("scale", "zero_point", "attributes", "message"),
    [
        (np.ones(3, np.float32), None, {}, "y_scale has shape"),
        (np.ones(4, np.float32), np.zeros(3, np.uint8), {}, "y_zero_point has shape"),
        (np.ones((1, 3), np.float32), None, {"block_size": 2}, "blocks of 2"),
        (np.ones((1, 2), np.float32), None, {"block_size": -2}, "positive"),
        (np.ones(4, np.float32), None, {"axis": 2}, "axis"),
        (scalar(1), scalar(0, np.uint8), {"output_dtype": 3}, "output_dtype is int8"),
        (scalar(1), None, {"output_dtype": 99}, "output_dtype = 99"),
    ],
)
def test_quantize_refuses_what_does_not_fit(scale, zero_point, attributes, message):
    """Scales, zero points and types that disagree raise InvalidArgument."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("QuantizeLinear", ROW, scale, zero_point, **attributes)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_dynamic_quantize_computes_in_float32(dtype):
    """Types that the standard does not list are quantized as their float32 numbers are."""
    x = np.array([-1.5, 0.25, 3.0], dtype)
    found, expected = (run_op("DynamicQuantizeLinear", given, outputs=3) for given in (x, x.astype(np.float32)))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("numbers", [[-1, 0.3, 2.7, 1e-3], [0, 0, 6e-8, 2e-7], [0, 0, 0, 0], [-65504, 65504, 1, 0]])
def test_dynamic_scales_may_be_narrow(numbers):
    """A scale that float16 rounds still gives each number to a step of it, and is never 0."""
    x, kinds = np.array(numbers, np.float16), (DataType.UINT8, DataType.FLOAT16, DataType.UINT8)
    y, scale, zero = run_op("DynamicQuantizeLinear", x, outputs=3, output_types=kinds)
    assert (scale.dtype, scale > 0) == (np.float16, True)
    np.testing.assert_allclose((y.astype(float) - zero) * float(scale), x.astype(float), atol=float(scale))
