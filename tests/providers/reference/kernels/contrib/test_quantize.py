"""QuantizeLinear, DequantizeLinear, GatherBlockQuantized and GatherPacked of com.microsoft."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.errors import NotImplemented as NotSupported


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **options)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, ml_dtypes.int4, ml_dtypes.uint4])
def test_QuantizeLinear_knows_integers_of_16_and_4_bits(dtype: Any) -> None:
    """Numbers saturate at the ends of the type; DequantizeLinear takes them back."""
    x = np.array([-1e9, 0.0, 0.5, 1.5, 1e9], np.float32)
    scale, zero = np.array(0.5, np.float32), np.array(1, dtype)
    y = run("QuantizeLinear", x, scale, zero)
    limits = ml_dtypes.iinfo(dtype)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.int64), [limits.min, 1, 2, 4, limits.max])
    np.testing.assert_array_equal(run("DequantizeLinear", y, scale, zero)[1:4], x[1:4])


def test_scales_go_along_an_axis() -> None:
    """A scale per index of `axis` divides and multiplies its slices."""
    x = np.array([[2.0, 4.0], [8.0, 16.0]], np.float32)
    scale, zero = np.array([1.0, 4.0], np.float32), np.array([0, 10], np.int16)
    y = run("QuantizeLinear", x, scale, zero, axis=0)
    np.testing.assert_array_equal(y, np.array([[2, 4], [12, 14]], np.int16))
    np.testing.assert_array_equal(run("DequantizeLinear", y, scale, zero, axis=0), x)


def test_without_a_zero_point_the_result_is_uint8() -> None:
    """The zero point is then 0."""
    assert run("QuantizeLinear", np.ones(2, np.float32), np.array(1.0, np.float32)).dtype == np.uint8


ROWS, D, BLOCK = 5, 32, 16


def table(bits: int) -> tuple[Array, Array, Array]:
    generator = np.random.default_rng(0)
    packed = generator.integers(0, 256, (ROWS, D * bits // 8)).astype(np.uint8)
    numbers = ((packed[..., None] >> np.arange(0, 8, bits)) & ((1 << bits) - 1)).reshape(ROWS, D).astype(np.float64)
    return packed, numbers, generator.random((ROWS, D // BLOCK)).astype(np.float32)


INDICES = np.array([[4, 0], [-1, 2]])


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("has_zero_points", [False, True])
def test_GatherBlockQuantized_unpacks_the_rows_that_it_gathers(bits: int, has_zero_points: bool) -> None:
    """Zero points are packed like the data; without them it is half the range. Negative indices count from the end."""
    packed, numbers, scales = table(bits)
    stored = np.arange(ROWS, dtype=np.uint8)[:, None] * 17 if has_zero_points else None
    if stored is not None and bits == 8:
        stored = stored.repeat(2, axis=1)
    points = np.full((ROWS, 2), 1 << (bits - 1))
    if stored is not None:
        points = ((stored[..., None] >> np.arange(0, 8, bits)) & ((1 << bits) - 1)).reshape(ROWS, -1)[:, :2]
    whole = (numbers - points.repeat(BLOCK, axis=1)) * scales.repeat(BLOCK, axis=1)
    y = run("GatherBlockQuantized", packed, INDICES, scales, stored, bits=bits, block_size=BLOCK)
    np.testing.assert_allclose(y, whole[INDICES], rtol=1e-6)


@pytest.mark.parametrize("gather_axis", [0, 1])
@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_GatherBlockQuantized_takes_four_bit_types_along_any_axis(gather_axis: int, dtype: Any) -> None:
    """The gathered axis may be the quantized one; the zero point is then 0 by default."""
    data = np.arange(ROWS * D).reshape(ROWS, D).astype(np.int8) % 7
    scales = np.arange(1, ROWS * 2 + 1, dtype=np.float32).reshape(ROWS, 2)
    y = run("GatherBlockQuantized", data.astype(dtype), INDICES, scales, block_size=BLOCK, gather_axis=gather_axis)
    whole = data * scales.repeat(BLOCK, axis=1)
    np.testing.assert_array_equal(y, np.take(whole, INDICES, axis=gather_axis))


def test_GatherBlockQuantized_repeats_the_only_row_of_a_table() -> None:
    """For each index."""
    data, scales = np.arange(-8, 8).reshape(1, 16), np.full((1, 1), 0.5, np.float32)
    y = run("GatherBlockQuantized", data.astype(ml_dtypes.int4), np.array([0, -1, 0]), scales, block_size=16)
    np.testing.assert_array_equal(y, np.repeat(data * np.float32(0.5), 3, axis=0))


def test_GatherBlockQuantized_takes_narrow_floats_with_one_scale_for_all() -> None:
    """block_size 0 makes a row one block; a scale of size 1 stands for every row."""
    data = np.linspace(-2, 2, ROWS * D).reshape(ROWS, D).astype(ml_dtypes.float8_e4m3fn)
    y = run("GatherBlockQuantized", data, INDICES, np.array([[2.0]], np.float16), block_size=0)
    assert y.dtype == np.float16
    np.testing.assert_array_equal(y, (data.astype(np.float32) * 2)[INDICES].astype(np.float16))


def test_GatherBlockQuantized_gives_zeros_for_an_index_out_of_range() -> None:
    """Unlike Gather, it is no error."""
    packed, _, scales = table(8)
    y = run("GatherBlockQuantized", packed, np.array([ROWS, -ROWS - 1, 0]), scales, bits=8, block_size=BLOCK)
    assert not y[:2].any()
    assert y[2].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 3}, "bits is 3"),
        ({"block_size": 8}, "block_size 8"),
        ({"block_size": 32}, r"makes them \(5, 1\)"),
        ({"gather_axis": 1}, "gathered along axis 1"),
        ({"quantize_axis": 2}, "quantize|axis"),
    ],
)
def test_GatherBlockQuantized_names_bad_attributes(change: dict[str, Any], message: str) -> None:
    """The message holds what was found and what the data ask for."""
    packed, _, scales = table(4)
    with pytest.raises(InvalidArgument, match=message):
        run("GatherBlockQuantized", packed, INDICES, scales, **({"bits": 4, "block_size": BLOCK} | change))


SIGNED_BYTES = 8
"""ggml's Q8_0: a scale of float16, then 32 numbers of 8 bits."""


