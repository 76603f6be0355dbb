"""Multiply floats by stored integers of 4 or 8 bits without making them floats first.

    MatMul(a, DQ(w, scale, zero))              ->      com.microsoft.MatMulNBits(a, packed w, scales, zeros) {bits = 4 or 8}
    Gemm(a, DQ(w, scale, zero), bias)          ->      the same with the bias

for constants w with one scale, one for each column of the product, or one for each block along the axis of the sum. The numbers
that are multiplied are the same; they take a quarter or an eighth of the memory, of which a product of few rows reads all.

Left alone:
    few weights, which the caches hold as floats, and fewer rows of them than a block has
    a that is dequantized: products of integers are made of that
    weights with other users, a scale for each row of the sum, blocks whose size is no power of two from 16 on
    Gemm with alpha, beta or a transposed a, and a bias that is no constant of one number for each column
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.bit_fields import pack_bits
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Tensor, Value
from sardonyx.ops.views.matmul import Gemm
from sardonyx.ops.views.quantize import Quantization
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import NO_QUANTIZATION, dequantized
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_NARROW_WEIGHTS"]

_LEAST_ELEMENTS = 1 << 16
_BLOCKS = (256, 128, 64, 32)
"""Sizes of blocks, the first of which that divides the rows is taken; else the last."""


_SMALLEST_BLOCK = 16
_BITS = {DataType.INT4: 4, DataType.UINT4: 4, DataType.INT8: 8, DataType.UINT8: 8}
_SIGNED = (DataType.INT4, DataType.INT8)


@dataclasses.dataclass(frozen=True, slots=True)
class _Weights:
    """Weights as MatMulNBits has them."""

    numbers: Array
    """(N, K) of uint8."""
    scales: Array
    """(N, blocks) of float32."""
    zeros: Array
    """(N, blocks) of uint8."""
    bits: int
    """Bits of a number."""
    block: int
    """Numbers of a block."""


def _pattern(op: PatternBuilder, a: Term) -> Term:
    number = dequantized(op, "w", "w")
    return op.any_of(op.MatMul(a, number), op.Gemm(a, number, op.optional_constant("bias")))


def _check(match: Match) -> str | _Weights:
    a, w, node = match["a"], match.tensor("w"), match.root
    if w is None or w.dtype not in _BITS or len(w.shape) != 2:
        return "the weights are no matrix of 4 or 8 bits"
    if w.size < _LEAST_ELEMENTS or match["w"].use_count > 1 or match.node("w/dequantize").output.use_count > 1:
        return f"there are {w.size} weights, or they have other users"
    if a.dtype is not DataType.FLOAT or (a.producer is not None and a.producer.op_type == "DequantizeLinear"):
        return "a is dequantized, or not float"
    view = Gemm.of(node)
    if view.transposes_a or (node.op_type == "Gemm" and view.is_scaled):
        return "alpha or beta is not 1, or a is transposed"
    return _bias_reason(match, w.shape[view.column_axis]) or _weights(match, w, view.column_axis)


def _bias_reason(match: Match, columns: int) -> str | None:
    bias = match.tensor("bias") if match.root.op_type == "Gemm" and match.get("bias") is not None else None
    if bias is None or (bias.dtype is DataType.FLOAT and bias.shape in ((columns,), (1, columns))):
        return None
    return f"the bias has shape {bias.shape}, expected {(columns,)}"


def _weights(match: Match, w: Tensor, column_axis: int) -> str | _Weights:
    quantization, sum_axis = Quantization.of(match.node("w/dequantize")), 1 - column_axis
    K, scale, zero = w.shape[sum_axis], match.tensor("w_scale"), match.tensor("w_zero")
    if scale is None or scale.dtype is not DataType.FLOAT or min(w.shape) < _BLOCKS[-1]:
        return "the weights have too few rows, or no scales of float32"
    if scale.size > 1 and (quantization.axis % 2 == sum_axis) != bool(quantization.block):
        return "the scales go along the axis of the sum one by one, or along the columns by block"
    block = quantization.block if scale.size > 1 else 0
    if block and (block < _SMALLEST_BLOCK or block & (block - 1)):
        return f"blocks of {block}, expected a power of two from {_SMALLEST_BLOCK} on"
    bits = _BITS[w.dtype]
    shift = 1 << (bits - 1) if w.dtype in _SIGNED else 0
    block, columns = block or next((size for size in _BLOCKS if K % size == 0), _BLOCKS[-1]), w.shape[column_axis]
    shape = (columns, -(-K // block))
    scales, zeros = (_by_block(part, shape, column_axis) for part in (scale, zero))
    if scales is None or zeros is None:
        return f"scales or zero points that are not of {shape[1]} blocks of {columns} columns"
    numbers = _unsigned(w.numpy() if column_axis == 0 else w.numpy().T, shift)
    return _Weights(numbers, scales.astype(np.float32), _unsigned(zeros, shift), bits, block)


def _by_block(part: Tensor | None, shape: tuple[int, int], column_axis: int) -> Array | None:
    """Return scales or zero points, for all, for each column or for each block, as (N, blocks); None for other shapes."""
    if part is None:
        return np.zeros(shape, np.int16)
    numbers = part.numpy()
    if numbers.dtype != np.float32:
        numbers = numbers.astype(np.int16)
    if numbers.ndim == 2 and numbers.size > 1:
        numbers = numbers if column_axis == 0 else numbers.T
        return numbers if numbers.shape == shape else None
    return np.broadcast_to(numbers.reshape(-1, 1), shape) if numbers.size in (1, shape[0]) else None


def _unsigned(numbers: Array, shift: int) -> Array:
    return (numbers.astype(np.int16) + shift).astype(np.uint8)


def _replace(op: Builder, match: Match, learned: _Weights) -> Value:
    (N, K), block, bits = learned.numbers.shape, learned.block, learned.bits
    blocks = -(-K // block)
    padded = np.zeros((N, blocks * block), np.uint8)
    padded[:, :K] = learned.numbers
    name, packed = match["w"].name, pack_bits(padded, bits).reshape(N, blocks, block * bits // 8)
    inputs: list[Value | None] = [match["a"], op.constant(packed, f"{name}/packed")]
    inputs.append(op.constant(np.ascontiguousarray(learned.scales), f"{name}/scales"))
    inputs.append(op.constant(pack_bits(np.ascontiguousarray(learned.zeros), bits), f"{name}/zero_points"))
    bias = match.tensor("bias") if match.root.op_type == "Gemm" and match.get("bias") is not None else None
    if bias is not None:
        inputs += [None, op.constant(bias.numpy().reshape(-1))]
    return op.MatMulNBits(*inputs, K=K, N=N, bits=bits, block_size=block, _domain="com.microsoft")


FUSE_NARROW_WEIGHTS = Rule(
    "fuse_narrow_weights",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("MatMulNBits"),
    opt_out=NO_QUANTIZATION,
)
