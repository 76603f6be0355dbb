"""Softmax and its kin, along rows or columns, with an expression where elements are written.

    read:   m = max x
    fold:   e = exp(x - m)                  s = sum e
    write:  after(e / s, operands)

A row stays in the first-level cache between the three passes: memory is read once and written once.

A few long columns are several tasks: blocks of lines, in two kernels.

    parts:  m' = max x of a block           s' = sum e^(x - m') of it
    write:  m = max m'                      s = sum s' e^(m' - m)                   after(e^(x - m) / s)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.exponential import exp_below_zero
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.folds import MAX, MIN, SUM, Fold, in_turns
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.lines import (
    FIRST_FREE,
    TASK_ELEMENTS,
    Along,
    ExtraOperand,
    LineParams,
    Operands,
    Strip,
    Term,
    VectorPosition,
    line_sizes,
    strips,
    write_lines,
)
from sardonyx.codegen.kernels.reduce import position_of
from sardonyx.codegen.kernels.short_lines import block_strips, packed_strips
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "BLOCK_WAYS",
    "LEAST_LINES",
    "MOST_BLOCKS",
    "WAYS",
    "ColumnBlocks",
    "exp_of_difference",
    "write_block_softmax",
    "write_column_parts",
    "write_softmax",
]

X, Y, _FIRST_OPERAND = range(3)

_GREATEST = Fold("max", MAX.neutral, lambda b, found, value: b.max(found, value))
"""The greatest, in one instruction; NaN may get lost, which the exponential of the element itself brings back."""


Written: TypeAlias = Callable[[Kernel, Strip, Pointer, Pointer], Term]
"""From X, and Y, which may serve as scratch memory, to what the element of X at a place becomes."""


def write_softmax(
    module: Module,
    symbol: str,
    along: Along,
    way: str,
    *,
    after: ElementExpr,
    extra_operands: Sequence[ExtraOperand],
    kind: Type = F32,
) -> None:
    """Write the kernel `symbol`: buffers X, Y (which may be X if it is of its type) and those beside; parameters as `lines` says.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        along: what is normalized: rows, of one line each, or columns.
        way: how, one of WAYS.
        after: what is stored, of argument 0 (the normalized element) and the extra operands (from argument 1 on).
        extra_operands: the extra operands.
        kind: the type of what is normalized, F32 or F64.
    """
    with module.kernel(symbol) as b:
        x, y = b.buffer(X, kind), b.buffer(Y, after.type)
        operands = Operands(b, extra_operands, first_buffer=_FIRST_OPERAND, first_param=FIRST_FREE)
        each = strips if extra_operands else packed_strips
        for strip in each(b, along, kind):
            write_lines(strip, y, after, operands, WAYS[way](b, strip, x, y))


def _softmax(b: Kernel, strip: Strip, x: Pointer, y: Pointer) -> Term:
    """Compute e^(x - m) / s; the numerators are kept in Y where that is of the type of X, else computed again."""
    greatest, keeps = _greatest(strip, x), y.element == x.element

    def computed(place: VectorPosition) -> Register:
        return exp_of_difference(b, x.load(place.offset, place.span), greatest[place.number])

    def term(place: VectorPosition) -> Register:
        value = computed(place)
        if keeps:
            y.store(value, place.offset, place.span)
        return value

    factors = [1.0 / total for total in strip.fold(SUM, term, chains=1)]

    def numerator(place: VectorPosition) -> Register:
        return y.load(place.offset, place.span) if keeps else computed(place)

    return lambda place: numerator(place) * factors[place.number]


def _log_softmax(b: Kernel, strip: Strip, x: Pointer, y: Pointer) -> Term:
    """Compute x - m - log s."""
    greatest = _greatest(strip, x)

    def term(place: VectorPosition) -> Register:
        b.prefetch(y.at(place.offset), write=True)
        return exp_of_difference(b, x.load(place.offset, place.span), greatest[place.number])

    logs = [mathlib.log(b, total) for total in strip.fold(SUM, term, chains=1)]
    return lambda place: x.load(place.offset, place.span) - greatest[place.number] - logs[place.number]


def _greatest(strip: Strip, x: Pointer) -> list[Register]:
    return strip.fold(_GREATEST, lambda place: x.load(place.offset, place.span))


def _hardmax(b: Kernel, strip: Strip, x: Pointer, y: Pointer) -> Term:
    """Compute 1 at the first of the greatest, or of NaN, and 0 elsewhere."""
    greatest = strip.fold(MAX, lambda place: x.load(place.offset, place.span))
    where = functools.partial(position_of, b, strip, x, greatest, b.const(I64, MIN.neutral(I64)))
    first = strip.fold(MIN, where, I64)
    return lambda place: strip.position(place, I64).eq(first[place.number]).to(x.element)


WAYS: Mapping[str, Written] = {"hardmax": _hardmax, "log_softmax": _log_softmax, "softmax": _softmax}
"""How lines are normalized, by name."""


def exp_of_difference(b: Function, x: Register, greatest: Register) -> Register:
    """Return e^(x - greatest) for x <= greatest, as exp_below_zero where they are float32; NaN for inf - inf."""
    return mathlib.exp(b, x - greatest) if x.type.scalar == F64 else exp_below_zero(b, x - greatest)


MOST_BLOCKS = 64
"""Blocks of a column: each task puts together what was found of all of them."""
LEAST_LINES = 1024
"""Lines of 64 columns that are cut, if those are few; a block has at least an eighth of that."""
_LEAST_COLUMNS = 64
"""Columns of a task, where there are so many and lines are cut."""
_MOST_PERIOD = 128
_MOST_TASK_ELEMENTS = 1 << 22
"""Elements of one task, from which on columns are cut in any case: a run can only be ended between tasks."""
_FEW_TASKS = 16
"""Tasks of one outer index that are few enough to cut columns, where they are long."""


@dataclass(frozen=True, slots=True)
class ColumnBlocks:
    """The parameters of the kernels of blocks of lines: those of lines, then lines of a block, blocks, how many outer indices."""

    lines: LineParams
    """The columns."""

    @property
    def are_wanted(self) -> bool:
        """Whether columns are so few and long that they are better cut; then there are at least LEAST_LINES lines."""
        pieces = -(-self.lines.length // self.lines.block)
        elements = self.lines.lines * min(self.lines.length, self.lines.block)
        return elements > _MOST_TASK_ELEMENTS or (elements > LEAST_LINES * _LEAST_COLUMNS and pieces < _FEW_TASKS)

    @property
    def block_lines(self) -> int:
        """Lines of a block."""
        width = max(min(self.lines.length, self.lines.block), 1)
        return max(TASK_ELEMENTS // width, -(-self.lines.lines // MOST_BLOCKS), 1)

    @property
    def blocks(self) -> int:
        """Blocks of a column."""
        return -(-self.lines.lines // self.block_lines)

    def words(self) -> list[int]:
        """Return the parameters as the kernels read them."""
        return [*self.lines.words(), self.block_lines, self.blocks]

    def tasks(self) -> int:
        """Return how many tasks each kernel is."""
        return self.lines.tasks() * self.blocks


def write_column_parts(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers X, PARTS [outer][block][2][length], the greatest and the sum.

    Parameters as ColumnBlocks.
    """
    with module.kernel(symbol) as b:
        for task in _block_tasks(b, kind):
            x = b.buffer(X, kind).at(task.offset)
            for strip in block_strips(b, task.lines, (task.first, task.last), kind):
                greatest = _greatest(strip, x)
                finite = [b.select(value > -math.inf, value, value.like(0)) for value in greatest]

                def term(place: VectorPosition, x: Pointer = x, finite: Sequence[Register] = finite) -> Register:
                    return exp_of_difference(b, x.load(place.offset, place.span), finite[place.number])

                sums = strip.fold(SUM, term)
                strip.put(task.parts, greatest)
                strip.put(task.parts.at(line_sizes(b)[1]), sums)


