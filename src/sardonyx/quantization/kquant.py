"""Scales and zero points of blocks by search: those with the least squared error, weighted by the size of the numbers.

For ranges a little narrower and wider than that between the extremes, the scale and offset that fit the codes best are solved for,
and the offset is rounded to a whole zero point. Rounding to nearest between the extremes is one of the candidates.

Source: the idea of the k-quants of llama.cpp (I. Kawrakow, 2023): weighted least squares over a grid of scales.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array

__all__ = ["quantize_blocks"]

_SHIFTS = np.arange(-10, 11) * 0.1
"""By how many steps the range of a candidate is more or fewer than the codes have."""
_LEAST = np.float32(1e-30)
"""The least scale, and divisor, that is told from 0."""


def quantize_blocks(blocks: Array, bits: int) -> tuple[Array, Array, Array]:
    """Return codes, scales and zero points of blocks: x is about (code - zero point) * scale.

    Args:
        blocks: float32 (..., size); a scale and zero point for each.
        bits: of a code.

    Returns:
        uint8 codes of the shape of `blocks`, float32 scales and uint8 zero points (..., 1).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        codes, scales, zeros = _searched(blocks, (1 << bits) - 1)
    return codes.astype(np.uint8), scales.astype(np.float32), zeros.astype(np.uint8)


_Found = tuple[Array, Array, Array]
"""Codes, scales and zero points, as floats."""


def _searched(blocks: Array, top: int) -> _Found:
    """Return the best of all candidates; where squares overflow, that between the extremes."""
    weights = np.abs(blocks) + np.sqrt(np.square(blocks).mean(axis=-1, keepdims=True))
    least, most = blocks.min(axis=-1, keepdims=True, initial=0), blocks.max(axis=-1, keepdims=True, initial=0)
    best = _rounded(blocks, (most - least) / np.float32(top), least, top)
    error = _error(blocks, weights, best)
    for shift in _SHIFTS:
        scale = (most - least) / np.float32(top + shift)
        codes = np.clip(np.rint((blocks - least) / np.maximum(scale, _LEAST)), 0, top).astype(np.float32)
        found = _rounded(blocks, *_fitted(blocks, weights, codes), top)
        other = _error(blocks, weights, found)
        is_better = other < error
        error = np.where(is_better, other, error)
        codes, scales, zeros = (np.where(is_better, new, old) for new, old in zip(found, best, strict=True))
        best = codes, scales, zeros
    return best


def _fitted(blocks: Array, weights: Array, codes: Array) -> tuple[Array, Array]:
    """Return the scale and the offset for which codes * scale + offset is nearest, by weighted least squares."""
    total = weights.sum(axis=-1, keepdims=True)
    mean_code, mean = (((weights * part).sum(axis=-1, keepdims=True)) / np.maximum(total, _LEAST) for part in (codes, blocks))
    spread = (weights * np.square(codes - mean_code)).sum(axis=-1, keepdims=True)
    scale = (weights * (codes - mean_code) * (blocks - mean)).sum(axis=-1, keepdims=True) / np.maximum(spread, _LEAST)
    return scale.astype(np.float32), (mean - scale * mean_code).astype(np.float32)


def _rounded(blocks: Array, scale: Array, offset: Array, top: int) -> _Found:
    """Return codes with a whole zero point; of a scale that is no number above 0, 1 stands in its place."""
    scale = np.where(scale > _LEAST, scale, np.float32(1)).astype(np.float32)
    zero = np.clip(np.rint(-offset / scale), 0, top)
    return np.clip(np.rint(blocks / scale) + zero, 0, top), scale, zero


def _error(blocks: Array, weights: Array, found: _Found) -> Array:
    codes, scale, zero = found
    total: Array = (weights * np.square((codes - zero) * scale - blocks)).sum(axis=-1, keepdims=True)
    return total
