"""Zero points of blocks by half-quadratic quantization: those for which a sparse error remains.

Source: H. Badri and A. Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", Mobius Labs, 2023.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array

__all__ = ["quantize_blocks"]

_NORM, _WEIGHT, _GROWTH, _STEPS = 0.7, 10.0, 1.01, 20
"""The exponent of the norm that is made small, the weight of a deviation from it, its growth by step, and the steps."""
_LEAST_WIDTH = 1e-30
"""The narrowest range of a block that is told from one value."""


def quantize_blocks(blocks: Array, bits: int) -> tuple[Array, Array, Array]:
    """Return codes, scales and zero points of blocks: x is about (code - zero point) * scale.

    Args:
        blocks: float32 (..., size); a scale and zero point for each.
        bits: of a code.

    Returns:
        uint8 codes of the shape of `blocks`; float32 scales and zero points (..., 1), the latter no whole numbers.
    """
    top = float((1 << bits) - 1)
    least, most = blocks.min(axis=-1, keepdims=True), blocks.max(axis=-1, keepdims=True)
    width = most - least
    inverse = np.where(width > 0, top / np.maximum(width, _LEAST_WIDTH), 1.0).astype(np.float32)
    zero = -least * inverse
    best, best_error, weight = zero, np.full(zero.shape, np.inf, np.float32), _WEIGHT
    for _ in range(_STEPS):
        codes = np.clip(np.rint(blocks * inverse + zero), 0, top)
        rest = blocks - (codes - zero) / inverse
        error = np.abs(rest).mean(axis=-1, keepdims=True)
        is_better = error < best_error
        best, best_error = np.where(is_better, zero, best), np.where(is_better, error, best_error)
        if not is_better.any():
            break
        zero = np.mean(codes - (blocks - _shrunk(rest, weight)) * inverse, axis=-1, keepdims=True, dtype=np.float32)
        weight *= _GROWTH
    codes = np.clip(np.rint(blocks * inverse + best), 0, top).astype(np.uint8)
    return codes, (1 / inverse).astype(np.float32), best.astype(np.float32)


def _shrunk(rest: Array, weight: float) -> Array:
    """Return what the norm asks an error to become: small ones become 0, large ones stay."""
    size = np.abs(rest)
    with np.errstate(divide="ignore"):
        less = size - np.power(size, _NORM - 1) / weight
    shrunk: Array = np.sign(rest) * np.maximum(np.where(size > 0, less, 0), 0)
    return shrunk
