"""Element-wise operators and chains of them: one loop over the output, whatever the broadcasting.

The output's dimensions are seen as few as possible: neighbours that every array walks in the same way are one. The last is
the row that vectors go along, the one before it is walked by additions, the others by one division per task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument, constant
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.scalars import scalar
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.elementwise import Access, MapParams, short_row, write_map
from sardonyx.codegen.kernels.quantized.byte_table import ENTRIES, TableParams
from sardonyx.codegen.target import Target
from sardonyx.errors import InvalidArgument, SizesNotInferred
from sardonyx.ir import Dim, Expr, Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.ops.views.activation import has_one_slope_vector
from sardonyx.ops.views.binary import Broadcast
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import (
    ELEMENTWISE,
    MICROSOFT_ELEMENTWISE,
    ElementwiseSpec,
    element_type,
    expression,
    expression_symbol,
    is_data,
    scalar_of,
)
from sardonyx.providers.cpu.fuse import MOST_INPUTS, Group, Member
from sardonyx.providers.cpu.kernels.quantized.table import LEAST_ELEMENTS, ByteTableKernel, looked_up
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import open_or_wrong, shape_of
from sardonyx.providers.cpu.quantization import QUANTIZATION
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Plan
from sardonyx.providers.cpu.strided import moved_type

__all__ = [
    "MapKernel",
    "Walk",
    "broadcast_walk",
    "can_broadcast",
    "claim",
    "copy_to",
    "joins_alone",
    "joins_elementwise",
    "lower",
    "others_of",
]

TASK_ELEMENTS = 1 << 14
"""Elements of one task: large enough to hide its start, small enough to share out."""


class Walk:
    """How arrays are walked over an output: its dimensions, merged, and for each array whether it moves along each."""

    __slots__ = ("dims", "moves")

    def __init__(self, dims: list[Dim], moves: list[tuple[bool | Expr, ...]]) -> None:
        """Make a walk.

        Args:
            dims: the sizes, outermost first, at least one.
            moves: for each of them, for each array whether it moves along it; an expression is the array's own size, which
                tells when it is known: the array moves if it is the walk's size, and stands still if it is 1.
        """
        self.dims, self.moves = dims, moves

    def accesses(self) -> list[Access]:
        """Return how each array is walked along a row."""
        ways = {True: Access.ORDERED, False: Access.FIXED}
        return [ways[moves] if isinstance(moves, bool) else Access.STRIDED for moves in self.moves[-1]]

    def params(self, sizes: Sizes) -> MapParams:
        """Return the parameters of a map for given sizes."""
        dims = [sizes(dim) for dim in self.dims]
        count = len(self.moves[0])
        strides: list[tuple[int, ...]] = []
        reach = [1] * count
        for size, open_moves in zip(reversed(dims), reversed(self.moves), strict=True):
            moves = [move if isinstance(move, bool) else _moves(size, sizes(move)) for move in open_moves]
            strides.append(tuple(step if moving else 0 for step, moving in zip(reach, moves, strict=True)))
            reach = [step * size if moving else step for step, moving in zip(reach, moves, strict=True)]
        strides.reverse()
        inner = dims[-1]
        rows, row_strides = (dims[-2], strides[-2]) if len(dims) > 1 else (1, (0,) * count)
        return MapParams(
            inner=inner,
            rows=rows,
            outer=tuple(dims[:-2]),
            inner_strides=strides[-1],
            row_strides=row_strides,
            outer_strides=tuple(strides[:-2]),
            block_inner=min(max(inner, 1), TASK_ELEMENTS),
            block_rows=max(1, min(rows, TASK_ELEMENTS // max(inner, 1))),
        )


def broadcast_walk(output: Shape, arrays: Sequence[Shape]) -> Walk:
    """Walk `arrays`, each broadcast to `output`, and the output itself as the last."""
    padded = [(1,) * (len(output) - len(shape)) + tuple(shape) for shape in arrays] + [output]
    dims: list[Dim] = []
    moves: list[tuple[bool | Expr, ...]] = []
    for axis, dim in enumerate(output):
        if dim == 1:
            continue
        moving = tuple(_moves_known(dim, shape[axis]) for shape in padded)
        if moves and moves[-1] == moving and all(isinstance(move, bool) for move in moving):
            dims[-1] = dims[-1] * dim
        else:
            dims.append(dim)
            moves.append(moving)
    return Walk(dims or [1], moves or [(True,) * len(padded)])


def can_broadcast(output: Shape | None, shape: Shape | None) -> bool:
    """Return whether `shape` can be walked over `output` element after element.

    The last dimension that is not 1 must be known to be equal, or to be 1.
    """
    if output is None or shape is None or not _may_broadcast(output, shape):
        return False
    pairs = [(dim, wide) for dim, wide in zip(reversed(shape), reversed(output), strict=False) if wide != 1 or dim != 1]
    return not pairs or pairs[0][0] == 1 or pairs[0][0] == pairs[0][1]


def _may_broadcast(output: Shape, shape: Shape) -> bool:
    """Return whether `shape` is not known to be no part of `output`; where it turns out so, `_moves` raises."""
    pairs = zip(reversed(shape), reversed(output), strict=False)
    return len(shape) <= len(output) and not any(isinstance(dim, int) and dim not in (1, wide) for dim, wide in pairs)


def _moves_known(wide: Dim, dim: Dim) -> bool | Expr:
    return dim if isinstance(dim, Expr) and dim != wide else dim != 1


def _moves(wide: int, size: int) -> bool:
    if size not in (wide, 1):
        raise (SizesNotInferred if (size, wide) == (0, 1) else InvalidArgument)(
            f"a dimension of {size} cannot be broadcast to one of {wide}; it must be equal, or 1"
        )
    return size == wide


def joins_elementwise(group: Group, spec: object, member: Member, value: Value) -> bool:
    """Return whether an element-wise node can be fused into the epilogue of a group.

    It adds no broadcasting to the group's result, and what else it reads is walked in a way that is known.
    """
    spec = member.spec
    return isinstance(spec, ElementwiseSpec) and not spec.is_open and member.node.output.shape == value.shape


def joins_alone(group: Group, spec: object, member: Member, value: Value) -> bool:
    """Return whether a node is an element-wise one of the group's result and of numbers, which needs no tensor besides."""
    return joins_elementwise(group, spec, member, value) and not others_of(member, value)