def write_block_softmax(module: Module, symbol: str, way: str, after: ElementExpr, kind: Type) -> None:
    """Write the kernel `symbol`: buffers X, PARTS, Y (which may be X); parameters as ColumnBlocks.

    Lines of a few columns are walked as one row, with what belongs to each column on the stack, again and again:

        x       a0 b0 c0 a1 b1 c1 a2 b2 | c2 a3 …       vectors of 8
        stack   a  b  c  a  b  c  a  b  c  a  b  c …    read from place 0, then from place 2, then from 1, …

    `way` is one of BLOCK_WAYS; other arguments as for write_softmax.
    """
    with module.kernel(symbol) as b:
        length = line_sizes(b)[1]
        found = [b.stack(kind, _MOST_PERIOD, align=64) for _ in range(2)]
        for task in _block_tasks(b, kind):
            _put_together(b, task, kind, way, found)
            x, y = b.buffer(X, kind).at(task.offset), b.buffer(2, after.type).at(task.offset)

            def write(i: Register, place: Register, span: Span, x: Pointer = x, y: Pointer = y) -> Register:
                value = BLOCK_WAYS[way].element(b, x.load(i, span), *(each.load(place, span) for each in found))
                return write_expressions(b, [after], [value])[0].splat(span.lanes)

            def as_row(task: _BlockTask = task, x: Pointer = x, y: Pointer = y, write: _Write = write) -> None:
                lanes, period = b.lanes(kind), b.variable(b.const(I64, 0))
                step, count = b.const(I64, lanes) % length, task.lines * length
                whole = count & -(2 * lanes)
                with b.loop(0, whole, 2 * lanes) as i:
                    places = [period.value]
                    for _ in range(2):
                        following = places[-1] + step
                        places.append(b.select(following >= length, following - length, following))
                    starts = [i, i + lanes]
                    pairs = zip(starts, places[:2], strict=True)
                    values = in_turns(b, [functools.partial(write, at, place, Span(lanes)) for at, place in pairs])
                    for at, value in zip(starts, values, strict=True):
                        y.store(value, at, lanes)
                    period.set(places[2])
                with b.loop(whole, count) as i:
                    y.store(write(i, i % length, Span(1)), i)

            def by_lines(task: _BlockTask = task, y: Pointer = y, write: _Write = write) -> None:
                with b.loop(0, task.lines) as line:
                    for column, span in b.vectors(0, task.last - task.first, kind):
                        at = line * length + task.first + column
                        y.store(write(at, column, span), at, span)

            b.branch(length <= _LEAST_COLUMNS, as_row, by_lines)


