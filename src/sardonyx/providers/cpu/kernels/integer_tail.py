"""The epilogue of an integer product: what its operator makes of the sums, and the element-wise nodes that follow.

    QLinearConv -> DequantizeLinear -> Add(DequantizeLinear(residual)) -> QuantizeLinear         one expression of the sums

Operands are of any type that kernels compute with. Scales and zero points are data: layers that differ by them share a kernel.
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument, round_saturated, substitute
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.scalars import scalar
from sardonyx.codegen.emit.types import BOOL, F32, I32, Type
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.kernels.conv import ConvEpilogue
from sardonyx.codegen.kernels.narrowing import Narrowing
from sardonyx.dtypes import Array
from sardonyx.ir import Shape, Value
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise, others_of
from sardonyx.providers.cpu.kernels.quantized.table import starts_table
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.steps import Buffer

__all__ = [
    "IntegerTail",
    "IntegerTailCode",
    "integer_tail",
    "joins_integer",
    "multipliers",
    "place_integer_epilogue",
    "requantized",
]

COLUMN, WHOLE, ONE = "c", "w", "o"
"""How an operand is read: one element for each channel, one for each element of the result, or one for all."""

_MULTIPLIER, _ZERO = -1, -2
"""The arguments of `requantized` that are the factor of a channel and a computed zero point, until operands are numbered."""


def joins_integer(group: Group, spec: object, member: Member, value: Value) -> bool:
    """Return whether a node can be fused into the epilogue of an integer product.

    What it reads besides is one number, one for each channel, or a whole tensor.
    """
    if not _is_stored(element_type(member.node.output.dtype)) or not joins_elementwise(group, spec, member, value):
        return False
    if starts_table(member, value):
        return False
    return all(_way_of(value.shape, other) is not None for other in others_of(member, value))


def _is_stored(kind: Type | None) -> bool:
    return kind is not None and kind != BOOL and kind.bits <= _LANE_BITS


_LANE_BITS = 32


def _way_of(output: Shape | None, operand: Value) -> str | None:
    shape = operand.shape
    if output is None or shape is None or not _is_stored(element_type(operand.dtype)):
        return None
    if all(dim == 1 for dim in shape):
        return ONE
    if shape == output:
        return WHOLE
    return COLUMN if shape[-1] == output[-1] and all(dim == 1 for dim in shape[:-1]) else None


@dataclasses.dataclass(frozen=True, slots=True)
class IntegerTailCode:
    """What the code of an integer product's store depends on."""

    expr: ElementExpr
    """What is stored, of argument 0, the sum in int32, and the operands' elements."""
    ways: str
    """For each of the operands how it is read."""
    kinds: tuple[Type, ...]
    """The types of the operands' elements, which `expr` says too."""


@dataclasses.dataclass(frozen=True, slots=True)
class IntegerTail:
    """The epilogue of an integer product."""

    code: IntegerTailCode
    """What its code depends on."""
    operands: tuple[Buffer, ...]
    """What it reads besides."""

    @property
    def may_be_pitched(self) -> bool:
        """Whether the output's rows may lie apart: no operand is read at the place of what is stored."""
        return WHOLE not in self.code.ways


def requantized(kind: Type, zero_point: int | None) -> ElementExpr:
    """Return a sum times its channel's multiplier, rounded to nearest, ties to even, plus the zero point, saturated to `kind`.

    NaN becomes the least number. A zero point of None is an operand. Source: ONNX QLinearConv-10.
    """
    scaled = argument(0, I32).to(F32) * argument(_MULTIPLIER, F32)
    return round_saturated(scaled, argument(_ZERO, kind).to(I32) if zero_point is None else scalar(zero_point, I32), kind)


def multipliers(scales: tuple[Array, Array, Array], M: int) -> Array:
    """Return x_scale * w_scale / y_scale in float32 for each of M channels; w_scale is one number, or one for each."""
    x_scale, w_scale, y_scale = (scale.astype(np.float32).reshape(-1) for scale in scales)
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(np.broadcast_to(x_scale * w_scale / y_scale, (M,)))


def integer_tail(
    low: Lowering, group: Group, head: ElementExpr | None = None, multiplier: Buffer | None = None, zero: Buffer | None = None
) -> IntegerTail:
    """Return the group's tail.

    Args:
        low: the partition.
        group: the product and what follows.
        head: the element that the product's operator makes of the sum, as `requantized` gives it; None for the sum itself.
        multiplier: the factor of each channel that the head reads.
        zero: the zero point that the head reads, where that is no number.
    """
    expr, values = low.epilogue(group, head)
    operands = [low.of(value) for value in values]
    ways = [_way_of(group.result.shape, value) or "?" for value in values]
    if multiplier is not None:
        operands, ways = [*operands, multiplier], [*ways, COLUMN]
        expr = substitute(expr, {_MULTIPLIER: argument(len(operands), F32)})
    if zero is not None:
        operands, ways = [*operands, zero], [*ways, ONE]
        expr = substitute(expr, {_ZERO: argument(len(operands), element_type(zero.dtype) or I32)})
    kinds = tuple(element_type(buffer.dtype) or F32 for buffer in operands)
    return IntegerTail(IntegerTailCode(expr, "".join(ways), kinds), tuple(operands))


def place_integer_epilogue(tail: IntegerTailCode, first: int) -> ConvEpilogue | None:
    """Return the tail as a kernel writes it that knows the place of what it stores.

    Its operands are the buffers from `first` on.
    """
    expr = tail.expr
    if expr.primitive == "argument":
        return None
    if expr.primitive != "round_saturated" or expr.type.bits != _BYTE or not _is_number(expr.operands[1]):
        return _epilogue(tail, expr, first)
    x, zero = expr.operands[:2]
    return Narrowing(
        _epilogue(tail, expr, first), _epilogue(tail, x, first), lambda b: write_expressions(b, [zero], [])[0], expr.type
    )


_BYTE = 8


def _is_number(expr: ElementExpr) -> bool:
    """Return whether an expression is one number for all elements."""
    return not expr.operands and expr.primitive in ("constant", "parameter")


def _epilogue(tail: IntegerTailCode, expr: ElementExpr, first: int) -> ConvEpilogue:
    def write(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
        operands = [sums]
        for index, (way, kind) in enumerate(zip(tail.ways, tail.kinds, strict=True)):
            buffer = b.buffer(first + index, kind)
            if way == ONE:
                operands.append(buffer.load().splat(span.lanes))
            else:
                operands.append(buffer.load(column if way == COLUMN else place, span))
        return write_expressions(b, [expr], operands)[0]

    return write