def others_of(member: Member, value: Value) -> list[Value]:
    """Return the tensors that an element-wise node reads besides `value`."""
    reads = member.spec.reads if isinstance(member.spec, ElementwiseSpec) else ()
    read = (member.node.inputs[index] for index in sorted(reads))
    return [other for other in read if other is not None and other is not value]


def claim(node: Node) -> ElementwiseSpec | str:
    """Return what an element-wise node computes, or why it cannot be compiled."""
    problem = _problem_of(node)
    if problem is not None:
        return problem
    numbers = [scalar_of(node, index) for index in range(len(node.inputs))]
    operands = [_operand(node, index, number) for index, number in enumerate(numbers)]
    try:
        found = expression(node, operands)
    except TypeError as error:
        return str(error)
    if found.type != element_type(node.output.dtype):
        return f"it computes {found.type.name}, not {node.output.dtype}"
    read = (index for index, number in enumerate(numbers) if number is None and node.inputs[index] is not None)
    reads = frozenset(read)
    is_open = not all(can_broadcast(node.output.shape, shape_of(node.inputs[index])) for index in reads)
    return ElementwiseSpec(found, reads, is_open)


def _problem_of(node: Node) -> str | None:
    if len(node.inputs) > MOST_INPUTS:
        return f"it has {len(node.inputs)} inputs, and kernels have at most {MOST_INPUTS}"
    if Broadcast.of(node).axis is not None or (not node.domain and node.op_type == "PRelu" and has_one_slope_vector(node)):
        return f"{node.op_type} of opset {node.version} broadcasts from another axis than the last"
    if element_type(node.output.dtype) is None:
        return f"its output has elements of type {node.output.dtype}"
    for index, value in enumerate(node.inputs):
        if value is None:
            continue
        if element_type(value.dtype) is None:
            return f"input {index} has elements of type {value.dtype}"
        if scalar_of(node, index) is None and not _may_broadcast(shape_of(node.output), shape_of(value)):
            verdict = open_or_wrong(value.shape, node.output.shape)
            return f"that input {index} of shape {value.shape} is broadcast to {node.output.shape} {verdict}"
    return None


def _operand(node: Node, index: int, number: float | None) -> ElementExpr | None:
    """Return an element of input `index`, or the number that it is; None where it is left out."""
    value = node.inputs[index]
    kind = None if value is None else element_type(value.dtype)
    if kind is None:
        return None
    if number is None:
        return argument(index, kind)
    return scalar(number, kind) if is_data(node.op_type, index, number, kind) else constant(number, kind)


