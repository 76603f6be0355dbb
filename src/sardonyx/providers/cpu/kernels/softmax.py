"""Softmax and LogSoftmax along any axis: rows where the axis is the last, columns where it is not."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.kernels.lines import Along
from sardonyx.codegen.kernels.softmax import (
    BLOCK_WAYS,
    LEAST_LINES,
    MOST_BLOCKS,
    ColumnBlocks,
    write_block_softmax,
    write_column_parts,
    write_softmax,
)
from sardonyx.codegen.target import Target
from sardonyx.ir import Node, Shape, Value
from sardonyx.ir.shape import minimum, product
from sardonyx.ops.views.softmax import Softmax
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type, expression_symbol
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.lines import NARROWED, Lines, LinesCode, joins_lines
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

_WAYS = {"Hardmax": "hardmax", "LogSoftmax": "log_softmax", "Softmax": "softmax"}
"""Operator -> how its kernel normalizes lines."""


@dataclasses.dataclass(frozen=True, slots=True)
class SoftmaxSpec:
    """A softmax, or one of its kin."""

    way: str
    """How lines are normalized."""
    first: int
    """The first axis that is folded."""
    split: int
    """The axis at which lines begin."""
    along: Along
    """What is folded."""
    kind: Type
    """The type of the elements."""


def claim(node: Node) -> SoftmaxSpec | str:
    """Return what one of these operators normalizes along, or why it cannot be compiled."""
    shape, dtype = shape_of(node.inputs[0]), given(node.inputs[0]).dtype
    kind = element_type(dtype)
    if kind not in (F32, F64):
        return f"{node.op_type} of elements of type {dtype}"
    if not shape:
        return f"{node.op_type} of a scalar"
    view = Softmax.of(node)
    axis = view.first(len(shape))
    is_row = view.is_flat or all(dim == 1 for dim in shape[axis + 1 :])
    split, along = (axis, Along.ROWS) if is_row else (axis + 1, Along.COLUMNS)
    return SoftmaxSpec(_WAYS[node.op_type], axis, split, along, kind)


def _joins(group: Group, spec: SoftmaxSpec, member: Member, value: Value) -> bool:
    return joins_lines(spec.split, group, member, value, NARROWED)


@dataclasses.dataclass(frozen=True, slots=True)
class SoftmaxKernel:
    """A softmax of lines, or one of its kin."""

    way: str
    """How lines are normalized: one of WAYS."""
    lines: LinesCode
    """How they and the extra operands are walked."""
    after: ElementExpr
    """What is stored, of the normalized element and the extra operands."""
    kind: Type
    """The type of what is normalized."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        kind = "" if self.kind == F32 else f"{self.kind.text}_"
        return expression_symbol(target, self.way, [self.after], f"{kind}{self.lines.name}")

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        extra_operands = self.lines.extra_operands
        write_softmax(module, symbol, self.lines.along, self.way, after=self.after, extra_operands=extra_operands, kind=self.kind)


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnPartsKernel:
    """The greatest and the sum of blocks of columns."""

    kind: Type
    """The type of what is normalized."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"softmax_parts_{self.kind.text}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_column_parts(module, symbol, self.kind)


@dataclasses.dataclass(frozen=True, slots=True)
class BlockSoftmaxKernel:
    """A softmax of blocks of columns of which the parts are known."""

    way: str
    """How lines are normalized: one of BLOCK_WAYS."""
    after: ElementExpr
    """What is stored, of the normalized element."""
    kind: Type
    """The type of what is normalized."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(target, f"{self.way}_blocks", [self.after], self.kind.text)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_block_softmax(module, symbol, self.way, self.after, self.kind)


@lowers(*_WAYS, claim=claim, joins=_joins)
def softmax(low: Lowering, group: Group, spec: SoftmaxSpec) -> None:
    """Lower to one kernel that reads a row or column once and writes it once; a few long columns to two, of blocks of lines."""
    source = low.of(group.node.inputs[0])
    after, operands = low.epilogue(group)
    extra_operands = [low.of(value) for value in operands]
    result = low.result(group.result)
    lines = Lines(result.shape, spec.first, spec.split, spec.along, [(buffer.dtype, buffer.shape) for buffer in extra_operands])
    may_cut = spec.along is Along.COLUMNS and spec.way in BLOCK_WAYS and not extra_operands
    is_cut = _is_cut(lines, result.shape) if may_cut else False
    in_place = [0] if result.dtype is source.dtype else []
    if is_cut is not False:
        _add_blocks(low, group, spec, after, (source, result), lines, in_place if is_cut else [])
    if is_cut:
        return
    symbol = low.kernel(SoftmaxKernel(spec.way, lines.code, after, spec.kind))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = lines.params(sizes)
        cut = may_cut and ColumnBlocks(params).are_wanted
        return [*params.words(), *lines.walk(sizes)], 0 if cut else params.tasks()

    in_place = in_place if is_cut is False else []
    low.step(group, symbol, [source, result, *extra_operands], writes=[1], plan=plan, in_place=in_place)


def _is_cut(lines: Lines, shape: Shape) -> bool | None:
    """Return whether columns are cut into blocks; None where that depends on sizes that are not known."""
    if not all(isinstance(dim, int) for dim in shape):
        return None
    return ColumnBlocks(lines.params(Sizes({}))).are_wanted


def _add_blocks(
    low: Lowering,
    group: Group,
    spec: SoftmaxSpec,
    after: ElementExpr,
    buffers: tuple[Buffer, Buffer],
    lines: Lines,
    in_place: list[int],
) -> None:
    (source, result), shape = buffers, buffers[1].shape
    outer, count, length = product(shape[: spec.first]), product(shape[spec.first : spec.split]), product(shape[spec.split :])
    parts = low.temporary(source.dtype, (outer, minimum(count // (LEAST_LINES // 8), MOST_BLOCKS), 2, length))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        blocks = ColumnBlocks(lines.params(sizes))
        return blocks.words(), blocks.tasks() if blocks.are_wanted else 0

    low.step(group, low.kernel(ColumnPartsKernel(spec.kind)), [source, parts], writes=[1], plan=plan)
    symbol = low.kernel(BlockSoftmaxKernel(spec.way, after, spec.kind))
    low.step(group, symbol, [source, parts, result], writes=[2], plan=plan, in_place=in_place)
