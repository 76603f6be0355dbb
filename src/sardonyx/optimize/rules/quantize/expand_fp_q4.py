"""Write MatMulFpQ4 of com.microsoft, whose scales lie between its weights, as MatMulNBits.

    MatMulFpQ4(a, b, shape) {blk_quant_type}      ->      MatMulNBits(a, weights, scales, zero points) {bits = 4, block_size = 32}

for constants b and shape. The same numbers are multiplied.

Left alone:
    b of another size than the shape says, zero points above 15
"""

from __future__ import annotations

import numpy as np

from sardonyx.bit_fields import pack_bits
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_FP_Q4"]

_MICROSOFT = "com.microsoft"
_BLOCK, _HALF = 32, 16
"""Weights of a block; byte i of its last 16 holds weight i in its low and weight i + 16 in its high bits."""
_SCALE_BYTES = 4


def _pattern(op: PatternBuilder, a: Term, b: Term, shape: Term) -> Term:
    return op.MatMulFpQ4(a, op.constant(b), op.constant(shape), _domain=_MICROSOFT)


def _check(match: Match) -> str | Array:
    """Return the bytes (N, blocks, bytes of a block)."""
    a, b, shape = match["a"], match.tensor("b"), match.constant("shape")
    if b is None or b.dtype is not DataType.UINT8 or shape is None or shape.shape != (2,) or shape.min() < 1:
        return "the weights are no bytes of a known shape"
    if a.dtype is not DataType.FLOAT:
        return f"a is {a.dtype}, expected float"
    K, N = (int(size) for size in shape.reshape(-1))
    blocks, size = -(-K // _BLOCK), _SCALE_BYTES + _has_zeros(match) + _HALF
    if b.size != N * blocks * size:
        return f"there are {b.size} bytes, expected {N * blocks * size}"
    packed = b.numpy().reshape(N, blocks, size)
    if _has_zeros(match) and packed[:, :, _SCALE_BYTES].max() > 15:
        return "zero points are above 15"
    return packed


def _has_zeros(match: Match) -> bool:
    return match.root.integer("blk_quant_type", 1) != 0


def _replace(op: Builder, match: Match, packed: Array) -> Value:
    shape, name = match.constant("shape"), match["b"].name
    if shape is None:
        raise ValueError("the shape is no constant")
    K, N = (int(size) for size in shape.reshape(-1))
    halves = packed[:, :, -_HALF:]
    numbers = np.concatenate([halves & 15, halves >> 4], axis=2)
    inputs = [
        match["a"],
        op.constant(pack_bits(numbers, 4), f"{name}/packed"),
        op.constant(np.ascontiguousarray(packed[:, :, :_SCALE_BYTES]).view("<f4")[:, :, 0].astype(np.float32), f"{name}/scales"),
    ]
    if _has_zeros(match):
        inputs.append(op.constant(pack_bits(packed[:, :, _SCALE_BYTES], 4), f"{name}/zero_points"))
    return op.MatMulNBits(*inputs, K=K, N=N, bits=4, block_size=_BLOCK, _domain=_MICROSOFT)


EXPAND_FP_Q4 = Rule("expand_fp_q4", _pattern, _replace, _check, makes=microsoft("MatMulNBits"), takes_apart=microsoft("MatMulFpQ4"))