def _put_together(b: Kernel, task: _BlockTask, kind: Type, way: str, found: Sequence[Pointer]) -> None:
    """Store the greatest of each column and what is made of its sum, columns of whole lines as often as there is space."""
    (_, length), blocks, lanes = line_sizes(b), b.param(FIRST_FREE + 1), b.lanes(kind)
    width = task.last - task.first
    with b.loop(0, width, lanes) as column:
        span = Span(lanes, b.tail_mask(b.min(width - column, lanes), lanes))
        greatest = b.variable(b.const(kind.vector(lanes), -math.inf))
        with b.loop(0, blocks) as block:
            value = task.all_parts.load(block * length * 2 + task.first + column, span)
            greatest.set(b.max(greatest.value, value))
        total = b.variable(greatest.value.like(0))
        with b.loop(0, blocks) as block:
            place = block * length * 2 + task.first + column
            value, own = task.all_parts.load(place, span), task.all_parts.load(place + length, span)
            total.set(b.fma(own, exp_of_difference(b, value, greatest.value), total.value))
        found[0].store(greatest.value, column, lanes)
        found[1].store(BLOCK_WAYS[way].of_sum(b, total.value), column, lanes)
    with b.when(width.eq(length)), b.loop(0, lanes) as i:
        for each in found:
            each.store(each.load(i), length + i)


@dataclass(frozen=True, slots=True)
class _BlockTask:
    """A block of lines of some columns."""

    offset: Register
    """Where the block begins in X."""
    lines: Register
    """How many lines it has."""
    first: Register
    """The first column."""
    last: Register
    """The one behind the last."""
    parts: Pointer
    """Where its parts are in PARTS."""
    all_parts: Pointer
    """Where the parts of all blocks of its outer index begin."""


def _block_tasks(b: Kernel, kind: Type) -> Iterator[_BlockTask]:
    """Loop over the tasks."""
    (lines, length), block = line_sizes(b), b.param(FIRST_FREE - 1)
    block_lines, blocks = b.param(FIRST_FREE), b.param(FIRST_FREE + 1)
    pieces = (length + block - 1) // block
    with b.loop(b.begin, b.end) as task:
        number, outer = task // pieces % blocks, task // pieces // blocks
        column, line = task % pieces * block, number * block_lines
        all_parts = b.buffer(1, kind).at(outer * blocks * length * 2)
        offset, last = (outer * lines + line) * length, b.min(column + block, length)
        yield _BlockTask(offset, b.min(block_lines, lines - line), column, last, all_parts.at(number * length * 2), all_parts)


_Write: TypeAlias = Callable[[Register, Register, Span], Register]
"""From where elements are, in the block and on the stack, to what is written there."""


@dataclass(frozen=True, slots=True)
class BlockWay:
    """How elements are normalized by the greatest and the sum of their columns."""

    of_sum: Callable[[Function, Register], Register]
    """What is made of the sum."""
    element: Callable[[Function, Register, Register, Register], Register]
    """What is made of an element, the greatest, and that."""


BLOCK_WAYS: Mapping[str, BlockWay] = {
    "log_softmax": BlockWay(mathlib.log, lambda b, x, greatest, log: x - greatest - log),
    "softmax": BlockWay(lambda b, total: 1.0 / total, lambda b, x, greatest, factor: exp_of_difference(b, x, greatest) * factor),
}
"""How columns are normalized block by block, by name."""
