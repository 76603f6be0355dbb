"""Multiply by packed weights of few bits without making them floats first.

    MatMul(a, DQ(w, scales, zeros) {axis = 0, block_size})      ->      com.microsoft.MatMulNBits(a, packed w, scales, packed zeros)

for constants w (K, N) of 4 or 8 bits. The same numbers are multiplied. Of use where a provider has a kernel that unpacks as it
goes: it takes part where one prefers MatMulNBits, or where `session.enable_dq_matmulnbits_fusion` asks for it.

Left alone:
    scales by axis or one for all, and blocks along another axis than that of the sum
    a block size that is no power of two from 16 on
    weights with other users, which would be stored twice; types of a other than that of the scales
"""

from __future__ import annotations

import numpy as np

from sardonyx.bit_fields import pack_bits
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Value
from sardonyx.ops.views.quantize import Quantization
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import OptIn, microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_NBITS_MATMUL"]

_BITS = {DataType.INT4: 4, DataType.UINT4: 4, DataType.INT8: 8, DataType.UINT8: 8}
_SIGNED = (DataType.INT4, DataType.INT8)
_SMALLEST_BLOCK = 16


def _pattern(op: PatternBuilder, a: Term, w: Term, scales: Term) -> Term:
    number = op.DequantizeLinear(op.constant(w), op.constant(scales), op.optional_constant("zero_points"), _as="dequantize")
    return op.MatMul(a, number)


def _check(match: Match) -> str | None:
    w, scales, node = match.tensor("w"), match.tensor("scales"), match.node("dequantize")
    view = Quantization.of(node)
    block = view.block
    if w is None or scales is None or w.dtype not in _BITS or len(w.shape) != 2 or view.axis % 2 != 0:
        return "the weights are no matrix of 4 or 8 bits with scales along the axis of the sum"
    if block < _SMALLEST_BLOCK or block & (block - 1):
        return f"blocks of {block}, expected a power of two from {_SMALLEST_BLOCK} on"
    return None if match["a"].dtype is scales.dtype else f"a is {match['a'].dtype}, the scales are {scales.dtype}"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    w, scales, zeros = (match.tensor(name) for name in ("w", "scales", "zero_points"))
    if w is None or scales is None:
        raise ValueError("the weights are no constant")
    bits, block, name = _BITS[w.dtype], Quantization.of(match.node("dequantize")).block, match["w"].name
    shift = 1 << (bits - 1) if w.dtype in _SIGNED else 0
    K, N = w.shape
    numbers = _unsigned(w.numpy(), shift).T
    blocks = -(-K // block)
    padded = np.zeros((N, blocks * block), np.uint8)
    padded[:, :K] = numbers
    packed = op.constant(pack_bits(padded, bits).reshape(N, blocks, block * bits // 8), f"{name}/packed")
    inputs: list[Value | None] = [match["a"], packed, op.constant(np.ascontiguousarray(scales.numpy().T), f"{name}/scales")]
    if zeros is not None or shift == 0:
        given = np.zeros((blocks, N), np.uint8) if zeros is None else _unsigned(zeros.numpy(), shift)
        inputs.append(op.constant(pack_bits(np.ascontiguousarray(given.T), bits), f"{name}/zero_points"))
    return op.MatMulNBits(*inputs, K=K, N=N, bits=bits, block_size=block, _domain="com.microsoft")


def _unsigned(array: Array, shift: int) -> Array:
    return (array.astype(np.int16) + shift).astype(np.uint8)


FUSE_NBITS_MATMUL = Rule(
    "fuse_nbits_matmul",
    _pattern,
    _replace,
    _check,
    makes=microsoft("MatMulNBits"),
    opt_in=OptIn(
        "session.enable_dq_matmulnbits_fusion", "1", "products with packed weights are slower on providers without kernels for them"
    ),
    aliases=(
        "DQMatMulNBitsFusion",
        "QDQSelectorActionTransformer",
    ),
)
