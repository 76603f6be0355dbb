"""MatMulNBits of com.microsoft: products with weights of 2 to 8 bits, which are decoded as they are multiplied.

Numbers of other widths than 2, 4 and 8 are stored in the next of these.

accuracy_level 4, on processors with dot products of integers  rows are rounded to 8 bits by blocks, integers multiplied
few rows, on processors with dot products of four bytes        rows are written in digits of 8 bits, exactly (`digit_blocks`)
else                                                           weights are decoded: (number - zero point) x scale in float32

The last two differ by the roundings of float32 sums; which one is taken is decided by the rows of a run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.bit_fields import unpack_bits
from sardonyx.codegen.emit.dots import has_dot4, has_pairs
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, U8, Type
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.panels import BlockPanels
from sardonyx.codegen.kernels.quantized.digit_blocks import DigitParams, digit_bytes, write_digit_blocks, write_digits
from sardonyx.codegen.kernels.quantized.dot_blocks import (
    ROW_LENGTH,
    DotParams,
    QuantizeParams,
    q_bytes,
    write_dot_blocks,
    write_quantize_blocks,
)
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Tensor, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import expression_symbol
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.matmul import (
    COLUMN,
    WHOLE,
    ProductSpec,
    RightSide,
    access_of,
    epilogue_of,
    joins_product,
    multiply,
    tail_of,
    ways_of,
)
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.precision import BYTES, FLOAT32, with_weights
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

_B, _SCALES, _ZERO_POINTS, _GROUPS, _BIAS = range(1, 6)
_STORED_BITS = {2: 2, 3: 4, 4: 4, 5: 8, 6: 8, 7: 8, 8: 8}
"""Bits of a number -> bits that it is stored in."""
_LEAST_BLOCK = 16
_DIGIT_ROWS = 4
"""Rows that are written in digits at most: to decode weights for more of them takes less."""
_BYTES = 4
"""The accuracy level that allows rows of int8. Source: com.microsoft MatMulNBits."""


@dataclasses.dataclass(frozen=True, slots=True)
class NBitsSpec:
    """A product with weights of few bits."""

    K: int
    """Rows of the weights."""
    N: int
    """Columns of the weights."""
    bits: int
    """Of a weight in the model."""
    panels: BlockPanels
    """How they are stored."""
    product: ProductSpec
    """What else is read."""
    allows_bytes: bool
    """Whether the rows may be rounded to 8 bits: where that is allowed, but for zero points in floats, as in onnxruntime."""


def claim(node: Node) -> NBitsSpec | str:
    """Return what a MatMulNBits multiplies, or why it cannot be compiled."""
    K, N, bits, size = (node.integer(name, 4 if name == "bits" else 0) for name in ("K", "N", "bits", "block_size"))
    level = node.integer("accuracy_level", 0)
    a, zero_points, bias = given(node.inputs[0]), node.input(_ZERO_POINTS), node.input(_BIAS)
    if bits not in _STORED_BITS or size < _LEAST_BLOCK or size & (size - 1) or K < 1 or N < 1 or node.flag("weight_prepacked"):
        return f"{bits} bits in blocks of {size}, {K} rows and {N} columns of weights"
    if node.input(_GROUPS) is not None:
        return "g_idx is given"
    if not shape_of(a) or shape_of(a)[-1] != K:
        return f"A of shape {a.shape} does not end in {K}"
    if {a.dtype, given(node.inputs[_SCALES]).dtype, node.outputs[0].dtype} != {DataType.FLOAT}:
        return f"products of {a.dtype} with scales of {given(node.inputs[_SCALES]).dtype}"
    zero = None if zero_points is None and _STORED_BITS[bits] == bits else U8
    if zero_points is not None:
        zero = _ZERO_TYPES.get(zero_points.dtype)
        if zero is None:
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
    panels = BlockPanels(_STORED_BITS[bits], size, zero)
    return NBitsSpec(K, N, bits, panels, ProductSpec(False, bias is not None, (COLUMN, WHOLE)), level == _BYTES and zero != F32)


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
    node, width, bias = group.node, tiling(low.target).panel, group.node.input(_BIAS)
    others = tuple(node.input(index) for index in (_SCALES, _ZERO_POINTS))
    weights = given(node.inputs[_B]).constant
    in_bytes = spec.allows_bytes and (has_dot4(low.target) or has_pairs(low.target))
    packed = low.packed(_packed, weights, spec.panels, spec.bits, spec.K, spec.N, *others, width, of=node.inputs[_B])
    left = low.of(node.inputs[0])
    if in_bytes:
        _multiply_bytes(low, group, spec, left, packed)
        return
    rows, right = product(left.shape[:-1]), RightSide(packed, spec.K, spec.N, spec.panels)
    if (isinstance(rows, int) and rows > _DIGIT_ROWS) or spec.panels.zero == F32 or not has_dot4(low.target):
        multiply(low, group, left, right, bias)
        return

    def are_few(sizes: Sizes) -> bool:
        return sizes(rows) <= _DIGIT_ROWS

    result = low.result(group.result)
    _multiply_digits(low, group, spec, left, packed, result, unless=lambda sizes: not are_few(sizes))
    if not isinstance(rows, int):
        multiply(low, group, left, right, bias, result=result, unless=are_few)


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizeBlocksKernel:
    """Rows rounded to 8 bits by blocks."""

    block_size: int
    """Elements that share a scale."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"quantize_blocks_{self.block_size}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_quantize_blocks(module, symbol, self.block_size)