def ggml_rows(count: int) -> tuple[Array, Array]:
    """Rows of 32 weights in blocks of signed bytes, and the weights."""
    numbers = np.random.default_rng(0).integers(-128, 128, (count, 32)).astype(np.int8)
    scales = np.linspace(-1, 2, count).astype(np.float16)[:, None]
    rows = np.concatenate([scales.view(np.uint8), numbers.view(np.uint8)], axis=1)
    return rows, numbers.astype(np.float32) * scales.astype(np.float32)


@pytest.mark.parametrize(("number", "dtype"), [(1, np.float32), (10, np.float16), (16, ml_dtypes.bfloat16)])
def test_GatherPacked_unpacks_rows_to_the_type_that_is_asked(number: int, dtype: Any) -> None:
    """Indices of any shape give rows of K weights; one that is no row of the table takes the first."""
    rows, weights = ggml_rows(ROWS)
    y = run("GatherPacked", rows, np.array([[4, -1], [ROWS, 2]]), packed_type=SIGNED_BYTES, K=32, output_dtype=number)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, weights[[[4, 0], [0, 2]]].astype(dtype))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": 48}, "K is 48; a row of Q8_0 has a multiple of 32 weights"),
        ({"K": 64}, "rows of 64 weights in format 8 have 68 bytes"),
        ({"output_dtype": 7}, "output_dtype is 7; expected 1"),
    ],
)
def test_GatherPacked_names_bad_attributes(change: dict[str, Any], message: str) -> None:
    """Attributes that fit no block, no row or no type are errors that say what is expected."""
    rows, _ = ggml_rows(ROWS)
    with pytest.raises(InvalidArgument, match=message):
        run("GatherPacked", rows, INDICES, **({"packed_type": SIGNED_BYTES, "K": 32} | change))


def test_GatherPacked_names_the_formats_that_it_knows() -> None:
    """A number of a format that is not known is an error that lists them."""
    with pytest.raises(NotSupported, match=r"packed_type is 3; known are 0 \(F32\), 1 \(F16\), 2 \(Q4_0\)"):
        run("GatherPacked", ggml_rows(1)[0], INDICES, packed_type=3, K=32)