@dataclasses.dataclass(frozen=True, slots=True)
class MapKernel:
    """A map: outputs of one element of each argument."""

    name: str
    """What it is for."""
    kinds: tuple[Type, ...]
    """The types of its arguments."""
    outputs: tuple[ElementExpr, ...]
    """What it computes."""
    accesses: tuple[Access, ...]
    """How arguments and outputs are walked along a row."""
    short: int | None = None
    """The elements of a row, where several rows fill one vector."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        ways = "".join(access.name[0].lower() for access in self.accesses)
        return expression_symbol(target, self.name, self.outputs, ways, "" if self.short is None else f"rows{self.short}")

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_map(module, symbol, self.kinds, self.outputs, self.accesses, short=self.short)


@dataclasses.dataclass(frozen=True, slots=True)
class CopyKernel:
    """A copy of elements in order."""

    kind: Type
    """The type as which they are moved."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(target, "copy", [argument(0, self.kind)])

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_map(module, symbol, [self.kind], [argument(0, self.kind)], [Access.ORDERED] * 2)


@lowers(*(MICROSOFT_ELEMENTWISE - QUANTIZATION.keys()), claim=claim, joins=joins_elementwise, domain="com.microsoft")
@lowers(*(ELEMENTWISE.keys() - QUANTIZATION.keys()), claim=claim, joins=joins_elementwise)
def lower(low: Lowering, group: Group, spec: ElementwiseSpec) -> None:
    """Lower a chain of element-wise nodes to one map."""
    expr, operands = low.chain(group)
    inputs, result = [low.of(value) for value in operands], low.result(group.result)
    kinds = tuple(kind for buffer in inputs if (kind := element_type(buffer.dtype)) is not None)
    place, count = looked_up(low.target, expr, inputs, result), product(result.shape)
    if place is not None and not (isinstance(count, int) and count < LEAST_ELEMENTS):
        _look_up(low, group, (expr, kinds), inputs, result, place)
    if place is None or not isinstance(count, int) or count < LEAST_ELEMENTS:
        unless = None if place is None else lambda sizes: sizes(count) >= LEAST_ELEMENTS
        _map(low, group, (expr, kinds), inputs, result, unless)


_Mapped = tuple[ElementExpr, tuple[Type, ...]]
"""What a map computes, and the types of what it reads."""


def _map(
    low: Lowering,
    group: Group,
    mapped: _Mapped,
    inputs: list[Buffer],
    result: Buffer,
    unless: Callable[[Sizes], bool] | None = None,
) -> None:
    """Add the step that computes each element."""
    (expr, kinds), walk = mapped, broadcast_walk(result.shape, [buffer.shape for buffer in inputs])
    accesses = tuple(walk.accesses())
    short = short_row(low.target, [*kinds, expr.type], accesses, walk.dims[-1]) if len(walk.dims) > 1 else None
    symbol = low.kernel(MapKernel("map", kinds, (expr,), accesses, short))
    whole = [index for index, buffer in enumerate(inputs) if buffer.shape == result.shape and buffer.dtype == result.dtype]
    low.step(group, symbol, [*inputs, result], writes=[len(inputs)], plan=_plan(walk), in_place=whole, unless=unless)


def _look_up(low: Lowering, group: Group, mapped: _Mapped, inputs: list[Buffer], result: Buffer, place: int) -> None:
    """Add the steps that compute what each byte becomes, and look it up."""
    source, count = inputs[place], product(result.shape)
    table = low.temporary(result.dtype, (ENTRIES,))
    every = low.constant(np.arange(ENTRIES).astype(np.uint8).view(source.dtype.numpy))
    unless = None if isinstance(count, int) else lambda sizes: sizes(count) < LEAST_ELEMENTS
    _map(low, group, mapped, [*inputs[:place], every, *inputs[place + 1 :]], table, unless)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = TableParams(sizes(count))
        return params.words(), params.tasks()

    whole = [0] if source.dtype == result.dtype else []
    low.step(group, low.kernel(ByteTableKernel()), [source, table, result], writes=[2], plan=plan, in_place=whole, unless=unless)


def copy_to(low: Lowering, value: Value, source: Buffer) -> Buffer:
    """Copy `source` to a new buffer that holds `value` from now on."""
    result = low.result(value)
    copy_between(low, source, result, value.producer)
    return result


def copy_between(low: Lowering, source: Buffer, result: Buffer, node: Node | None = None) -> None:
    """Add the step that copies the elements of one buffer to another of as many, for `node` or for no node of the graph."""
    walk = Walk([product(result.shape)], [(True, True)])
    kind = element_type(source.dtype) or moved_type(source.dtype)
    if kind is None:
        raise TypeError(f"kernels do not move elements of {source.dtype}")
    low.move("Copy", low.kernel(CopyKernel(kind)), [source, result], _plan(walk), node)


def _plan(walk: Walk) -> Plan:
    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = walk.params(sizes)
        return params.words(), params.tasks()

    return plan
