"""MatMulNBits of com.microsoft: products with weights of 2, 4 or 8 bits, which are decoded as they are multiplied.

The weights are those of the operator's definition, (number - zero point) x scale in float32, and so are the sums: `accuracy_level`
allows a product in int8, and is not taken up.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.codegen.emit.types import F32, U8, Type
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.panels import BlockPanels
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Tensor, Value
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.matmul import COLUMN, WHOLE, ProductSpec, RightSide, access_of, joins_product, multiply
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of

_B, _SCALES, _ZERO_POINTS, _GROUPS, _BIAS = range(1, 6)
_BITS = (2, 4, 8)
_LEAST_BLOCK = 16


@dataclasses.dataclass(frozen=True, slots=True)
class NBitsSpec:
    """A product with weights of few bits."""

    K: int
    """Rows of the weights."""
    N: int
    """Columns of the weights."""
    panels: BlockPanels
    """How they are stored."""
    product: ProductSpec
    """What else is read."""


def claim(node: Node) -> NBitsSpec | str:
    """Return what a MatMulNBits multiplies, or why it cannot be compiled."""
    K, N, bits, size = (node.integer(name, 4 if name == "bits" else 0) for name in ("K", "N", "bits", "block_size"))
    a, zero_points, bias = given(node.inputs[0]), node.input(_ZERO_POINTS), node.input(_BIAS)
    if bits not in _BITS or size < _LEAST_BLOCK or size & (size - 1) or K < 1 or N < 1 or node.flag("weight_prepacked"):
        return f"{bits} bits in blocks of {size}, {K} rows and {N} columns of weights"
    if node.input(_GROUPS) is not None:
        return "g_idx is given"
    if not shape_of(a) or shape_of(a)[-1] != K:
        return f"A of shape {a.shape} does not end in {K}"
    if {a.dtype, given(node.inputs[_SCALES]).dtype, node.outputs[0].dtype} != {DataType.FLOAT}:
        return f"products of {a.dtype} with scales of {given(node.inputs[_SCALES]).dtype}"
    zero = None if zero_points is None else _ZERO_TYPES.get(zero_points.dtype)
    if zero_points is not None and zero is None:
        return f"zero points of type {zero_points.dtype}"
    blocks = -(-K // size)
    sizes = {_B: N * blocks * size * bits // 8, _SCALES: N * blocks}
    if zero_points is not None:
        sizes[_ZERO_POINTS] = N * (blocks if zero == F32 else -(-blocks * bits // 8))
    problem = next((found for index, count in sizes.items() if (found := _problem_of(node, index, count))), None)
    if problem is not None:
        return problem
    if bias is not None and (bias.shape != (N,) or access_of(node.outputs[0].shape, bias) != COLUMN):
        return f"a bias of {bias.dtype} of shape {bias.shape}"
    return NBitsSpec(K, N, BlockPanels(bits, size, zero), ProductSpec(False, bias is not None, (COLUMN, WHOLE)))


_ZERO_TYPES: dict[DataType | None, Type] = {DataType.UINT8: U8, DataType.FLOAT: F32}


def _problem_of(node: Node, index: int, count: int) -> str | None:
    value = given(node.inputs[index])
    if value.constant is None:
        return f"input {index} is no constant"
    wanted = DataType.UINT8 if index == _B else value.dtype
    fits = value.constant.size == count and value.dtype is wanted
    return None if fits else f"input {index} is {value.constant!r}; expected {count} elements"


def _joins(group: Group, spec: NBitsSpec, member: Member, value: Value) -> bool:
    return joins_product(group, spec.product, member, value)


@lowers("MatMulNBits", claim=claim, joins=_joins, domain="com.microsoft", inputs=3)
def lower(low: Lowering, group: Group, spec: NBitsSpec) -> None:
    """Pack the weights by panels, and multiply."""
    node = group.node
    others = tuple(node.input(index) for index in (_SCALES, _ZERO_POINTS))
    weights = given(node.inputs[_B]).constant
    packed = low.packed(_packed, weights, spec, *others, tiling(low.target).panel, of=node.inputs[_B])
    multiply(low, group, low.of(node.inputs[0]), RightSide(packed, spec.K, spec.N, spec.panels), node.input(_BIAS))


def _packed(weights: Tensor, spec: NBitsSpec, scales: Value, zero_points: Value | None, width: int) -> Array:
    """Return the panels of weights (N, blocks, bytes of a block)."""
    panels, blocks = spec.panels, -(-spec.K // spec.panels.block_size)
    packed = weights.numpy().reshape(spec.N, blocks, -1)
    factors = _elements(scales).reshape(spec.N, blocks)
    zeros = None if zero_points is None else _elements(zero_points).reshape(spec.N, -1)
    if zeros is not None and panels.zero == U8:
        zeros = _numbers(zeros, panels.bits)[:, :blocks]
    return panels.pack(lambda columns: _numbers(packed[columns], panels.bits), factors, zeros, width)


def _elements(value: Value) -> Array:
    if value.constant is None:
        raise ValueError(f"{value!r} is no constant")
    return value.constant.numpy()


def _numbers(packed: Array, bits: int) -> Array:
    """Return the numbers of bytes along the last axis, the first in the lowest bits."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers: Array = (packed[..., None] >> shifts & np.uint8((1 << bits) - 1)).reshape(*packed.shape[:-1], -1)
    return numbers