@dataclasses.dataclass(frozen=True, slots=True)
class DotBlocksKernel:
    """A product of rows of 8 bits with weights of few bits."""

    panels: BlockPanels
    """How the weights are stored."""
    expr: ElementExpr
    """What is stored, of argument 0, the sum, and the elements of operands."""
    ways: str
    """For each operand how it is read."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(target, f"dot_{self.panels.name}", [self.expr], self.ways)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_dot_blocks(module, symbol, self.panels, epilogue_of(self.expr, self.ways, ROW_LENGTH))


@dataclasses.dataclass(frozen=True, slots=True)
class DigitsKernel:
    """Rows written in digits of 8 bits by blocks."""

    block_size: int
    """Elements that share a unit."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"digits_{self.block_size}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_digits(module, symbol, self.block_size)


@dataclasses.dataclass(frozen=True, slots=True)
class DigitBlocksKernel:
    """A product of digits with weights of few bits."""

    panels: BlockPanels
    """How the weights are stored."""
    expr: ElementExpr
    """What is stored, of argument 0, the sum, and the elements of operands."""
    ways: str
    """For each operand how it is read."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(target, f"digits_{self.panels.name}", [self.expr], self.ways)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_digit_blocks(module, symbol, self.panels, epilogue_of(self.expr, self.ways, ROW_LENGTH))


def _multiply_digits(
    low: Lowering,
    group: Group,
    spec: NBitsSpec,
    left: Buffer,
    packed: Buffer,
    result: Buffer,
    unless: Callable[[Sizes], bool],
) -> None:
    """Add the steps that write rows of `left` (…, K) in digits and multiply them, with the tail of the group."""
    size, width, rows = spec.panels.block_size, tiling(low.target).panel, product(left.shape[:-1])
    blocks = -(-spec.K // size)
    digits = low.temporary(DataType.UINT8, (_DIGIT_ROWS, blocks, digit_bytes(size)))

    def plan_digits(sizes: Sizes) -> tuple[list[int], int]:
        return QuantizeParams(spec.K, blocks).words(), sizes(rows) * blocks

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = DigitParams(sizes(rows), spec.N, blocks, spec.K)
        return params.words(), params.tasks(width)

    low.move("Digits", low.kernel(DigitsKernel(size)), [left, digits], plan_digits, group.node, unless=unless)
    expr, reads = tail_of(low, group, group.node.input(_BIAS))
    symbol = low.kernel(DigitBlocksKernel(spec.panels, expr, ways_of(result, reads)))
    buffers, precision = [digits, packed, result, *map(low.of, reads)], with_weights(FLOAT32, f"{spec.bits} bits")
    low.step(group, symbol, buffers, writes=[2], plan=plan, unless=unless, precision=precision)


def _multiply_bytes(low: Lowering, group: Group, spec: NBitsSpec, left: Buffer, packed: Buffer) -> None:
    """Add the steps that round the rows of `left` (…, K) and multiply them, with the tail of the group."""
    panels = spec.panels
    rows, blocks, size = product(left.shape[:-1]), -(-spec.K // panels.block_size), panels.block_size
    width = tiling(low.target).panel
    rounded = low.temporary(DataType.UINT8, (rows, blocks, q_bytes(size)))

    def plan_rounding(sizes: Sizes) -> tuple[list[int], int]:
        return QuantizeParams(spec.K, blocks).words(), sizes(rows)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = DotParams(sizes(rows), spec.N, blocks)
        return params.words(), params.tasks(width)

    low.move("Quantize", low.kernel(QuantizeBlocksKernel(size)), [left, rounded], plan_rounding, group.node)
    expr, reads = tail_of(low, group, group.node.input(_BIAS))
    result = low.result(group.result)
    symbol = low.kernel(DotBlocksKernel(panels, expr, ways_of(result, reads)))
    buffers, precision = [rounded, packed, result, *map(low.of, reads)], with_weights(BYTES, f"{spec.bits} bits")
    low.step(group, symbol, buffers, writes=[2], plan=plan, precision=precision)


def _packed(
    weights: Tensor, panels: BlockPanels, bits: int, K: int, N: int, scales: Value, zero_points: Value | None, width: int
) -> Array:
    """Return the panels of weights (N, blocks, bytes of a block)."""
    blocks = -(-K // panels.block_size)
    packed = weights.numpy().reshape(N, blocks, -1)
    factors = _elements(scales).reshape(N, blocks)
    zeros = None if zero_points is None else _elements(zero_points).reshape(N, -1)
    if zeros is not None and panels.zero == U8:
        zeros = unpack_bits(zeros, bits)[:, :blocks]
    elif panels.zero == U8:
        zeros = np.full((N, blocks), 1 << (bits - 1), np.uint8)
    return panels.pack(lambda columns: unpack_bits(packed[columns], bits), factors, zeros, width)


def _elements(value: Value) -> Array:
    if value.constant is None:
        raise ValueError(f"{value!r} is no constant")
    return value.constant.numpy()
