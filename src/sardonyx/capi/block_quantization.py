"""Quantization of weights in blocks, as onnxruntime's compiled module has it for its tools: results go into arrays of the caller's.

Each block of `block_size` weights of a column has a scale and, where it is not symmetric, a zero point. Symmetric blocks have
their element of the greatest magnitude at the lowest code; others span from their least to their greatest element, 0 included.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = [
    "quantize_matmul_2bits",
    "quantize_matmul_4bits",
    "quantize_matmul_8bits",
    "quantize_matmul_bnb4",
    "quantize_qdq_matmul_2bits",
    "quantize_qdq_matmul_4bits",
]


_FP4_MIDDLES = np.array([0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333], np.float32)
"""Where the next greater magnitude of FP4 begins, as bitsandbytes rounds it."""


def quantize_matmul_2bits(
    quantized: Array,
    weights: Array,
    scales: Array,
    zero_points: Array,
    block_size: SupportsIndex,
    N: SupportsIndex,
    K: SupportsIndex,
    is_symmetric: bool,
) -> None:
    """Quantize weights to codes of 2 bits, in the layout of MatMulNBits.

    Args:
        quantized: uint8 (N, ceil(K / block_size), block_size / 4) that is written; the first code in the lowest bits, 0 behind K.
        weights: float32 or float16 (K, N); further rows, as of a last block that was filled up, do not count.
        scales: of the type of `weights`, N * ceil(K / block_size) elements that are written.
        zero_points: uint8, a row of ceil(blocks / 4) bytes for each column; written where not symmetric.
        block_size: weights in a block.
        N: columns.
        K: rows.
        is_symmetric: whether the zero point of each block is 2.

    Raises:
        InvalidArgument: an array has another type or number of elements.
    """
    _quantize_columns(2, quantized, weights, scales, zero_points, (block_size, N, K), is_symmetric=is_symmetric)


def quantize_matmul_4bits(
    quantized: Array,
    weights: Array,
    scales: Array,
    zero_points: Array,
    block_size: SupportsIndex,
    N: SupportsIndex,
    K: SupportsIndex,
    is_symmetric: bool,
) -> None:
    """Quantize weights to codes of 4 bits; arguments as for `quantize_matmul_2bits`, with two codes in a byte and zero point 8."""
    _quantize_columns(4, quantized, weights, scales, zero_points, (block_size, N, K), is_symmetric=is_symmetric)


def quantize_matmul_8bits(
    quantized: Array,
    weights: Array,
    scales: Array,
    zero_points: Array,
    block_size: SupportsIndex,
    N: SupportsIndex,
    K: SupportsIndex,
    is_symmetric: bool,
) -> None:
    """Quantize weights to codes of 8 bits; arguments as for `quantize_matmul_2bits`, with a byte for a code and zero point 128."""
    _quantize_columns(8, quantized, weights, scales, zero_points, (block_size, N, K), is_symmetric=is_symmetric)


def quantize_qdq_matmul_2bits(
    quantized: Array,
    weights: Array,
    scales: Array,
    zero_points: Array,
    block_size: SupportsIndex,
    N: SupportsIndex,
    K: SupportsIndex,
    is_symmetric: bool,
) -> bool:
    """Quantize weights to 2 bits in the layout of DequantizeLinear; arguments as for `quantize_qdq_matmul_4bits`."""
    return _quantize_rows(2, quantized, weights, scales, zero_points, (block_size, N, K), is_symmetric=is_symmetric)


def quantize_qdq_matmul_4bits(
    quantized: Array,
    weights: Array,
    scales: Array,
    zero_points: Array,
    block_size: SupportsIndex,
    N: SupportsIndex,
    K: SupportsIndex,
    is_symmetric: bool,
) -> bool:
    """Quantize weights to 4 bits in the layout of DequantizeLinear, blocks along the first axis.

    Args:
        quantized: uint8 of ceil(K * N / 2) elements that is written: codes row by row, signed where symmetric.
        weights: float32 or float16 (K, N).
        scales: (ceil(K / block_size), N) of the type of `weights`, which is written.
        zero_points: uint8 of ceil(blocks * N / 2) elements; written where not symmetric.
        block_size: weights in a block.
        N: columns.
        K: rows.
        is_symmetric: whether zero points are 0 of a signed type.

    Returns:
        Whether the codes are signed, as those of symmetric blocks are.

    Raises:
        InvalidArgument: an array has another type or number of elements.
    """
    return _quantize_rows(4, quantized, weights, scales, zero_points, (block_size, N, K), is_symmetric=is_symmetric)


def quantize_matmul_bnb4(
    quantized: Array,
    weights: Array,
    absmax: Array,
    block_size: SupportsIndex,
    quant_type: SupportsIndex,
    N: SupportsIndex,
    K: SupportsIndex,
) -> None:
    """Quantize weights to the 4-bit types of bitsandbytes, blocks over the flat array.

    Args:
        quantized: uint8 of ceil(N * K / 2) elements that is written, the first code of two in the high bits.
        weights: float32 or float16 (N, K).
        absmax: ceil(N * K / block_size) elements of the type of `weights`, which are written.
        block_size: weights in a block.
        quant_type: 0 for FP4, 1 for NF4.
        N: rows.
        K: columns.

    Raises:
        InvalidArgument: an array has another type or number of elements, or the type is unknown.
    """
    with without_fork():
        from sardonyx.providers.reference.kernels.contrib.matmul_bnb4 import code_values  # half a second that few programs need

    block, rows, columns = _sizes(block_size, N, K)
    kind = operator.index(quant_type)
    if kind not in (0, 1):
        raise InvalidArgument(f"quant_type is 0 for FP4 or 1 for NF4, got {kind}")
    count = rows * columns
    blocks = -(-count // block)
    _check(quantized, "quantized", -(-count // 2), np.uint8)
    _check(weights, "weights", count)
    _check(absmax, "absmax", blocks, weights.dtype)
    flat = np.zeros((blocks, block), np.float32)
    flat.reshape(-1)[:count] = weights.reshape(-1)
    largest = np.abs(flat).max(axis=1, initial=0)
    codes = _nearest_codes(kind, code_values(kind), flat * _reciprocal(largest)[:, None]).reshape(-1)[:count]
    pairs = np.full(2 * quantized.size, _nearest_codes(kind, code_values(kind), np.zeros(1, np.float32))[0], np.uint8)
    pairs[:count] = codes
    absmax.reshape(-1)[:] = largest
    quantized.reshape(-1)[:] = (pairs[0::2] << 4) | pairs[1::2]


def _nearest_codes(kind: int, values: Array, scaled: Array) -> Array:
    """Return the codes whose values are nearest; those of FP4 are a sign of one bit and a magnitude."""
    signs = np.where(scaled < 0, np.uint8(8), np.uint8(0)) if kind == 0 else np.uint8(0)
    known, wanted = (values[:8], np.abs(scaled)) if kind == 0 else (values, scaled)
    order = np.argsort(known, kind="stable")
    middles = _FP4_MIDDLES if kind == 0 else (known[order][1:] + known[order][:-1]) / 2
    codes: Array = order[np.searchsorted(middles, wanted)].astype(np.uint8) | signs
    return codes


def _quantize_columns(
    bits: int,
    quantized: Array,
    weights: Array,
    scales: Array,
    zero_points: Array,
    sizes: tuple[SupportsIndex, ...],
    *,
    is_symmetric: bool,
) -> None:
    block, columns, rows = _sizes(*sizes)
    blocks, codes_of_byte = -(-rows // block), 8 // bits
    zero_bytes = -(-blocks // codes_of_byte)
    _check(quantized, "quantized", columns * blocks * (block // codes_of_byte), np.uint8)
    codes, scale, zeros = _codes(bits, weights, scales, (block, columns, rows), is_symmetric=is_symmetric)
    quantized.reshape(-1)[:] = _packed(codes.transpose(2, 0, 1).reshape(-1), bits)
    scales.reshape(-1)[:] = scale.T.reshape(-1)
    if not is_symmetric:
        _check(zero_points, "zero_points", columns * zero_bytes, np.uint8)
        padded = np.full((columns, zero_bytes * codes_of_byte), (1 << bits) >> 1, np.uint8)
        padded[:, :blocks] = zeros.T
        zero_points.reshape(-1)[:] = _packed(padded.reshape(-1), bits)


def _quantize_rows(
    bits: int,
    quantized: Array,
    weights: Array,
    scales: Array,
    zero_points: Array,
    sizes: tuple[SupportsIndex, ...],
    *,
    is_symmetric: bool,
) -> bool:
    block, columns, rows = _sizes(*sizes)
    blocks, codes_of_byte = -(-rows // block), 8 // bits
    _check(quantized, "quantized", -(-rows * columns // codes_of_byte), np.uint8)
    codes, scale, zeros = _codes(bits, weights, scales, (block, columns, rows), is_symmetric=is_symmetric)
    signs = np.uint8(1 << (bits - 1)) if is_symmetric else np.uint8(0)
    quantized.reshape(-1)[:] = _packed(codes.reshape(-1, columns)[:rows].reshape(-1) ^ signs, bits)
    scales.reshape(-1)[:] = scale.reshape(-1)
    if not is_symmetric:
        _check(zero_points, "zero_points", -(-blocks * columns // codes_of_byte), np.uint8)
        zero_points.reshape(-1)[:] = _packed(zeros.reshape(-1), bits)
    return is_symmetric


def _codes(
    bits: int, weights: Array, scales_out: Array, sizes: tuple[int, int, int], *, is_symmetric: bool
) -> tuple[Array, Array, Array]:
    """Return codes (blocks, block, N), 0 behind the last row, with scales and zero points (blocks, N) of weights (K, N).

    Raises:
        InvalidArgument: `weights` are too few, or `scales_out` does not hold the scales, for `sizes` of a block, N and K.
    """
    block, columns, rows = sizes
    blocks = -(-rows // block)
    _check(weights, "weights", rows * columns, or_more=True)
    _check(scales_out, "scales", columns * blocks, weights.dtype)
    padded = np.zeros((blocks * block, columns), np.float32)
    padded[:rows] = weights.reshape(-1)[: rows * columns].reshape(rows, columns)
    parts = padded.reshape(blocks, block, columns)
    top = (1 << bits) - 1
    zeros: Array
    if is_symmetric:
        places = np.abs(parts).argmax(axis=1)
        scales = np.take_along_axis(parts, places[:, None], axis=1)[:, 0] / np.float32(-(1 << (bits - 1)))
        zeros = np.full(scales.shape, 1 << (bits - 1), np.uint8)
    else:
        least, most = parts.min(axis=1, initial=0), parts.max(axis=1, initial=0)
        scales = (most - least) / np.float32(top)
        zeros = np.clip(np.floor(-least * _reciprocal(scales) + np.float32(0.5)), 0, top).astype(np.uint8)
    places_of_codes = np.floor(parts * _reciprocal(scales)[:, None] + zeros[:, None] + np.float32(0.5))
    codes: Array = np.clip(places_of_codes, 0, top).astype(np.uint8)
    codes.reshape(blocks * block, columns)[rows:] = 0
    return codes, scales, zeros


def _reciprocal(values: Array) -> Array:
    """Return 1 / `values`, and 0 for 0."""
    found: Array = np.divide(np.float32(1), values, out=np.zeros_like(values), where=values != 0)
    return found


def _packed(codes: Array, bits: int) -> Array:
    """Return bytes of codes, the first in the lowest bits."""
    codes_of_byte = 8 // bits
    padded = np.zeros(-(-codes.size // codes_of_byte) * codes_of_byte, np.uint8)
    padded[: codes.size] = codes
    shifts = (bits * np.arange(codes_of_byte)).astype(np.uint8)
    packed: Array = np.bitwise_or.reduce(padded.reshape(-1, codes_of_byte) << shifts, axis=1)
    return packed


def _sizes(block_size: SupportsIndex, *rest: SupportsIndex) -> tuple[int, int, int]:
    block, first, second = (operator.index(size) for size in (block_size, *rest))
    if block < 16 or block & (block - 1) or min(first, second) < 1:
        raise InvalidArgument(
            f"block_size is a power of 2 of at least 16, and N and K are at least 1; got {block}, {first}, {second}"
        )
    return block, first, second


def _check(array: OnnxValue, name: str, count: int, dtype: DTypeLike | None = None, *, or_more: bool = False) -> None:
    wanted = (np.float32, np.float16) if dtype is None else (np.dtype(dtype),)
    is_array = isinstance(array, np.ndarray)
    fits = is_array and (array.size == count or (or_more and array.size > count))
    if fits and array.dtype in wanted and array.flags.c_contiguous:
        return
    found = f"{array.dtype} {array.shape}" if is_array else type(array).__name__
    kinds = " or ".join(str(np.dtype(kind)) for kind in wanted)
    raise InvalidArgument(f"{name} is a dense array of {count} elements of {kinds}, got {found}")
