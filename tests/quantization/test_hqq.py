"""Zero points by half-quadratic quantization."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.quantization.hqq import quantize_blocks


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_error_is_no_larger_than_that_of_rounding_to_nearest(bits: int) -> None:
    """Between the extremes of each block."""
    blocks = np.random.default_rng(0).standard_t(3, (50, 4, 32)).astype(np.float32)
    codes, scales, zeros = quantize_blocks(blocks, bits)
    top = (1 << bits) - 1
    low, high = blocks.min(-1, keepdims=True), blocks.max(-1, keepdims=True)
    step = (high - low) / top
    rounded = np.rint((blocks - low) / step) * step + low
    assert codes.max() <= top
    assert np.abs((codes - zeros) * scales - blocks).mean() <= np.abs(rounded - blocks).mean()


@pytest.mark.parametrize("value", [0.0, 5.0, -3.0, 1e-38])
def test_a_block_of_one_value_is_kept(value: float) -> None:
    """Without a division by 0."""
    codes, scales, zeros = quantize_blocks(np.full((1, 16), value, np.float32), 4)
    np.testing.assert_allclose((codes - zeros) * scales, value, rtol=1e-6, atol=1e-30)
