"""Multiply floats by stored integers of 8 bits without making them floats first.

    MatMul(a, DQ(w, scale, zero))              ->      com.microsoft.MatMulNBits(a, packed w, scales, zeros) {bits = 8}
    Gemm(a, DQ(w, scale, zero), bias)          ->      the same with the bias

for constants w with one scale, or one for each column of the product. The numbers that are multiplied are the same; they take a
quarter of the memory, of which a product of few rows reads all.

Left alone:
    few weights, which the caches hold as floats, and fewer rows of them than a block has
    a that is dequantized: products of integers are made of that
    weights with other users, scales along the axis of the sum or by block (`fuse_nbits_matmul`)
    Gemm with alpha, beta or a transposed a, and a bias that is no constant of one number for each column
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Value
from sardonyx.ops.views.matmul import Gemm
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import EIGHT_BITS, NO_QUANTIZATION, dequantized, scale_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_NARROW_WEIGHTS"]

_LEAST_ELEMENTS = 1 << 16
_BLOCKS = (256, 128, 64, 32)
"""Sizes of blocks, the first of which that divides the rows is taken; else the last."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Weights:
    """Weights as MatMulNBits has them."""

    numbers: Array
    """(N, K) of uint8."""
    scales: Array
    """(N,) of float32."""
    zeros: Array
    """(N,) of uint8."""


def _pattern(op: PatternBuilder, a: Term) -> Term:
    number = dequantized(op, "w", "w")
    return op.any_of(op.MatMul(a, number), op.Gemm(a, number, op.optional_constant("bias")))


def _check(match: Match) -> str | _Weights:
    a, w, node = match["a"], match.tensor("w"), match.root
    scale = scale_of(match.node("w/dequantize"))
    if w is None or scale is None or w.dtype not in EIGHT_BITS or len(w.shape) != 2:
        return "the weights are no matrix of 8 bits with scales of float32"
    if w.size < _LEAST_ELEMENTS or match["w"].use_count > 1 or match.node("w/dequantize").output.use_count > 1:
        return f"there are {w.size} weights, or they have other users"
    if a.dtype is not DataType.FLOAT or (a.producer is not None and a.producer.op_type == "DequantizeLinear"):
        return "a is dequantized, or not float"
    view = Gemm.of(node)
    if view.transposes_a or (node.op_type == "Gemm" and view.is_scaled):
        return "alpha or beta is not 1, or a is transposed"
    if not scale.is_single and scale.axis % 2 != view.column_axis:
        return "the scales go along the axis of the sum"
    return _bias_reason(match, w.shape[view.column_axis]) or _weights(match, view.column_axis)


def _bias_reason(match: Match, columns: int) -> str | None:
    bias = match.tensor("bias") if match.root.op_type == "Gemm" and match.get("bias") is not None else None
    if bias is None or (bias.dtype is DataType.FLOAT and bias.shape in ((columns,), (1, columns))):
        return None
    return f"the bias has shape {bias.shape}, expected {(columns,)}"


def _weights(match: Match, column_axis: int) -> str | _Weights:
    w, scale = match.tensor("w"), scale_of(match.node("w/dequantize"))
    if w is None or scale is None or min(w.shape) < _BLOCKS[-1]:
        return "the weights have too few rows"
    shift = 128 if w.dtype is DataType.INT8 else 0
    numbers = w.numpy() if column_axis == 0 else w.numpy().T
    columns = numbers.shape[0]
    scales, zeros = (np.broadcast_to(part, (columns,)) for part in (scale.scale.astype(np.float32), scale.zero + shift))
    return _Weights((numbers.astype(np.int16) + shift).astype(np.uint8), scales, zeros.astype(np.uint8))


def _replace(op: Builder, match: Match, learned: _Weights) -> Value:
    N, K = learned.numbers.shape
    block = next((size for size in _BLOCKS if K % size == 0), _BLOCKS[-1])
    blocks = -(-K // block)
    padded = np.zeros((N, blocks * block), np.uint8)
    padded[:, :K] = learned.numbers
    name = match["w"].name
    inputs: list[Value | None] = [match["a"], op.constant(padded.reshape(N, blocks, block), f"{name}/packed")]
    for part, what in ((learned.scales, "scales"), (learned.zeros, "zero_points")):
        inputs.append(op.constant(np.repeat(part[:, np.newaxis], blocks, axis=1), f"{name}/{what}"))
    bias = match.tensor("bias") if match.root.op_type == "Gemm" and match.get("bias") is not None else None
    if bias is not None:
        inputs += [None, op.constant(bias.numpy().reshape(-1))]
    return op.MatMulNBits(*inputs, K=K, N=N, bits=8, block_size=block, _domain="com.microsoft")


FUSE_NARROW_WEIGHTS = Rule(
    "fuse_narrow_weights",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("MatMulNBits"),
    opt_out=NO_QUANTIZATION,
)
