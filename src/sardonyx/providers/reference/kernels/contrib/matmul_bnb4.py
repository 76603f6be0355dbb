"""MatMulBnb4 of com.microsoft: weights of 4 bits whose 16 values are those of bitsandbytes' FP4 and NF4 types."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.quantize import BNB4_VALUES
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["code_values", "matmul_bnb4"]

_VALUES = np.array([BNB4_VALUES[code] for code in sorted(BNB4_VALUES)], np.float32)
"""quant_type -> code -> value."""


def code_values(quant_type: int) -> Array:
    """Return what the 16 codes of a type stand for, as float32: 0 for FP4, 1 for NF4."""
    values: Array = _VALUES[quant_type]
    return values


@kernel("MatMulBnb4", domain="com.microsoft")
def matmul_bnb4(
    call: Call,
    a: Array,
    b: Array,
    absmax: Array,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    training_mode: int = 0,
    transB: int = 1,
) -> Array:
    """Multiply a (..., K) by the transpose of weights (N, K), or a (..., N) by them where transB is 0.

    The weights are flat: two codes per byte, the high one first, and one absmax per `block_size` of them. `quant_type` is 0 for
    FP4, 1 for NF4. Source: com.microsoft MatMulBnb4.
    """
    inner = K if transB else N
    if quant_type not in (0, 1) or block_size < 1:
        raise InvalidArgument(f"quant_type is {quant_type} and block_size {block_size}; expected 0 or 1, and a positive number")
    if a.ndim < 1 or a.shape[-1] != inner or b.size != (N * K + 1) // 2 or absmax.size != -(-N * K // block_size):
        raise InvalidArgument(
            f"A has shape {a.shape}, B {b.shape} and absmax {absmax.shape}; K {K}, N {N} and block_size {block_size} make them "
            f"(..., {inner}), ({(N * K + 1) // 2},) and ({-(-N * K // block_size)},)"
        )
    codes = np.stack([b.reshape(-1) >> 4, b.reshape(-1) & 15], axis=1).reshape(-1)[: N * K]
    weights = _VALUES[quant_type][codes]
    weights *= np.repeat(widen(absmax).reshape(-1), min(block_size, N * K))[: N * K]
    matrix = weights.reshape(N, K)
    y = matmul_in_parts(widen(a), matrix.T if transB else matrix)
    return np.asarray(y).astype(a.dtype, copy=False)
