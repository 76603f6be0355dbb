"""Reductions over any axes, global pools, positions of extremes, and running sums.

Neighbouring axes that are all reduced, or all kept, are one. The last reduced one is reduced first, into a temporary where others
are left:

    (kept, reduced)            rows
    (kept, reduced, kept)      columns
    (r, k, r), (r, k, r, k)    two steps, or more
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument, substitute
from sardonyx.codegen.emit.folds import PRODUCT, SUM
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, U8, Type
from sardonyx.codegen.kernels.lines import TASK_ELEMENTS, Along, LineParams
from sardonyx.codegen.kernels.reduce import (
    CUMULATIVE_BLOCK,
    CumulativeParams,
    write_cumulative,
    write_cumulative_rows,
    write_cumulative_totals,
    write_extreme,
    write_reduce,
)
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape
from sardonyx.ir.shape import ceil_div, maximum, product
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.inputs import constants
from sardonyx.ops.views.reduce import ArgExtreme, Cumulative, Reduce
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import argument_of, expression_symbol, scalar_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import joins_alone
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, index_type, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Plan


@dataclasses.dataclass(frozen=True, slots=True)
class ReduceSteps:
    """The kernels of a reduction, by their names in codegen.reduce."""

    only: str
    """The one step where there is one."""
    first: str
    """The first of several."""
    middle: str
    """Those between."""
    last: str
    """The last of several."""
    integers: bool = False
    """Whether it is defined for integers."""
    bytes: bool = False
    """Whether those may have 8 bits, or be bools."""


def _same(name: str) -> ReduceSteps:
    return ReduceSteps(name, name, name, name, integers=True)


_REDUCTIONS: dict[str, ReduceSteps] = {
    "ReduceL1": ReduceSteps("norm_1", "norm_1", "sum", "sum", integers=True),
    "ReduceL2": ReduceSteps("norm_2", "sum_square", "sum", "root"),
    "ReduceLogSum": ReduceSteps("log_sum", "sum", "sum", "log_sum"),
    "ReduceLogSumExp": ReduceSteps("log_sum_exp", "log_sum_exp", "log_sum_exp", "log_sum_exp"),
    "ReduceMax": dataclasses.replace(_same("max"), bytes=True),
    "ReduceMean": ReduceSteps("mean", "sum", "sum", "mean", integers=True),
    "ReduceMin": dataclasses.replace(_same("min"), bytes=True),
    "ReduceProd": _same("prod"),
    "ReduceSum": _same("sum"),
    "ReduceSumSquare": ReduceSteps("sum_square", "sum_square", "sum", "sum", integers=True),
}
_POOLS = {"GlobalAveragePool": _REDUCTIONS["ReduceMean"], "GlobalMaxPool": _REDUCTIONS["ReduceMax"]}
_FLOATS = (DataType.FLOAT, DataType.DOUBLE)
_INTEGERS = (DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64)
_BYTES = (DataType.INT8, DataType.UINT8)
_SMALL = (*_BYTES, DataType.INT16, DataType.UINT16)


@dataclasses.dataclass(frozen=True, slots=True)
class ReduceSpec:
    """A reduction."""

    axes: tuple[int, ...]
    """The axes that are reduced, from the front and in order."""
    steps: ReduceSteps
    """The kernels that do it."""


def _axes_of(node: Node, rank: int) -> tuple[int, ...] | str:
    """Return the axes that a node reduces, from the front and in order, or why they are not known."""
    if node.op_type in _POOLS:
        return tuple(range(1, rank - 1) if node.domain == NHWC_DOMAIN else range(2, rank))
    axes = Reduce.of(node, constants(node)).places(rank)
    return "its axes are computed" if axes is None else axes


def claim(node: Node) -> ReduceSpec | str:
    """Return the axes that a node reduces, or why it cannot be compiled."""
    steps, rank = _REDUCTIONS.get(node.op_type) or _POOLS[node.op_type], len(shape_of(node.inputs[0]))
    before, dtype = given(node.inputs[0]).dtype, node.outputs[0].dtype
    if before is not dtype:
        return f"elements of type {before} become others of type {dtype}"
    if not (dtype in _FLOATS or (steps.integers and dtype in _INTEGERS) or (steps.bytes and dtype in (*_BYTES, DataType.BOOL))):
        return f"{node.op_type} of elements of type {dtype}"
    if node.op_type in _POOLS and rank < 3:
        return f"{node.op_type} of {rank} dimensions"
    axes = _axes_of(node, rank)
    return axes if isinstance(axes, str) else ReduceSpec(axes, steps)


@dataclasses.dataclass(frozen=True, slots=True)
class ReduceKernel:
    """A reduction of lines."""

    name: str
    """One of REDUCTIONS."""
    along: Along
    """What is reduced."""
    kind: Type
    """The type of elements."""
    after: ElementExpr
    """What is stored, of the result."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(target, f"reduce_{self.name}_{self.along.value}", [self.after])

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_reduce(module, symbol, self.along, self.name, self.kind, self.after)


