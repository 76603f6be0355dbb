"""Custom operators whose expressions fold rows: one kernel with all folds, and the element-wise nodes after it in its store."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, substitute
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.row_expr import RowFold, split_rows
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.kernels.lines import Along
from sardonyx.codegen.kernels.rows import write_rows
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.providers.cpu.claims import ROWS, lowers
from sardonyx.providers.cpu.expressions import argument_of, element_type, expression, expression_symbol
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.lines import Lines, LinesCode, is_uniform, joins_lines
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes


@dataclasses.dataclass(frozen=True, slots=True)
class RowsSpec:
    """An expression that folds rows."""

    expr: ElementExpr
    """What is computed, of the node's inputs by number."""
    source: int
    """The input that has the shape of the output, and float32 elements."""
    others: tuple[int, ...]
    """The other inputs that are there."""


def claim(node: Node) -> RowsSpec | str:
    """Return what an operator that folds rows computes, or why it cannot be compiled."""
    shape = node.output.shape
    if node.output.dtype is not DataType.FLOAT or not shape:
        return f"an expression along rows that makes {node.output.type}"
    present = {index: value for index, value in enumerate(node.inputs) if value is not None}
    whole = [index for index, value in present.items() if value.dtype is DataType.FLOAT and value.shape == shape]
    if not whole:
        return f"that a float input has the shape {shape} of the output {open_or_wrong(shape)}"
    for index, value in present.items():
        if element_type(value.dtype) is None:
            return f"input {index} has elements of type {value.dtype}"
        if not is_uniform(shape, shape_of(value), len(shape) - 1):
            return f"that input {index} of shape {value.shape} is broadcast to {shape} {open_or_wrong(value.shape, shape)}"
    operands = [None if value is None else _argument(index, value) for index, value in enumerate(node.inputs)]
    try:
        expr = expression(node, operands)
    except TypeError as error:
        return str(error)
    split = split_rows(expr, len(node.inputs))
    if any(fold.expr.type != F32 for fold in split.folds) or split.result.type != F32:
        return "it folds rows of another type than float32"
    return RowsSpec(expr, whole[0], tuple(index for index in present if index != whole[0]))


def _argument(index: int, value: Value) -> ElementExpr:
    return argument_of(index, value.dtype or DataType.UNDEFINED)


def joins_rows(group: Group, spec: RowsSpec, member: Member, value: Value) -> bool:
    """Return whether an element-wise node can be computed where a row is written."""
    return joins_lines(len(value.shape or ()) - 1, group, member, value)


@dataclasses.dataclass(frozen=True, slots=True)
class FoldedRowsKernel:
    """An expression that folds rows."""

    folds: tuple[RowFold, ...]
    """What is folded, in order."""
    after: ElementExpr
    """What is stored, of the element, the extra operands and the folds."""
    lines: LinesCode
    """How rows and extra operands are walked."""
    source: Type = F32
    """The type of the elements that are folded."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        ways = "_".join(fold.way.removeprefix("row_") for fold in self.folds)
        kind = "" if self.source == F32 else f"of_{self.source.kind.value}{self.source.bits}"
        return expression_symbol(target, "rows", [*(fold.expr for fold in self.folds), self.after], ways, self.lines.name, kind)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        extra_operands = self.lines.extra_operands
        write_rows(module, symbol, folds=self.folds, after=self.after, extra_operands=extra_operands, source=self.source)


@lowers("Rows", claim=claim, joins=joins_rows, domain=ROWS, inputs=0)
def rows(low: Lowering, group: Group, spec: RowsSpec) -> None:
    """Lower to one kernel."""
    node = group.node
    tail, values = low.epilogue(group)
    operands = [low.of(value) for value in (*values, *(node.inputs[index] for index in spec.others))]
    places = {spec.source: 0, **{index: 1 + len(values) + k for k, index in enumerate(spec.others)}}
    moved = {index: _argument(place, given(node.inputs[index])) for index, place in places.items() if index or place}
    split = split_rows(substitute(spec.expr, moved), 1 + len(operands))
    after = substitute(tail, {0: split.result})
    source, result = low.of(node.inputs[spec.source]), low.result(group.result)
    axis = len(result.shape) - 1
    lines = Lines(result.shape, axis, axis, Along.ROWS, [(buffer.dtype, buffer.shape) for buffer in operands])
    symbol = low.kernel(FoldedRowsKernel(split.folds, after, lines.code, argument_of(0, source.dtype).type))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = lines.params(sizes)
        return [*params.words(), *lines.walk(sizes)], params.tasks()

    in_place = [0] if source.dtype is result.dtype else []
    low.step(group, symbol, [source, result, *operands], writes=[1], plan=plan, in_place=in_place)
