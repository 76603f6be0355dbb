"""Apply expressions to arrays: a chain of any length is one loop body, with broadcasting and any strides.

The shape is seen as three levels, so that no index is computed per element:

    outer   any number of dimensions, each with a stride per array: one division per task
    rows    one dimension with a stride per array: additions
    inner   one dimension: whole vectors, where each array is walked in order, stands still, or jumps

Sizes and strides are parameters; only how each array is walked within a row is baked into the code.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.expr import ElementExpr, number
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.folds import in_turns
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["Access", "MapParams", "short_row", "write_map"]


class Access(enum.Enum):
    """How an array is walked along a row."""

    ORDERED = "element after element"
    FIXED = "one element for the whole row"
    STRIDED = "by a stride that is a parameter"


@dataclass(frozen=True, slots=True)
class MapParams:
    """The parameters of a map. Strides count elements; arrays are the arguments, then the outputs."""

    inner: int
    """Elements of a row."""
    rows: int
    """Rows within one outer index."""
    outer: tuple[int, ...]
    """Sizes of the outer dimensions."""
    inner_strides: tuple[int, ...]
    """For each array, from element to element; read for STRIDED ones only."""
    row_strides: tuple[int, ...]
    """For each array, from row to row."""
    outer_strides: tuple[tuple[int, ...], ...]
    """For each outer dimension, for each array."""
    block_inner: int
    """Elements of a row in one task."""
    block_rows: int
    """Rows in one task."""

    @staticmethod
    def over(shape: Sequence[int], strides: Sequence[Sequence[int]], accesses: Sequence[Access], *, threads: int = 1) -> MapParams:
        """Return the parameters of a map over `shape`.

        `strides` has, for each array, one stride per dimension, 0 where it is broadcast.

        Dimensions that all arrays walk through alike are taken as one. Where the last one does not suit the accesses that were
        baked in, rows of one element do: a kernel fits every shape, if not always fast.
        """
        sizes, columns = _collapse(shape, list(zip(*strides, strict=True)))
        if sizes and _suits(columns[-1], accesses):
            inner, inner_strides = sizes.pop(), columns.pop()
        else:
            inner, inner_strides = 1, (1,) * len(accesses)
        rows, row_strides = (sizes.pop(), columns.pop()) if sizes else (1, (0,) * len(accesses))
        elements = math.prod(shape)
        grain = elements if threads == 1 else max(_GRAIN, -(-elements // (_TASKS_PER_THREAD * threads)))
        grain = min(grain, _MOST_ELEMENTS)
        return MapParams(
            inner=inner,
            rows=rows,
            outer=tuple(sizes),
            inner_strides=inner_strides,
            row_strides=row_strides,
            outer_strides=tuple(columns),
            block_inner=max(min(inner, -(-grain // 64) * 64), 1),
            block_rows=max(min(rows, grain // max(inner, 1)), 1),
        )

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        head = [self.inner, self.rows, self.block_inner, self.block_rows, len(self.outer)]
        tail = [word for size, strides in zip(self.outer, self.outer_strides, strict=True) for word in (size, *strides)]
        return [*head, *self.inner_strides, *self.row_strides, *tail]

    def tasks(self) -> int:
        """Return how many tasks the map is; none if it has no element."""
        return math.prod(self.outer) * -(-self.rows // self.block_rows) * -(-self.inner // self.block_inner)


_GRAIN = 8192
"""Elements that are worth a task of their own."""

_MOST_ELEMENTS = 1 << 20
"""Elements of one task at most: a run can only be ended between tasks."""

_TASKS_PER_THREAD = 4

_IN_TURNS = 2
"""Vectors of a row that are computed side by side where expressions are long."""
_MANY_REGISTERS = 32
"""Where there are so many registers, vectors are so wide that one at a time is enough."""

_INNER, _ROWS, _BLOCK_INNER, _BLOCK_ROWS, _RANK, _STRIDES = range(6)


def short_row(target: Target, kinds: Sequence[Type], accesses: Sequence[Access], inner: object) -> int | None:
    """Return the elements of a row where several rows fill one vector of a map, None where they do not.

    Args:
        target: what the map is compiled for.
        kinds: the types of the arguments, then of the outputs.
        accesses: how each is walked along a row.
        inner: the elements of a row, a number where it is known.
    """
    if not isinstance(inner, int) or Access.STRIDED in accesses:
        return None
    return inner if 1 < inner <= _lanes(target, kinds) // 2 else None


def write_map(
    module: Module,
    symbol: str,
    arguments: Sequence[Type],
    outputs: Sequence[ElementExpr],
    accesses: Sequence[Access],
    *,
    short: int | None = None,
) -> None:
    """Write the kernel `symbol`: buffers are the arguments and then the outputs, parameters as in MapParams.

    An output may be the memory of an argument that is walked in the same way. A FIXED output is not allowed.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        arguments: the element type of each argument.
        outputs: an expression for each output.
        accesses: how each argument, then each output, is walked along a row.
        short: the elements of a row as `short_row` gives them, if it does. The rows of an output then lie one after another, as do
            those of an argument that is walked in order, unless it is the same in all rows.
    """
    kinds = [*arguments, *(output.type for output in outputs)]
    with module.kernel(symbol) as b:
        inner, rows = b.param(_INNER), b.param(_ROWS)
        block_inner, block_rows = b.param(_BLOCK_INNER), b.param(_BLOCK_ROWS)
        pieces, groups = (inner + block_inner - 1) // block_inner, (rows + block_rows - 1) // block_rows
        with b.loop(b.begin, b.end) as task:
            piece, group, outer = task % pieces, task // pieces % groups, task // pieces // groups
            first, last = piece * block_inner, b.min((piece + 1) * block_inner, inner)
            starts = _outer_starts(b, kinds, outer)
            bounds = group * block_rows, b.min((group + 1) * block_rows, rows)
            if short is not None:
                _write_short_rows(b, starts, accesses, outputs, bounds, short)
            else:
                with b.loop(*bounds) as row:
                    arrays = [start.at(row * b.param(_STRIDES + len(kinds) + place)) for place, start in enumerate(starts)]
                    _write_row(b, arrays, accesses, outputs, first, last)


def _outer_starts(b: Kernel, kinds: Sequence[Type], index: Register) -> list[Pointer]:
    """Return where each array begins for one outer index: the last dimension changes fastest."""
    rest = b.variable(index)
    offsets = [b.variable(b.const(I64, 0)) for _ in kinds]
    rank, width = b.param(_RANK), len(kinds) + 1
    with b.loop(0, rank) as step:
        place = (rank - 1 - step) * width + (_STRIDES + 2 * len(kinds))
        size = b.param_at(place)
        position = rest.value % size
        rest.set(rest.value // size)
        for number, offset in enumerate(offsets):
            offset.add(position * b.param_at(place + (number + 1)))
    return [b.buffer(place, kind).at(offset.value) for place, (kind, offset) in enumerate(zip(kinds, offsets, strict=True))]


def _write_row(
    b: Kernel,
    arrays: Sequence[Pointer],
    accesses: Sequence[Access],
    outputs: Sequence[ElementExpr],
    first: Register,
    last: Register,
) -> None:
    is_copy = len(arrays) == 2 and outputs[0].primitive == "argument" and arrays[0].element is not BOOL
    if is_copy and set(accesses) == {Access.ORDERED}:
        copy_elements(b, arrays[1].at(first), arrays[0].at(first), last - first)
        return
    count = len(arrays) - len(outputs)
    walked = list(zip(arrays, accesses, range(len(arrays)), strict=True))
    fixed = {place: array.load() for array, access, place in walked[:count] if access is Access.FIXED}
    lanes, element = _lanes(b.target, [array.element for array in arrays]), arrays[-1].element

    def compute(i: Register, span: Span) -> list[Register]:
        arguments = [
            fixed[place].splat(span.lanes) if access is Access.FIXED else _load(b, array, access, place, i, span)
            for array, access, place in walked[:count]
        ]
        return [value.splat(span.lanes) for value in write_expressions(b, outputs, arguments)]

    def store(values: Sequence[Register], i: Register, span: Span) -> None:
        for value, (array, access, place) in zip(values, walked[count:], strict=True):
            _store(b, value, array, access, place, i, span)

    if b.target.registers < _MANY_REGISTERS and lanes > 1 and _are_long(outputs):
        step, span = lanes * _IN_TURNS, Span(lanes)
        turns = first + ((last - first) & -step)
        with b.loop(first, turns, step) as i:
            places = [i + number * lanes for number in range(_IN_TURNS)]
            found = in_turns(b, [functools.partial(compute, place, span) for place in places])
            for place, values in zip(places, found, strict=True):
                store(values, place, span)
        first = turns
    for i, span in b.vectors(first, last, element, lanes=lanes):
        store(compute(i, span), i, span)


def _are_long(outputs: Sequence[ElementExpr]) -> bool:
    """Return whether expressions are so long that the processor does not see the next vector while it computes one."""
    return any(step.primitive in mathlib.FUNCTIONS or step.primitive == "power" for step in number(outputs)[0])


def _write_short_rows(
    b: Kernel,
    arrays: Sequence[Pointer],
    accesses: Sequence[Access],
    outputs: Sequence[ElementExpr],
    bounds: tuple[Register, Register],
    inner: int,
) -> None:
    """Write rows of a few elements, as many to a vector as fit: element c of row r lies in lane r * inner + c."""
    count, lanes, (first, last) = len(arrays) - len(outputs), _lanes(b.target, [array.element for array in arrays]), bounds
    together = lanes // inner
    strides = [b.param(_STRIDES + len(arrays) + place) for place in range(count)]
    columns = b.vector_of(I64, [lane % inner for lane in range(lanes)])
    row_numbers = b.vector_of(I64, [lane // inner for lane in range(lanes)])
    used = None if together * inner == lanes else b.vector_of(BOOL, [lane < together * inner for lane in range(lanes)])
    same = {
        place: array.gather(columns, used)
        for place, (array, access) in enumerate(zip(arrays[:count], accesses, strict=False))
        if access is Access.ORDERED
    }

    def load(place: int, row: Register, span: Span) -> Register:
        array, stride = arrays[place], strides[place]
        if accesses[place] is Access.FIXED:
            return array.at(row * stride).gather(row_numbers * stride.splat(lanes), span.mask)
        value = b.variable(same[place])
        with b.when(stride.ne(0)):
            value.set(array.load(row * inner, span))
        return value.value

    def write(row: Register, span: Span) -> None:
        values = write_expressions(b, outputs, [load(place, row, span) for place in range(count)])
        for value, array in zip(values, arrays[count:], strict=True):
            array.store(value.splat(lanes), row * inner, span)

    whole = first + (last - first) // together * together
    with b.loop(first, whole, together) as row:
        write(row, Span(lanes, used))
    with b.loop(whole, last, together) as row:
        write(row, Span(lanes, b.tail_mask((last - row) * inner, lanes)))


def _load(b: Kernel, array: Pointer, access: Access, place: int, i: Register, span: Span) -> Register:
    if access is Access.ORDERED:
        return array.load(i, span)
    stride = b.param(_STRIDES + place)
    if span.lanes == 1:
        return array.load(i * stride)
    return array.gather((b.iota(I64, span.lanes) + i) * stride, span.mask)


def _store(b: Kernel, value: Register, array: Pointer, access: Access, place: int, i: Register, span: Span) -> None:
    if access is Access.ORDERED:
        array.store(value, i, span)
        return
    stride = b.param(_STRIDES + place)
    if span.lanes == 1:
        array.store(value, i * stride)
        return
    array.scatter(value, (b.iota(I64, span.lanes) + i) * stride, span.mask)


def _lanes(target: Target, kinds: Sequence[Type]) -> int:
    """Return lanes of a vector: those of 32 bits where types mix, of the only width where they do not."""
    widths = {max(kind.bits, 8) for kind in kinds}
    return target.lanes(widths.pop() if len(widths) == 1 else 32)


_Column = tuple[int, ...]
"""The strides of all arrays in one dimension."""


def _collapse(shape: Sequence[int], columns: Sequence[_Column]) -> tuple[list[int], list[_Column]]:
    """Leave dimensions of one element out, and join neighbours through which every array walks evenly."""
    sizes: list[int] = []
    kept: list[_Column] = []
    for size, column in zip(shape, columns, strict=True):
        if size == 1:
            continue
        if sizes and all(outer == inner * size for outer, inner in zip(kept[-1], column, strict=True)):
            sizes[-1] *= size
            kept[-1] = column
            continue
        sizes.append(size)
        kept.append(column)
    return sizes, kept


def _suits(column: _Column, accesses: Sequence[Access]) -> bool:
    wanted = {Access.ORDERED: 1, Access.FIXED: 0}
    return all(wanted.get(access, stride) == stride for stride, access in zip(column, accesses, strict=True))