@lowers(*_POOLS, claim=claim, joins=joins_alone, domain=NHWC_DOMAIN)
@lowers(*_REDUCTIONS, *_POOLS, claim=claim, joins=joins_alone)
def reduce(low: Lowering, group: Group, spec: ReduceSpec) -> None:
    """Lower to a step for each run of reduced axes, the last one first; the element-wise tail joins the last step."""
    node, steps, axes = group.node, spec.steps, spec.axes
    source, result = low.of(node.inputs[0]), low.result(group.result)
    count = product(source.shape[axis] for axis in axes)
    runs = _runs(source.shape, axes)
    places = [place for place, (_, reduced) in enumerate(runs) if reduced]
    for number, place in enumerate(reversed(places)):
        is_last = number == len(places) - 1
        name = steps.only if len(places) == 1 else steps.last if is_last else steps.first if number == 0 else steps.middle
        left = runs[:place] + runs[place + 1 :]
        target = result if is_last else low.temporary(source.dtype, tuple(dim for dim, _ in left))
        dims = [dim for dim, _ in runs]
        _add_step(low, group, name, (source, target), (dims[:place], dims[place], dims[place + 1 :]), count, is_last=is_last)
        source, runs = target, left


def _runs(shape: Shape, axes: Sequence[int]) -> list[tuple[Dim, bool]]:
    """Return the dimensions, neighbours of one kind merged, each with whether it is reduced.

    At least one is, if only of one element.
    """
    runs: list[tuple[Dim, bool]] = []
    for axis, dim in enumerate(shape):
        if dim == 1:
            continue
        if runs and runs[-1][1] == (axis in axes):
            runs[-1] = runs[-1][0] * dim, runs[-1][1]
        else:
            runs.append((dim, axis in axes))
    return runs if any(reduced for _, reduced in runs) else [(1, True), *runs]


def _add_step(
    low: Lowering,
    group: Group,
    name: str,
    buffers: tuple[Buffer, Buffer],
    view: tuple[Sequence[Dim], Dim, Sequence[Dim]],
    count: Dim,
    *,
    is_last: bool,
) -> None:
    """Reduce the middle one of three runs of dimensions; bools as the bytes that they are."""
    kind = U8 if buffers[0].dtype is DataType.BOOL else _type(buffers[0])
    expr = argument(0, kind)
    if is_last:
        expr = low.epilogue(group)[0]
        expr = substitute(expr, {0: argument(0, kind).to(BOOL)}) if buffers[0].dtype is DataType.BOOL else expr
    along = Along.COLUMNS if view[2] else Along.ROWS
    symbol = low.kernel(ReduceKernel(name, along, kind, expr))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = _params(sizes, view, along)
        return [*params.words(), sizes.float_word(count)], params.tasks()

    low.step(group, symbol, buffers, writes=[1], plan=plan)


def _params(sizes: Sizes, view: tuple[Sequence[Dim], Dim, Sequence[Dim]], along: Along) -> LineParams:
    outer, lines, length = sizes.product(view[0]), sizes(view[1]), sizes.product(view[2])
    return LineParams(outer, lines, length, along) if along is Along.COLUMNS else LineParams(outer, 1, lines, along)


def _type(buffer: Buffer) -> Type:
    return argument_of(0, buffer.dtype).type


_SEARCHED = (*_FLOATS, *_INTEGERS)


def _lines_problem(node: Node, others: Collection[DataType] = ()) -> str | None:
    """Return why the first input has no lines of floats, of integers of 32 or 64 bits, or of `others`; None where it has."""
    shape, dtype = shape_of(node.inputs[0]), given(node.inputs[0]).dtype
    if dtype not in _SEARCHED and dtype not in others:
        return f"{node.op_type} of elements of type {dtype}"
    return None if shape else f"{node.op_type} of a scalar"


@dataclasses.dataclass(frozen=True, slots=True)
class ExtremeSpec:
    """The position of an extreme."""

    axis: int
    """The axis that is searched."""
    greatest: bool
    """Whether the greatest or the least is wanted."""
    last: bool
    """Whether the last or the first of several is wanted."""


def claim_extreme(node: Node) -> ExtremeSpec | str:
    """Return what an ArgMax or ArgMin searches, or why it cannot be compiled."""
    view = ArgExtreme.of(node)
    problem = _lines_problem(node, _SMALL)
    return problem or ExtremeSpec(view.place(len(shape_of(node.inputs[0]))), node.op_type == "ArgMax", view.takes_last)


