"""Facts about the grids that numbers are rounded to."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.quantization.grids import (
    Grid,
    compute_scale_zp,
    compute_scale_zp_float8,
    grid_of_range,
    grid_of_spread,
    grid_of_weights,
)


@pytest.mark.parametrize(
    ("low", "high", "codes", "symmetric", "zero", "scale"),
    [
        (-1.0, 3.0, (0, 255), False, 64, 4 / 255),
        (1.0, 3.0, (0, 255), False, 0, 3 / 255),
        (-3.0, -1.0, (-128, 127), False, 127, 3 / 255),
        (-1.0, 3.0, (-127, 127), True, 0, 3 / 127),
        (0.0, 0.0, (-128, 127), False, 0, 1.0),
    ],
)
def test_the_codes_cover_the_range_and_0(
    low: float, high: float, codes: tuple[int, int], symmetric: bool, zero: int, scale: float
) -> None:
    """The zero point is a code, and a range of nothing has steps of 1."""
    found = compute_scale_zp(np.float32(low), np.float32(high), *codes, symmetric)
    assert found[0] == zero
    np.testing.assert_allclose(found[1], scale, rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_range_that_is_not_finite_is_refused(bad: float) -> None:
    """NaN and infinity."""
    with pytest.raises(ValueError, match="not finite"):
        compute_scale_zp(0.0, bad, 0, 255)


def test_codes_enclose_0() -> None:
    """Others are refused."""
    with pytest.raises(ValueError, match="do not enclose 0"):
        compute_scale_zp(0.0, 1.0, 1, 255)


def test_a_least_range_widens_a_narrow_one() -> None:
    """Its upper end moves."""
    zero, scale = compute_scale_zp(np.float32(0), np.float32(1e-9), 0, 255, False, 0.255)
    assert zero == 0
    np.testing.assert_allclose(scale, 0.001, rtol=1e-6)


def test_rounding_is_to_even_and_saturates() -> None:
    """As QuantizeLinear."""
    grid = Grid(DataType.INT8, np.float32(2), np.int8(1))
    np.testing.assert_array_equal(grid.quantize(np.float32([1, 3, -5, 1000, -1000])), np.int8([1, 3, -1, 127, -128]))
    np.testing.assert_array_equal(grid.dequantize(np.int8([1, 3])), np.float32([0, 4]))


def test_an_axis_has_a_scale_for_each_index() -> None:
    """A row of zeros has steps of 1."""
    array = np.float32([[1, -2], [0, 0], [100, 50]])
    grid = grid_of_weights(array, DataType.INT8, axis=0)
    np.testing.assert_allclose(grid.scale, [2 / 127, 1, 100 / 127], rtol=1e-6)
    np.testing.assert_allclose(grid.dequantize(grid.quantize(array)), array, atol=0.5)


def test_an_empty_constant_has_a_grid() -> None:
    """Of steps of 1."""
    assert grid_of_weights(np.zeros((0, 3), np.float32), DataType.UINT8, symmetric=False).scale == 1


def test_ranges_of_half_precision_have_scales_of_that_type() -> None:
    """As DequantizeLinear gives the type of its scale."""
    assert grid_of_range(DataType.UINT8, np.float16(0), np.float16(2)).scale.dtype == np.float16


def test_a_scale_of_half_precision_may_be_subnormal() -> None:
    """It is flat only where float16 rounds the step to 0; float32 stops at its least normal number."""
    zero, scale = compute_scale_zp(np.float16(0), np.float16(2), -32768, 32767)
    assert (int(zero), float(scale)) == (-32768, float(np.float16(2 / 65535)))
    assert [float(part) for part in compute_scale_zp(np.float16(0), np.float16(1e-6), 0, 255)] == [0, 1]
    assert [float(part) for part in compute_scale_zp(np.float32(0), np.float32(1e-40), 0, 255)] == [0, 1]


def test_float8_rounds_to_the_nearest_number_and_saturates() -> None:
    """Ties go to even, and a code stands for itself times the scale."""
    grid = Grid(DataType.FLOAT8E4M3FN, np.float32(2), np.zeros((), DataType.FLOAT8E4M3FN.numpy))
    codes = grid.quantize(np.float32([34, 38, 2e4, -np.inf, 0.001953125]))
    np.testing.assert_array_equal(codes.astype(np.float32), np.float32([16, 20, 448, -448, 0]))
    np.testing.assert_array_equal(grid.dequantize(codes), np.float32([32, 40, 896, -896, 0]))


def test_the_scale_of_float8_is_the_ratio_of_standard_deviations() -> None:
    """That of its 254 finite numbers is about 100; numbers that are all equal have steps of 1."""
    numbers = [float(x) for x in np.arange(256, dtype=np.uint8).view(DataType.FLOAT8E4M3FN.numpy).astype(np.float64) if x == x]
    np.testing.assert_allclose(grid_of_spread(np.float32(3)).scale, 3 / np.std(numbers), rtol=1e-6)
    assert grid_of_spread(np.float32(0)).scale == 1


def test_weights_in_float8_may_have_a_scale_for_each_channel() -> None:
    """Which follows from the channel's own numbers."""
    array = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32) * np.float32([[1], [10], [100]])
    grid = grid_of_weights(array, DataType.FLOAT8E4M3FN, axis=0)
    alone = [grid_of_weights(row, DataType.FLOAT8E4M3FN).scale for row in array]
    np.testing.assert_allclose(grid.scale, alone, rtol=1e-6)
    assert np.abs(grid.dequantize(grid.quantize(array)) / array - 1).max() < 2**-4 + 1e-6


def test_other_types_and_numbers_that_are_not_finite_have_no_scale_of_float8() -> None:
    """Both are told."""
    with pytest.raises(InvalidArgument, match="FLOAT8E4M3FN"):
        compute_scale_zp_float8(int(DataType.FLOAT8E5M2), 1.0)
    with pytest.raises(ValueError, match="not finite"):
        grid_of_spread(np.float32(np.nan))
