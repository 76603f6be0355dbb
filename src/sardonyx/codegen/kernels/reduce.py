"""Reductions along rows or columns: fold every element, or find where the extreme is, or add up as one goes.

A reduction is three steps, before (of each element), fold, after (of the result):

    mean        sum / count             norm_2          sqrt of the sum of squares
    log_sum     log of the sum          log_sum_exp     log of the sum of e^(x - m), plus m, the greatest if it is finite
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.folds import MAX, MIN, PRODUCT, SUM, Fold
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F64, I32, I64, U64, Kind, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.lines import FIRST_FREE, Along, ReducedStrip, VectorPosition
from sardonyx.codegen.kernels.short_lines import reduced_strips
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "CUMULATIVE_BLOCK",
    "REDUCTIONS",
    "CumulativeParams",
    "Reduction",
    "position_of",
    "write_cumulative",
    "write_cumulative_rows",
    "write_cumulative_totals",
    "write_extreme",
    "write_reduce",
]

X, Y = range(2)
_COUNT = FIRST_FREE


@dataclass(frozen=True, slots=True)
class Reduction:
    """How elements become one."""

    fold: Fold
    """How they are put together."""
    before: Callable[[Function, Register], Register] = lambda b, x: x
    """What is done to each element first."""
    after: Callable[[Function, Register, Register], Register] = lambda b, total, count: total
    """What is done to the result, of it and how many elements there were."""
    is_exponential: bool = False
    """Whether it is the sum of exponentials, from which the greatest is taken out before."""


def _square(b: Function, x: Register) -> Register:
    return x * x


def _magnitude(b: Function, x: Register) -> Register:
    return b.abs(x)


def _mean(b: Function, total: Register, count: Register) -> Register:
    """Return the mean; of integers it is truncated, and 0 where there are none."""
    if total.type.is_float:
        return total / count
    wide = I64 if total.type.kind is Kind.SIGNED else U64
    return (total.to(wide) // b.max(count, 1).to(wide)).to(total.type)


def _root(b: Function, total: Register, count: Register) -> Register:
    return b.sqrt(total)


def _log(b: Function, total: Register, count: Register) -> Register:
    return mathlib.log(b, total)


REDUCTIONS: Mapping[str, Reduction] = {
    "log_sum": Reduction(SUM, after=_log),
    "log_sum_exp": Reduction(SUM, after=_log, is_exponential=True),
    "max": Reduction(MAX),
    "mean": Reduction(SUM, after=_mean),
    "min": Reduction(MIN),
    "norm_1": Reduction(SUM, before=_magnitude),
    "norm_2": Reduction(SUM, before=_square, after=_root),
    "prod": Reduction(PRODUCT),
    "root": Reduction(SUM, after=_root),
    "sum": Reduction(SUM),
    "sum_square": Reduction(SUM, before=_square),
}
"""Every reduction under its name; of floats for those with an `after`, of integers too for the mean and the others."""


def write_reduce(module: Module, symbol: str, along: Along, name: str, kind: Type, after: ElementExpr) -> None:
    """Write the kernel `symbol`: buffers X and Y; parameters as `lines` says, then as `float_word` how many elements make one.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        along: what is reduced.
        name: one of REDUCTIONS.
        kind: the type of the elements.
        after: what is stored, of argument 0, the result.
    """
    reduction = REDUCTIONS[name]
    with module.kernel(symbol) as b:
        x, y = b.buffer(X, kind), b.buffer(Y, after.type)
        for strip in reduced_strips(b, along, kind):
            totals = _exponentials(b, strip, x) if reduction.is_exponential else _totals(b, strip, x, reduction)
            strip.put(y, [write_expressions(b, [after], [total])[0].splat(total.type.lanes) for total in totals])


def _totals(b: Kernel, strip: ReducedStrip, x: Pointer, reduction: Reduction) -> list[Register]:
    kind = x.element
    totals = strip.fold(reduction.fold, lambda place: reduction.before(b, strip.load(x, place)), kind)
    count = b.param_float(_COUNT, kind if kind.is_float else F64)
    return [reduction.after(b, total, count) for total in totals]


def _exponentials(b: Kernel, strip: ReducedStrip, x: Pointer) -> list[Register]:
    """Return the logarithm of the sum of e^x; where the greatest is infinite or NaN nothing is taken out."""
    kind = x.element
    greatest = strip.fold(MAX, functools.partial(strip.load, x), kind)
    finite = [b.select(b.abs(value) < math.inf, value, value.like(0)) for value in greatest]
    sums = strip.fold(SUM, lambda place: mathlib.exp(b, strip.load(x, place) - finite[place.number]), kind, chains=1)
    return [mathlib.log(b, total) + value for total, value in zip(sums, finite, strict=True)]


def write_extreme(module: Module, symbol: str, along: Along, kind: Type, *, greatest: bool, last: bool) -> None:
    """Write the kernel `symbol`, which finds where the greatest or least is: buffers X and Y, of int64; parameters as `lines` says.

    NaN counts as more extreme than any number. There are two passes: what the extreme is, then where.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        along: what is searched; fewer than 2^31 elements.
        kind: the type of the elements.
        greatest: whether the greatest or the least is wanted.
        last: whether the last or the first of several is wanted.
    """
    counter = I64 if kind.bits == 64 else I32
    with module.kernel(symbol) as b:
        x, y = b.buffer(X, kind), b.buffer(Y, I64)
        nowhere = b.const(counter, (MAX if last else MIN).neutral(counter))
        for strip in reduced_strips(b, along, kind):
            extremes = strip.fold(MAX if greatest else MIN, functools.partial(strip.load, x), kind)

            where = functools.partial(position_of, b, strip, x, extremes, nowhere)
            found = strip.fold(MAX if last else MIN, where, counter)
            strip.put(y, [position.to(I64) for position in found])


def position_of(
    b: Kernel, strip: ReducedStrip, x: Pointer, extremes: Sequence[Register], nowhere: Register, place: VectorPosition
) -> Register:
    """Return for each lane of a place its position where it is the extreme of its fold, else `nowhere`, which is never chosen."""
    value = strip.load(x, place)
    extreme = extremes[place.number]
    found = value.eq(extreme) | (b.is_nan(value) & b.is_nan(extreme)) if x.element.is_float else value.eq(extreme)
    return b.select(found, strip.position(place, nowhere.type), nowhere)


@dataclass(frozen=True, slots=True)
class CumulativeParams:
    """The integer parameters of `write_cumulative`, in their order."""

    outer: int
    """How many outer indices."""
    lines: int
    """Lines of one outer index."""
    length: int
    """Elements of a line."""
    block: int
    """Columns of one task, at most _MOST_COLUMNS."""

    @staticmethod
    def shared(outer: int, lines: int, length: int, threads: int) -> CumulativeParams:
        """Return the parameters with blocks that suit `threads`: wide ones, since memory is read line by line."""
        pieces = -(-2 * threads // max(outer, 1)) if threads > 1 else 1
        wanted = min(-(-length // pieces), _TASK_ELEMENTS // max(lines, 1), _MOST_COLUMNS)
        return CumulativeParams(outer, lines, length, max(wanted & -_LEAST_COLUMNS, _LEAST_COLUMNS))

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.outer, self.lines, self.length, self.block]

    def tasks(self) -> int:
        """Return how many tasks the kernel is."""
        return self.outer * -(-self.length // self.block)


_LEAST_COLUMNS, _MOST_COLUMNS = 64, 1024
_TASK_ELEMENTS = 1 << 22


def write_cumulative(module: Module, symbol: str, fold: Fold, kind: Type, *, exclusive: bool, reverse: bool) -> None:
    """Write the kernel `symbol`, which replaces each line by the fold of the lines up to it: buffers X and Y (which may be X).

    A task is a block of columns, whose folds lie on the stack.

    Args:
        module: where to write.
        symbol: the name of the kernel; parameters as CumulativeParams.
        fold: what is done with the lines, one after another.
        kind: the type of the elements.
        exclusive: whether a line itself is left out.
        reverse: whether to begin at the last line.
    """
    with module.kernel(symbol) as b:
        x, y, totals = b.buffer(X, kind), b.buffer(Y, kind), b.stack(kind, _MOST_COLUMNS, align=64)
        lines, length, block = (b.param(place) for place in range(1, 4))
        pieces = (length + block - 1) // block
        with b.loop(b.begin, b.end) as task:
            first = task % pieces * block
            count, start = b.min(block, length - first), task // pieces * lines * length + first
            for i, span in b.vectors(0, count, kind):
                totals.store(b.const(kind.vector(span.lanes), fold.neutral(kind)), i, span)
            with b.loop(0, lines) as step:
                place = start + (lines - 1 - step if reverse else step) * length
                for i, span in b.vectors(0, count, kind):
                    before = totals.load(i, span)
                    total = fold.combine(b, before, x.load(place + i, span))
                    totals.store(total, i, span)
                    y.store(before if exclusive else total, place + i, span)


CUMULATIVE_BLOCK = 1 << 16
"""Elements of a row that are folded one after another: in a longer row each block begins at the fold of those before."""
_SIDE_BY_SIDE = 8


def write_cumulative_totals(module: Module, symbol: str, fold: Fold, kind: Type, *, reverse: bool) -> None:
    """Write the kernel `symbol`: Y[row, block] is the fold of a block of a row. A task is a block; parameters as for rows."""
    with module.kernel(symbol) as b:
        x, y, length, blocks = b.buffer(X, kind), b.buffer(Y, kind), b.param(1), b.param(2)
        with b.loop(b.begin, b.end) as task:
            row, block = task // blocks, task % blocks
            begin, end = _block(b, block, length)
            total = b.variable(b.const(kind, fold.neutral(kind)))
            with b.loop(begin, end) as i:
                place = begin + end - 1 - i if reverse else i
                total.set(fold.combine(b, total.value, x.load(row * length + place)))
            y.store(total.value, task)


def write_cumulative_rows(module: Module, symbol: str, fold: Fold, kind: Type, *, exclusive: bool, reverse: bool) -> None:
    """Write the kernel `symbol`, as `write_cumulative` for rows: buffers X, Y (which may be X), and totals of blocks.

    A task is a block of some rows, which are folded side by side. Parameters: rows, elements of one, blocks of one, rows of a task.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        fold: what is done with the elements, one after another.
        kind: the type of the elements.
        exclusive: whether an element itself is left out.
        reverse: whether to begin at the last element.
    """
    with module.kernel(symbol) as b:
        rows, length, blocks, together = (b.param(place) for place in range(4))
        x, y, totals = b.buffer(X, kind), b.buffer(Y, kind), b.buffer(2, kind)

        def fold_rows(first: Register, count: int, block: Register) -> None:
            begin, end = _block(b, block, length)
            running = [b.variable(b.const(kind, fold.neutral(kind))) for _ in range(count)]
            with b.loop(0, blocks - 1 - block if reverse else block) as step:
                for number, total in enumerate(running):
                    before = blocks - 1 - step if reverse else step
                    total.set(fold.combine(b, total.value, totals.load((first + number) * blocks + before)))
            with b.loop(begin, end) as i:
                place = begin + end - 1 - i if reverse else i
                given = [x.load((first + number) * length + place) for number in range(count)]
                for number, (total, value) in enumerate(zip(running, given, strict=True)):
                    before = total.value
                    total.set(fold.combine(b, before, value))
                    y.store(before if exclusive else total.value, (first + number) * length + place)

        with b.loop(b.begin, b.end) as task:
            block, first = task % blocks, task // blocks * together
            last = b.min(first + together, rows)
            whole = first + ((last - first) & -_SIDE_BY_SIDE)
            with b.loop(first, whole, _SIDE_BY_SIDE) as row:
                fold_rows(row, _SIDE_BY_SIDE, block)
            with b.loop(whole, last) as row:
                fold_rows(row, 1, block)


def _block(b: Kernel, block: Register, length: Register) -> tuple[Register, Register]:
    begin = block * CUMULATIVE_BLOCK
    return begin, b.min(begin + CUMULATIVE_BLOCK, length)
