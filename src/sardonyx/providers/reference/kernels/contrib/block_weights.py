"""Matrix products of com.microsoft on weights that carry a scale per block: MatMulFpQ4, and FP8 and FP4 block weights.

Dimension letters: M rows of A, N columns of the result, K inner length.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.packed_weights import unpack
from sardonyx.providers.reference.algorithms.precision import require_floats, widen
from sardonyx.providers.reference.algorithms.product import multiply
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["matmul_fp4_weight", "matmul_fp8_weight", "matmul_fp_q4"]

_MICROSOFT = "com.microsoft"


_BLOCK = 32
"""Weights of a block of MatMulFpQ4."""
_HALF = 16
"""Byte i of 32 weights holds weight i in its low and weight i + 16 in its high bits."""


@kernel("MatMulFpQ4", domain=_MICROSOFT)
def matmul_fp_q4(call: Call, a: Array, b: Array, b_shape: Array, *, blk_quant_type: int = 1) -> Array:
    """Return A (…, K) times the 4-bit weights (K, N) that the bytes B hold; `b_shape` is K and N.

    Columns lie one behind the other, each as blocks of 32 weights along K: a float32 scale, unless `blk_quant_type` is 0 a byte
    with the zero point, 16 bytes of weights. ONNX Runtime documents type 2 as blocks of 64, but reads and writes it as type 1, and
    so do we. Source: com.microsoft MatMulFpQ4.
    """
    if b_shape.shape != (2,) or b.dtype != np.uint8 or min(b_shape.tolist()) < 0:
        raise InvalidArgument(f"B_shape is {b_shape.tolist()} and B has type {b.dtype}; expected K and N, and uint8")
    K, N = (int(size) for size in b_shape)
    if a.ndim == 0 or a.shape[-1] != K:
        raise InvalidArgument(f"A has shape {a.shape}; expected (…, {K})")
    per_column, size_bytes = -(-K // _BLOCK), 4 + (blk_quant_type != 0) + _BLOCK // 2
    if b.size != N * per_column * size_bytes:
        raise InvalidArgument(
            f"B has {b.size} bytes; expected {N * per_column * size_bytes} for K={K}, N={N} and blk_quant_type={blk_quant_type}"
        )
    columns = _unpack_blocks(b.reshape(N, per_column, size_bytes)).reshape(N, per_column * _BLOCK)
    return multiply(widen(a), columns[:, :K].T).astype(a.dtype, copy=False)


def _unpack_blocks(packed: Array) -> Array:
    """Return the weights (N, blocks, 32) of bytes (N, blocks, 20), or 21 with a zero point."""
    scales = np.ascontiguousarray(packed[:, :, :4]).view("<f4")
    data = np.ascontiguousarray(packed[:, :, -_HALF:])
    zero_points = packed[:, :, 4:5].astype(np.float32) if packed.shape[2] > 4 + _HALF else np.float32(8)
    numbers = unpack(data, 4).reshape(*data.shape, 2).swapaxes(2, 3).reshape(*data.shape[:2], _BLOCK)
    weights: Array = (numbers - zero_points) * scales
    return weights


@kernel("MatMulBlockQuantizedFp8Weight", domain=_MICROSOFT)
def matmul_fp8_weight(
    call: Call,
    a: Array,
    b: Array,
    b_scale: Array,
    a_scale: Array | None = None,
    bias: Array | None = None,
    *,
    block_size: int = 128,
) -> Array:
    """Return A (…, K) times the transpose of B (N, K) float8e4m3fn, scaled by block of K, plus bias (N,); in the type of A.

    With `a_scale` A is rounded to float8 with that scale first. Source: com.microsoft MatMulBlockQuantizedFp8Weight.
    """
    require_floats(a, b, b_scale, a_scale, bias)
    if a_scale is not None and a_scale.size != 1:
        raise InvalidArgument(f"a_scale has shape {a_scale.shape}; expected one element")
    weights = widen(b) * _spread(b_scale.astype(np.float32), b.shape, block_size)
    left = widen(a)
    if a_scale is not None:
        scale = np.float32(a_scale.reshape(-1)[0])
        left = (left / scale).astype(ml_dtypes.float8_e4m3fn).astype(np.float32) * scale
    return _product(left, weights, bias, a)


@kernel("MatMulBlockQuantizedFp4Weight", domain=_MICROSOFT)
def matmul_fp4_weight(
    call: Call,
    a: Array,
    b: Array,
    weight_scale: Array,
    weight_scale_2: Array,
    input_scale: Array | None = None,
    bias: Array | None = None,
    *,
    block_size: int = 16,
) -> Array:
    """Return A (…, K) times the transpose of B (N, K / 2), two float4e2m1 a byte, low bits first, plus bias (N,).

    A weight is its number times the block's float8e4m3 scale times `weight_scale_2`, rounded to the type of A, in which the result
    is too; `input_scale` changes nothing. Source: com.microsoft MatMulBlockQuantizedFp4Weight.
    """
    if b.ndim != 2 or b.dtype != np.uint8:
        raise InvalidArgument(f"B has shape {b.shape} and type {b.dtype}; expected uint8 (N, K / 2)")
    codes = np.stack([b & 15, b >> 4], axis=-1).reshape(b.shape[0], 2 * b.shape[1])
    numbers = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    scales = weight_scale.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * np.float32(weight_scale_2.reshape(-1)[0])
    weights = numbers * _spread(scales, numbers.shape, block_size)
    return _product(widen(a), widen(weights.astype(a.dtype)), bias, a)


def _spread(scales: Array, shape: tuple[int, ...], block_size: int) -> Array:
    """Return a scale for each weight (N, K) from scales (N, ceil(K / block_size))."""
    if block_size < 1 or len(shape) != 2 or scales.shape != (shape[0], math.ceil(shape[1] / max(block_size, 1))):
        raise InvalidArgument(
            f"the scales have shape {scales.shape} for weights {shape} in blocks of {block_size}; "
            "expected (N, ceil(K / block_size))"
        )
    repeated: Array = np.repeat(scales, min(block_size, shape[1]), axis=1)[:, : shape[1]]
    return repeated


def _product(left: Array, weights: Array, bias: Array | None, a: Array) -> Array:
    if a.ndim == 0 or a.shape[-1] != weights.shape[1]:
        raise InvalidArgument(f"A has shape {a.shape}; expected (…, {weights.shape[1]}), as B has")
    if bias is not None and bias.shape != weights.shape[:1]:
        raise InvalidArgument(f"the bias has shape {bias.shape}; expected {weights.shape[:1]}, one number for each row of B")
    y = multiply(left, weights.T)
    if bias is not None:
        y = y + widen(bias)
    return y.astype(a.dtype, copy=False)
