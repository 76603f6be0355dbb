"""MatMulBnb4 of com.microsoft: products with weights of 4 bits, which a table of 16 values decodes as they are multiplied.

Scales go over blocks of the flat weights (N, K); within a row they are those of as many elements as both K and a block are made of.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.panels import TablePanels
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Tensor, Value
from sardonyx.ops.views.quantize import BNB4_VALUES
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.matmul import COLUMN, WHOLE, ProductSpec, RightSide, joins_product, multiply
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of, given, shape_of

__all__: list[str] = []

_A, _B, _ABSMAX = range(3)
_LEAST_BLOCK = 16


@dataclasses.dataclass(frozen=True, slots=True)
class Bnb4Spec:
    """A product with weights that a table decodes."""

    K: int
    """Rows of the weights."""
    N: int
    """Columns of the weights."""
    block_size: int
    """Flat weights that share a scale."""
    panels: TablePanels
    """How they are stored."""
    product: ProductSpec
    """What else is read."""


def claim(node: Node) -> Bnb4Spec | str:
    """Return what a MatMulBnb4 multiplies, or why it cannot be compiled."""
    K, N, size, code = (node.integer(name, -1) for name in ("K", "N", "block_size", "quant_type"))
    a, b, scales = (given(value) for value in node.inputs[:3])
    if K < 1 or N < 1 or size < 1 or code not in BNB4_VALUES:
        return f"{K} rows and {N} columns of weights of type {code} in blocks of {size}"
    if not node.flag("transB", default=True):
        return "its weights are not transposed"
    if not shape_of(a) or shape_of(a)[-1] != K:
        return f"A of shape {a.shape} does not end in {K}"
    if {a.dtype, scales.dtype, node.outputs[0].dtype} != {DataType.FLOAT} or b.dtype is not DataType.UINT8:
        return f"products of {a.dtype} with {b.dtype} and scales of {scales.dtype}"
    if b.constant is None or scales.constant is None:
        return "its weights or their scales are no constants"
    if b.constant.size != (N * K + 1) // 2 or scales.constant.size != -(-N * K // size):
        return f"{b.constant.size} bytes and {scales.constant.size} scales for {N} x {K} weights in blocks of {size}"
    block = K if size >= N * K else math.gcd(K, size)
    block = block & -block
    if block < _LEAST_BLOCK:
        return f"rows of {K} weights in blocks of {size}, which share no {_LEAST_BLOCK}"
    return Bnb4Spec(K, N, size, TablePanels(4, block, None, BNB4_VALUES[code]), ProductSpec(False, False, (COLUMN, WHOLE)))


def _joins(group: Group, spec: Bnb4Spec, member: Member, value: Value) -> bool:
    return joins_product(group, spec.product, member, value)


@lowers("MatMulBnb4", claim=claim, joins=_joins, domain="com.microsoft", inputs=3)
def lower(low: Lowering, group: Group, spec: Bnb4Spec) -> None:
    """Pack the weights by panels, and multiply."""
    node, width = group.node, tiling(low.target).panel
    weights = given(node.inputs[_B])
    packed = low.packed(_packed, weights.constant, spec, node.inputs[_ABSMAX], width, of=weights)
    multiply(low, group, low.of(node.inputs[_A]), RightSide(packed, spec.K, spec.N, spec.panels), None)


def _packed(weights: Tensor, spec: Bnb4Spec, scales: Value, width: int) -> Array:
    """Return the panels of flat weights (N, K), two to a byte, the first in the upper bits."""
    stored, factors = weights.numpy().reshape(-1), constant_of(scales)
    if factors is None:
        raise ValueError(f"{scales!r} is no constant")
    block, blocks = spec.panels.block_size, spec.K // spec.panels.block_size
    firsts = np.arange(0, spec.N * spec.K, block)
    by_block = factors.reshape(-1)[firsts // spec.block_size].reshape(spec.N, blocks)

    def numbers(columns: slice) -> Array:
        first, last = columns.start * spec.K, columns.stop * spec.K
        pairs = stored[first // 2 : -(-last // 2)]
        codes = np.stack([pairs >> 4, pairs & 15], axis=1).reshape(-1)[first % 2 :][: last - first]
        return codes.reshape(-1, blocks, block)

    return spec.panels.pack(numbers, by_block, None, width)
