"""Take parts of an array by index, with every index checked before it is used.

    write_gather             result[o, j, :] = data[o, i0, i1, …, :]     for the tuple (i0, i1, …) = indices[o or 0, j, :]
    write_gather_elements    result[…, j] = data[…, j] with the place on one axis replaced by indices[…, j]

An index counts from the end where it is negative; one outside its axis reads nothing and is reported in the status word as its
place among the indices, plus 1. Elements are moved as integers of their size: single ones by vectors, where the processor loads
lanes from many places.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, I32, I64, U64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "TABLE",
    "GatherElementsParams",
    "GatherParams",
    "checked_index",
    "row_offset",
    "take_lines",
    "tuple_offset",
    "write_gather",
    "write_gather_elements",
]

DATA, INDICES, RESULT, STATUS = range(4)
"""The buffers of the kernels."""


@dataclass(frozen=True, slots=True)
class GatherParams:
    """The integer parameters of `write_gather`, in their order."""

    batch: int
    """How many o there are."""
    count: int
    """How many tuples there are for each."""
    inner: int
    """Elements of what one tuple takes."""
    data_stride: int
    """From one o to the next in the data, in elements."""
    index_stride: int
    """From one o to the next among the tuples; 0 where all o read the same ones."""
    axes: tuple[tuple[int, int], ...]
    """For each number of a tuple how long its axis is, and from one place of it to the next, in elements."""
    block: int
    """Tuples in one task."""
    block_batch: int = 1
    """How many o a task has; more than one only where it has all tuples of each."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        head = [self.count, self.inner, self.data_stride, self.index_stride, self.block, self.batch, self.block_batch]
        return [*head, *(word for axis in self.axes for word in axis)]

    def tasks(self) -> int:
        """Return how many tasks it is."""
        return -(-self.batch // self.block_batch) * -(-self.count // self.block)


_AXES = 7
"""The first parameter of the axes."""
TABLE, _TOGETHER_ELEMENTS = 1024, 256
"""Places that a table has, and about how many elements of several lines are taken by it at a time."""
_FEW_LINES = 4
_UNROLLED = 8
_SHORT_LINE = 32
"""Lines of fewer elements are taken in groups: vectors under a mask take longer."""


def write_gather(module: Module, symbol: str, element: Type, index: Type, depth: int, *, single: bool) -> None:
    """Write the kernel `symbol`.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: an integer of the size of the data's elements.
        index: the type of the indices: I32 or I64.
        depth: how many numbers a tuple has.
        single: whether a tuple takes one element: `inner` is 1.
    """
    with module.kernel(symbol) as b:
        count, inner, data_stride, index_stride, block, batch, block_batch = (b.param(place) for place in range(_AXES))
        data, indices, result = b.buffer(DATA, element), b.buffer(INDICES, index), b.buffer(RESULT, element)
        blocks, is_line = (count + block - 1) // block, single and depth == 1
        table = b.stack(I64, TABLE if is_line else 1)

        def one_by_one(begin: Register, end: Register, first: Register, last: Register) -> None:
            with b.loop(begin, end) as outer:
                base, tuples = data.at(outer * data_stride), outer * index_stride
                if is_line:
                    line = _Line(base, indices.at(tuples), result.at(outer * count), b.param(_AXES), b.param(_AXES + 1), tuples)
                    _gather_line(b, line, first, last)
                else:
                    arrays = base, indices, result.at(outer * count * inner)
                    _gather_tuples(b, arrays, tuples, (first, last), depth, inner, single=single)

        with b.loop(b.begin, b.end) as task:
            begin, first = task // blocks * block_batch, task % blocks * block
            end, last = b.min(begin + block_batch, batch), b.min(first + block, count)
            apart = functools.partial(one_by_one, begin, end, first, last)
            if is_line:
                base, target = data.at(begin * data_stride), result.at(begin * count)
                shared = _Line(base, indices, target, b.param(_AXES), b.param(_AXES + 1), b.const(I64, 0))
                several = index_stride.eq(0) & (end - begin >= _FEW_LINES) & (count <= TABLE)
                b.branch(several, functools.partial(_gather_lines, b, shared, table, (end - begin, count, data_stride)), apart)
            else:
                apart()


def _gather_lines(b: Kernel, line: _Line, table: Pointer, sizes: tuple[Register, Register, Register]) -> None:
    """Take the same places of some lines, each a step further: where they are is computed once, for several lines side by side."""
    _, count, _ = sizes
    valid = b.variable(b.const(BOOL, True))
    with b.loop(0, count) as j:
        position, inside = checked_index(b, line.indices.load(j), line.length)
        table.store(position * line.stride, j)
        valid.set(valid.value & inside)
    b.branch(
        valid.value, lambda: take_lines(b, line.data, line.result, table, sizes), lambda: _report(b, line, b.const(I64, 0), count)
    )


def take_lines(b: Kernel, data: Pointer, result: Pointer, table: Pointer, sizes: tuple[Register, Register, Register]) -> None:
    """Store the elements at some places of each of some lines, side by side.

    Args:
        b: the kernel.
        data: where the first line begins.
        result: where elements go.
        table: the places in a line, at most TABLE, which it has room for; those of further lines are written behind them.
        sizes: how many lines, how many places, and from one line to the next, in elements.
    """
    lines, count, step = sizes
    together = b.max(b.min(lines, b.const(I64, _TOGETHER_ELEMENTS) // b.max(count, 1)), 1)
    with b.loop(count, together * count) as place:
        table.store(table.load(place - count) + step, place)
    whole = lines // together * together
    with b.loop(0, whole, together) as number:
        _take(b, data.at(number * step), table, result.at(number * count), together * count)
    _take(b, data.at(whole * step), table, result.at(whole * count), (lines - whole) * count)


def _take(b: Kernel, data: Pointer, table: Pointer, result: Pointer, count: Register) -> None:
    """Store the elements at the first places of a table side by side."""
    whole = count & -_UNROLLED
    with b.loop(0, whole, _UNROLLED) as first:
        elements = [data.load(table.load(first + number)) for number in range(_UNROLLED)]
        for number, element in enumerate(elements):
            result.store(element, first + number)
    with b.loop(whole, count) as place:
        result.store(data.load(table.load(place)), place)


def _gather_tuples(
    b: Kernel,
    arrays: tuple[Pointer, Pointer, Pointer],
    tuples: Register,
    places: tuple[Register, Register],
    depth: int,
    inner: Register,
    *,
    single: bool,
) -> None:
    data, indices, result = arrays
    with b.loop(*places) as j:
        offset, valid = tuple_offset(b, indices, tuples + j, depth, _AXES)
        with b.when(valid):
            if single:
                result.store(data.load(offset), j)
            else:
                copy_elements(b, result.at(j * inner), data.at(offset), inner)
        with b.when(~valid):
            b.buffer(STATUS, I64).store((tuples + j) * depth + 1)


def tuple_offset(b: Kernel, indices: Pointer, place: Register, depth: int, first_param: int) -> tuple[Register, Register]:
    """Return where tuple `place` points to, in elements, and whether all of its numbers lie inside their axes."""
    offset, valid = b.const(I64, 0), b.const(BOOL, True)
    for number in range(depth):
        position, inside = checked_index(b, indices.load(place * depth + number), b.param(first_param + 2 * number))
        offset = offset + position * b.param(first_param + 2 * number + 1)
        valid = valid & inside
    return offset, valid


def checked_index(b: Function, given: Register, length: Register) -> tuple[Register, Register]:
    """Return an index counted from the front, and whether it lies inside an axis of `length`."""
    index = given.to(I64)
    position = b.select(index < 0, index + length, index)
    return position, position.to(U64) < length.to(U64)


@dataclass(frozen=True, slots=True)
class _Line:
    """Elements that are taken one by one: result[j] = data[j * step + indices[j] * stride]."""

    data: Pointer
    indices: Pointer
    result: Pointer
    length: Register
    """How long the axis is."""
    stride: Register
    """From one place of it to the next, in elements."""
    first: Register
    """The place of indices[0] among all indices."""
    step: Register | None = None
    """None for 0."""


def _gather_line(b: Kernel, line: _Line, begin: Register, end: Register) -> None:
    """Write the elements [begin, end) of a line."""
    if not b.target.has_masks:
        lies_dense = line.stride.eq(1) if line.step is None else line.stride.eq(1) & line.step.eq(0)
        dense = _Line(line.data, line.indices, line.result, line.length, b.const(I64, 1), line.first)
        b.branch(lies_dense, lambda: _gather_in_groups(b, dense, begin, end), lambda: _gather_in_groups(b, line, begin, end))
        return
    is_short = end - begin < _SHORT_LINE
    b.branch(is_short, lambda: _gather_in_groups(b, line, begin, end), lambda: _gather_by_vectors(b, line, begin, end))


def _gather_by_vectors(b: Kernel, line: _Line, begin: Register, end: Register) -> None:
    has_gather = line.data.element.bits >= I32.bits
    for j, span in b.vectors(begin, end, I64, lanes=b.lanes(I32) if has_gather else 1):
        position, inside = checked_index(b, line.indices.load(j, span), line.length)
        valid = inside if span.mask is None else inside & span.mask
        offset = position * line.stride
        if line.step is not None:
            offset = offset + (b.iota(I64, span.lanes) + j) * line.step
        if span.lanes > 1:
            line.result.store(line.data.gather(offset, valid), j, span)
            with b.when(b.any_lane(~inside if span.mask is None else ~inside & span.mask)):
                _report(b, line, j, b.min(j + span.lanes, end))
            continue
        with b.when(valid):
            line.result.store(line.data.load(offset), j)
        with b.when(~valid):
            b.buffer(STATUS, I64).store(line.first + j + 1)


_TOGETHER = 4


def _gather_in_groups(b: Kernel, line: _Line, begin: Register, end: Register) -> None:
    whole = begin + ((end - begin) & -_TOGETHER)
    with b.loop(begin, whole, _TOGETHER) as j:
        _gather_some(b, line, j, _TOGETHER)
    with b.loop(whole, end) as j:
        _gather_some(b, line, j, 1)


def _gather_some(b: Kernel, line: _Line, begin: Register, count: int) -> None:
    """Write `count` elements, which are read only where all of them are inside: then one branch is enough for them."""
    checked = [checked_index(b, line.indices.load(begin + number), line.length) for number in range(count)]
    valid = functools.reduce(operator.and_, (inside for _, inside in checked))
    with b.when(valid):
        for number, (position, _) in enumerate(checked):
            offset = position * line.stride
            if line.step is not None:
                offset = offset + (begin + number) * line.step
            line.result.store(line.data.load(offset), begin + number)
    with b.when(~valid):
        _report(b, line, begin, begin + count)


def _report(b: Kernel, line: _Line, begin: Register, end: Register) -> None:
    """Report the last index of [begin, end) that lies outside its axis."""
    with b.loop(begin, end) as j:
        _, valid = checked_index(b, line.indices.load(j), line.length)
        with b.when(~valid):
            b.buffer(STATUS, I64).store(line.first + j + 1)


@dataclass(frozen=True, slots=True)
class GatherElementsParams:
    """The integer parameters of `write_gather_elements`, in their order."""

    inner: int
    """The last dimension of the indices."""
    inner_stride: int
    """From one place of the last dimension to the next in the data: 0 if it is the axis that indices count along, else 1."""
    axis: int
    """How long the axis is in the data."""
    axis_stride: int
    """From one place of it to the next, in elements."""
    outer: tuple[tuple[int, int], ...]
    """For each other dimension of the indices its size and its stride in the data, which is 0 for the axis."""
    block: int
    """Indices in one task: whole rows, or a part of one."""

    @staticmethod
    def along(axis: int, data: Sequence[int], indices: Sequence[int], grain: int) -> GatherElementsParams:
        """Return the parameters for indices of a shape that count along `axis` of data of another."""
        strides = [math.prod(data[place + 1 :]) for place in range(len(data))]
        around = [0 if place == axis else stride for place, stride in enumerate(strides)]
        outer = tuple(zip(indices[:-1], around[:-1], strict=True))
        inner = max(indices[-1], 1)
        block = grain if inner > grain else grain // inner * inner
        return GatherElementsParams(indices[-1], around[-1], data[axis], strides[axis], outer, block)

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        head = [self.inner, self.inner_stride, self.axis, self.axis_stride, self._rows, self.block, len(self.outer)]
        return [*head, *(word for dim in self.outer for word in dim)]

    def tasks(self) -> int:
        """Return how many tasks it is; none if there is no index."""
        return -(-self._rows * self.inner // self.block)

    @property
    def _rows(self) -> int:
        return math.prod(size for size, _ in self.outer)


def write_gather_elements(module: Module, symbol: str, element: Type, index: Type) -> None:
    """Write the kernel `symbol` for elements of the size of `element` and indices of type `index`: I32 or I64."""
    with module.kernel(symbol) as b:
        inner, inner_stride, axis, axis_stride, rows, block, _ = (b.param(place) for place in range(7))
        data, indices, result = b.buffer(DATA, element), b.buffer(INDICES, index), b.buffer(RESULT, element)
        with b.loop(b.begin, b.end) as task:
            begin, end = task * block, b.min((task + 1) * block, rows * inner)
            with b.loop(begin // inner, (end + inner - 1) // inner) as row:
                base, first = data.at(row_offset(b, row, 6)), row * inner
                line = _Line(base, indices.at(first), result.at(first), axis, axis_stride, first, inner_stride)
                _gather_line(b, line, b.max(begin - first, 0), b.min(end - first, inner))


def row_offset(b: Kernel, row: Register, first_param: int) -> Register:
    """Return where a row begins: parameters are a rank, then for each dimension, outermost first, its size and its stride."""
    rest, offset, rank = b.variable(row), b.variable(b.const(I64, 0)), b.param(first_param)
    with b.loop(0, rank) as step:
        place = (rank - 1 - step) * 2 + (first_param + 1)
        size = b.param_at(place)
        offset.add(rest.value % size * b.param_at(place + 1))
        rest.set(rest.value // size)
    return offset.value