@dataclasses.dataclass(frozen=True, slots=True)
class ExtremeKernel:
    """The place of an extreme."""

    along: Along
    """What is searched."""
    kind: Type
    """The type of elements."""
    greatest: bool
    """Whether the greatest or the least is wanted."""
    last: bool
    """Whether the last or the first of several is wanted."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(
            target,
            f"arg_{'max' if self.greatest else 'min'}_{'last' if self.last else 'first'}_{self.along.value}",
            [argument(0, self.kind)],
        )

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_extreme(module, symbol, self.along, self.kind, greatest=self.greatest, last=self.last)


@lowers("ArgMax", "ArgMin", claim=claim_extreme)
def arg_extreme(low: Lowering, group: Group, spec: ExtremeSpec) -> None:
    """Lower to a kernel that finds the extreme, and then where it is."""
    node, axis = group.node, spec.axis
    source, result = low.of(node.inputs[0]), low.result(group.result)
    after = source.shape[axis + 1 :]
    along, kind = Along.ROWS if all(dim == 1 for dim in after) else Along.COLUMNS, _type(source)
    symbol = low.kernel(ExtremeKernel(along, kind, spec.greatest, spec.last))
    view = source.shape[:axis], source.shape[axis], after

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = _params(sizes, view, along)
        if not 0 < sizes(view[1]) < 1 << 31:
            raise InvalidArgument(f"{node.op_type} along an axis of {sizes(view[1])} elements; give it 1 to 2^31 - 1")
        return params.words(), params.tasks()

    low.step(group, symbol, [source, result], writes=[1], plan=plan)


@dataclasses.dataclass(frozen=True, slots=True)
class CumulativeSpec:
    """A running sum or product."""

    axis: int
    """The axis that it runs along."""
    exclusive: bool
    """Whether an element itself is left out."""
    reverse: bool
    """Whether it begins at the last element."""


def claim_cumulative(node: Node) -> CumulativeSpec | str:
    """Return what a CumSum adds up, or a CumProd multiplies, or why it cannot be compiled."""
    view, problem, kind = Cumulative.of(node), _lines_problem(node), index_type(node.inputs[1])
    if problem is not None or isinstance(kind, str):
        return problem or f"an axis that is no integer: {kind}"
    number = scalar_of(node, 1)
    if number is None:
        return "its axis is computed"
    axis = normalize_axis(int(number), len(shape_of(node.inputs[0])))
    return CumulativeSpec(axis, view.is_exclusive, view.is_reversed)


@dataclasses.dataclass(frozen=True, slots=True)
class CumulativeKernel:
    """Running sums or products."""

    way: str
    """`columns`, `rows`, or `totals` of blocks of rows."""
    kind: Type
    """The type of elements."""
    multiplies: bool
    """Whether elements are multiplied, or added up."""
    exclusive: bool
    """Whether an element itself is left out."""
    reverse: bool
    """Whether it begins at the last element."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        name = f"cumulative_{'product' if self.multiplies else 'sum'}_{self.way}"
        words = "exclusive" if self.exclusive else "", "reverse" if self.reverse else ""
        return expression_symbol(target, name, [argument(0, self.kind)], *words)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        fold = PRODUCT if self.multiplies else SUM
        if self.way == "totals":
            write_cumulative_totals(module, symbol, fold, self.kind, reverse=self.reverse)
            return
        write = write_cumulative_rows if self.way == "rows" else write_cumulative
        write(module, symbol, fold, self.kind, exclusive=self.exclusive, reverse=self.reverse)


@lowers("CumProd", "CumSum", claim=claim_cumulative, inputs=2)
def cumulative(low: Lowering, group: Group, spec: CumulativeSpec) -> None:
    """Add up or multiply along rows, block by block, or the lines of columns."""
    source, result, axis = low.of(group.node.inputs[0]), low.result(group.result), spec.axis
    kernel = CumulativeKernel("columns", _type(source), group.node.op_type == "CumProd", spec.exclusive, spec.reverse)
    before, length, after = source.shape[:axis], source.shape[axis], source.shape[axis + 1 :]
    if all(dim == 1 for dim in after):
        _add_rows(low, group, kernel, (source, result), (product(before), length))
        return
    plan = _column_plan(before, length, after, low.threads)
    low.step(group, low.kernel(kernel), [source, result], writes=[1], in_place=[0], plan=plan)


def _add_rows(low: Lowering, group: Group, kernel: CumulativeKernel, buffers: tuple[Buffer, Buffer], view: tuple[Dim, Dim]) -> None:
    source, result = buffers
    (rows, length), most = view, maximum(ceil_div(view[1], CUMULATIVE_BLOCK), 1)
    totals = low.temporary(source.dtype, (rows, most))

    def params(sizes: Sizes) -> list[int]:
        blocks = max(-(-sizes(length) // CUMULATIVE_BLOCK), 1)
        together = max(TASK_ELEMENTS // max(sizes(length), 1) & -8, 8) if blocks == 1 else 1
        return [sizes(rows), sizes(length), blocks, together]

    def plan_totals(sizes: Sizes) -> tuple[list[int], int]:
        words = params(sizes)
        return words, words[0] * words[2] if words[2] > 1 else 0

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        words = params(sizes)
        return words, -(-words[0] // words[3]) * words[2]

    if most != 1:
        totaling = low.kernel(dataclasses.replace(kernel, way="totals", exclusive=False))
        low.step(group, totaling, [source, totals], writes=[1], plan=plan_totals)
    folding = low.kernel(dataclasses.replace(kernel, way="rows"))
    low.step(group, folding, [source, result, totals], writes=[1], in_place=[0], plan=plan)


def _column_plan(before: Sequence[Dim], length: Dim, after: Sequence[Dim], threads: int) -> Plan:
    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = CumulativeParams.shared(sizes.product(before), sizes(length), sizes.product(after), threads)
        return params.words(), params.tasks()

    return plan
