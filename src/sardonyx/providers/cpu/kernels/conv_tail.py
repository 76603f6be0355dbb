"""The epilogue of a convolution: the bias, and the element-wise nodes that follow."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument, substitute
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.types import F32, F64
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.kernels.conv import ConvEpilogue
from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise, others_of
from sardonyx.providers.cpu.kernels.matmul import COLUMN, WHOLE, access_of
from sardonyx.providers.cpu.lowering import Lowering

__all__ = ["Tail", "TailCode", "joins_conv", "place_epilogue", "tail_of"]


def joins_conv(group: Group, spec: object, member: Member, value: Value) -> bool:
    """Return whether a node can be fused into the epilogue.

    What it reads besides is one number, one for each channel, or a whole tensor.
    """
    if member.node.output.dtype is not DataType.FLOAT or not joins_elementwise(group, spec, member, value):
        return False
    return all(access_of(value.shape, other) in (COLUMN, WHOLE) for other in others_of(member, value))


@dataclasses.dataclass(frozen=True, slots=True)
class TailCode:
    """What the code of a convolution's store depends on."""

    expr: ElementExpr
    """What is stored, of argument 0, the sum, and the operands' elements."""
    ways: str
    """For each of the operands how it is read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tail:
    """The epilogue of a convolution."""

    code: TailCode
    """What its code depends on."""
    operands: tuple[Value, ...]
    """The tensors that it reads besides."""

    @property
    def expr(self) -> ElementExpr:
        """What is stored."""
        return self.code.expr

    @property
    def ways(self) -> str:
        """How each operand is read."""
        return self.code.ways

    @property
    def may_be_pitched(self) -> bool:
        """Whether the output's rows may lie apart: no operand is read at the place of what is stored."""
        return WHOLE not in self.ways


def tail_of(low: Lowering, group: Group, bias: Value | None) -> Tail:
    """Return the group's tail, after the bias."""
    expr, operands = low.epilogue(group)
    if bias is not None:
        operands = [*operands, bias]
        kind = F64 if bias.dtype is DataType.DOUBLE else F32
        expr = substitute(expr, {0: argument(0, kind) + argument(len(operands), kind)})
    ways = "".join(access_of(group.result.shape, value, value.dtype or DataType.FLOAT) or "?" for value in operands)
    return Tail(TailCode(expr, ways), tuple(operands))


def place_epilogue(tail: TailCode, first: int) -> ConvEpilogue | None:
    """Return the tail as a kernel writes it that knows the place of what it stores.

    Its operands are the buffers from `first` on.
    """
    if tail.expr.primitive == "argument":
        return None

    def write(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
        places = [column if way == COLUMN else place for way in tail.ways]
        operands = [b.buffer(first + index, sums.type.scalar).load(place, span) for index, place in enumerate(places)]
        return write_expressions(b, [tail.expr], [sums, *operands])[0]

    return write
