"""Scales and zero points by weighted least squares."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.quantization.kquant import quantize_blocks


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("offset", [0.0, 3.0, -3.0])
def test_the_weighted_error_is_no_larger_than_that_of_rounding_to_nearest(bits: int, offset: float) -> None:
    """Between the extremes of each block, and clearly less where codes are few."""
    blocks = (np.random.default_rng(0).standard_t(3, (50, 4, 32)) + offset).astype(np.float32)
    codes, scales, zeros = quantize_blocks(blocks, bits)
    top = (1 << bits) - 1
    low, high = blocks.min(-1, keepdims=True, initial=0), blocks.max(-1, keepdims=True, initial=0)
    step = (high - low) / np.float32(top)
    zero = np.clip(np.rint(-low / step), 0, top)
    rounded = (np.clip(np.rint(blocks / step) + zero, 0, top) - zero) * step
    weights = np.abs(blocks) + np.sqrt(np.square(blocks).mean(axis=-1, keepdims=True))
    assert codes.max() <= top
    assert zeros.max() <= top
    ours, theirs = (np.sum(weights * np.square(made - blocks)) for made in ((codes - zeros.astype(np.float32)) * scales, rounded))
    assert ours <= theirs * (1 if bits == 8 else 0.95)


@pytest.mark.parametrize("value", [0.0, 5.0, -3.0, 1e-38, -1e38])
def test_a_block_of_one_value_is_kept(value: float) -> None:
    """Without a division by 0, or a square that overflows to a wrong code."""
    codes, scales, zeros = quantize_blocks(np.full((1, 16), value, np.float32), 4)
    np.testing.assert_allclose((codes - zeros.astype(np.float32)) * scales, value, rtol=1e-6, atol=1e-30)
