"""Kernels that fold a tensor along one direction and then write it: reductions, softmax, normalization.

The tensor is seen as outer x lines x length; a line lies in memory element after element. There are two ways to fold:

    rows        everything of one outer index to a number        [lines x length] -> 1
    columns     the lines of one outer index onto each other     [lines] x length -> length

A kernel is written once for both, on a `Strip`: a few rows, or a few vectors of neighbouring columns, that are folded side by
side so that their latencies overlap.

    for strip in strips(b, Along.ROWS, F32):
        means = [total / strip.count for total in strip.fold(SUM, lambda place: x.load(place.offset, place.span))]

The order in which a fold combines elements depends on the sizes alone: not on threads, nor on what else is in the batch.

Parameters: outer, lines, length, block (outer indices of one task where rows are folded, else columns of one task), those of the
kernel, and those of the walk of the extra operands (`Operands`).
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.folds import Fold, Folding, across, in_turns
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "FIRST_FREE",
    "TASK_ELEMENTS",
    "Along",
    "ExtraOperand",
    "LineParams",
    "Operands",
    "ReducedStrip",
    "RowStrip",
    "Strip",
    "Term",
    "VectorPosition",
    "column_strips",
    "line_sizes",
    "row_length",
    "row_strips",
    "strips",
    "task_rows",
    "write_lines",
]


class Along(enum.Enum):
    """What is folded to one number."""

    ROWS = "rows"
    COLUMNS = "columns"


_OUTER, _LINES, _LENGTH, _BLOCK, FIRST_FREE = range(5)

TASK_ELEMENTS = 1 << 14
"""Elements of one task: large enough to hide its start, small enough to share out."""

_MASKED_BITS = 32
"""Bits of the least elements that are loaded under a mask by an instruction of a processor where masks are not free."""
_FOLDED_WIDTH = 8
"""Vectors of a strip of columns that is only folded, where registers are few: outer totals wait in memory."""
SHORT_ROW = 1024
"""Rows up to this length are folded several at a time: longer ones have enough to do on their own."""


@dataclass(frozen=True, slots=True)
class LineParams:
    """The first parameters of a kernel."""

    outer: int
    """How many outer indices."""
    lines: int
    """Lines of one outer index."""
    length: int
    """Elements of a line."""
    along: Along
    """What is folded."""

    @property
    def block(self) -> int:
        """Outer indices, or columns, of one task."""
        if self.along is Along.ROWS:
            fitting = TASK_ELEMENTS // max(self.lines * self.length, 1)
            return max(fitting & -4, 1) if fitting >= 4 else max(fitting, 1)
        return max(TASK_ELEMENTS // max(self.lines, 1) & -64, 64)

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.outer, self.lines, self.length, self.block]

    def tasks(self) -> int:
        """Return how many tasks the kernel is."""
        if self.along is Along.ROWS:
            return -(-self.outer // self.block)
        return self.outer * -(-self.length // self.block)


@dataclass(frozen=True, slots=True)
class VectorPosition:
    """Where a vector of a strip lies."""

    number: int
    """Which of the strip's folds it belongs to."""
    line: Register
    """The line, counted through the whole tensor; while rows of several lines are folded, the row."""
    column: Register
    """The first element within the line, or within the row while rows are folded."""
    offset: Register
    """The first element within the tensor."""
    span: Span
    """How many elements, and under which mask."""


Term = Callable[[VectorPosition], Register]
"""What is folded at a place; may also write there. It is called once for each place."""


class ReducedStrip(Protocol):
    """Some folds that are computed side by side, and of which only the results are written."""

    count: Register
    """How many elements each fold takes in, as an integer."""
    width: int
    """How many folds there are."""
    lanes: int
    """How many lanes the vectors have that are folded."""
    kind: Type
    """The type of the elements, and of terms that are folded unless others are named."""

    def fold(self, fold: Fold, term: Term, kind: Type | None = None, *, chains: int = 2) -> list[Register]:
        """Fold all terms, of type `kind`: for each fold its result, a number (rows) or a vector of them (columns).

        `chains` says how many independent ones each fold is made of: 2, or 1 for terms that take long themselves.
        """

    def load(self, source: Pointer, place: VectorPosition) -> Register:
        """Return the elements of an array of the shape of the tensor at a place; what lanes outside it have does not count."""

    def position(self, place: VectorPosition, kind: Type) -> Register:
        """Return how far along the fold the lanes of a place are, as integers of type `kind`."""

    def put(self, target: Pointer, values: Sequence[Register]) -> None:
        """Write a result of each fold to the array of all results."""


class Strip(ReducedStrip, Protocol):
    """Some folds whose elements are gone through again."""

    def fold_all(self, fold: Fold, terms: Sequence[Term]) -> list[list[Register]]:
        """Fold several terms in one pass: for each term what `fold` gives."""

    def each_line(self, *, reverse: bool = False) -> Iterator[list[Register]]:
        """Loop over the lines: for each fold the number of its line."""

    def each_place(self, lines: Sequence[Register]) -> Iterator[list[VectorPosition]]:
        """Loop over the places of a line: one for each fold."""


class RowStrip:
    """Some rows."""

    def __init__(self, b: Kernel, rows: Sequence[Register], element: Type) -> None:
        """Make a strip of `rows`; vectors have as many lanes as a register holds of `element`."""
        self._b, self._rows, self.kind = b, rows, element
        self._lines, self._length = b.param(_LINES), b.param(_LENGTH)
        self.count, self.width, self.lanes = self._lines * self._length, len(rows), b.lanes(element)

    def fold(self, fold: Fold, term: Term, kind: Type | None = None, *, chains: int = 2) -> list[Register]:
        """Fold whole rows."""
        return self._fold(fold, [term], self._all, kind or self.kind, chains)

    def fold_all(self, fold: Fold, terms: Sequence[Term]) -> list[list[Register]]:
        """Fold several terms of whole rows."""
        return self.fold_range(fold, terms, self._all)

    def fold_range(self, fold: Fold, terms: Sequence[Term], within: tuple[Register, Register]) -> list[list[Register]]:
        """Fold several terms of a part of each row, from the first number to the one before the second."""
        found = self._fold(fold, terms, within, self.kind, 2)
        return [found[begin : begin + self.width] for begin in range(0, len(found), self.width)]

    def _fold(
        self, fold: Fold, terms: Sequence[Term], within: tuple[Register, Register], kind: Type, chains: int
    ) -> list[Register]:
        """Fold whole vectors by blocks, then what is left under a mask."""
        b, lanes, (begin, end) = self._b, self.lanes, within
        folding = Folding(b, fold, kind.vector(lanes), self.width * len(terms), lanes, chains)
        totals = folding.totals()
        whole = begin + ((end - begin) & -(chains * lanes))
        depth = 2 if self.width == 1 else 1
        folding.take_range(totals, begin, whole, lambda i: self._terms(terms, i, Span(lanes)), depth)
        neutral = b.const(kind.vector(lanes), fold.neutral(kind))
        with b.loop(whole, end, lanes) as i:
            mask = b.tail_mask(b.min(end - i, lanes), lanes)
            folding.take(totals, [b.select(mask, value, neutral) for value in self._terms(terms, i, Span(lanes, mask))])
        values = [total.value for total in totals]
        return [value for i in range(0, len(values), self.width) for value in across(b, fold, values[i : i + self.width])]

    def load(self, source: Pointer, place: VectorPosition) -> Register:
        """Return neighbours of a row; where no instruction loads under a mask, lanes of others have any value."""
        b, span = self._b, place.span
        if span.mask is None or source.element.bits >= _MASKED_BITS or b.target.has_masks:
            return source.load(place.offset, span)
        found = b.variable(b.const(source.element.vector(span.lanes), 0))
        b.branch(
            place.offset + span.lanes <= b.param(_OUTER) * self.count,
            lambda: found.set(source.load(place.offset, span.lanes)),
            lambda: found.set(source.load(place.offset, span)),
        )
        return found.value

    def position(self, place: VectorPosition, kind: Type) -> Register:
        """Return the column of each lane."""
        return self._b.iota(kind, place.span.lanes) + place.column.to(kind)

    def put(self, target: Pointer, values: Sequence[Register]) -> None:
        """Write one number for each row."""
        for row, value in zip(self._rows, values, strict=True):
            target.store(value, row)

    def each_line(self, *, reverse: bool = False) -> Iterator[list[Register]]:
        """Loop over the lines of the rows."""
        with self._b.loop(0, self._lines) as i:
            line = self._lines - 1 - i if reverse else i
            yield [row * self._lines + line for row in self._rows]

    def each_place(self, lines: Sequence[Register]) -> Iterator[list[VectorPosition]]:
        """Loop over a line of each row."""
        starts = [line * self._length for line in lines]
        for i, span in self._b.vectors(0, self._length, self.kind):
            yield [VectorPosition(u, line, i, start + i, span) for u, (line, start) in enumerate(zip(lines, starts, strict=True))]

    @property
    def _all(self) -> tuple[Register, Register]:
        return self._b.const(self.count.type, 0), self.count

    def _terms(self, terms: Sequence[Term], i: Register, span: Span) -> list[Register]:
        places = [VectorPosition(u, row, i, row * self.count + i, span) for u, row in enumerate(self._rows)]
        return in_turns(self._b, [functools.partial(term, place) for term in terms for place in places])


class _ColumnStrip:
    """Some vectors of neighbouring columns of one outer index, of `lines` lines; those of the parameters unless given."""

    def __init__(
        self, b: Kernel, outer: Register, columns: Sequence[tuple[Register, Span]], element: Type, lines: Register | None = None
    ) -> None:
        self._b, self._outer, self._columns, self.kind = b, outer, columns, element
        self._lines, self._length = b.param(_LINES) if lines is None else lines, b.param(_LENGTH)
        self.count, self.width, self.lanes = self._lines, len(columns), columns[0][1].lanes

    def fold(self, fold: Fold, term: Term, kind: Type | None = None, *, chains: int = 2) -> list[Register]:
        """Fold the lines."""
        return self._fold(fold, [term], kind or self.kind, chains)

    def fold_all(self, fold: Fold, terms: Sequence[Term]) -> list[list[Register]]:
        """Fold several terms of the lines."""
        found = self._fold(fold, terms, self.kind, 2)
        return [found[begin : begin + self.width] for begin in range(0, len(found), self.width)]

    def _fold(self, fold: Fold, terms: Sequence[Term], kind: Type, chains: int) -> list[Register]:
        """Fold by blocks, then those that are left."""
        b = self._b
        folding = Folding(b, fold, kind.vector(self.lanes), self.width * len(terms), 1, chains)
        totals = folding.totals()
        whole = self._lines & -chains
        folding.take_range(totals, b.const(whole.type, 0), whole, lambda line: self._terms(terms, line), 2)
        if chains > 1:
            with b.loop(whole, self._lines) as line:
                folding.take(totals, self._terms(terms, line))
        return [total.value for total in totals]

    def load(self, source: Pointer, place: VectorPosition) -> Register:
        """Return neighbouring columns of a line."""
        return source.load(place.offset, place.span)

    def position(self, place: VectorPosition, kind: Type) -> Register:
        """Return the line, in every lane."""
        return (place.line - self._outer * self._lines).to(kind).splat(place.span.lanes)

    def put(self, target: Pointer, values: Sequence[Register]) -> None:
        """Write a vector of numbers for each vector of columns."""
        for (column, span), value in zip(self._columns, values, strict=True):
            target.store(value, self._outer * self._length + column, span)

    def each_line(self, *, reverse: bool = False) -> Iterator[list[Register]]:
        """Loop over the lines, which all folds share."""
        with self._b.loop(0, self._lines) as i:
            line = self._lines - 1 - i if reverse else i
            yield [self._outer * self._lines + line] * len(self._columns)

    def each_place(self, lines: Sequence[Register]) -> Iterator[list[VectorPosition]]:
        """Yield all places of a line, without a loop."""
        yield self._places(lines[0])

    def _places(self, line: Register) -> list[VectorPosition]:
        start = line * self._length
        return [VectorPosition(u, line, column, start + column, span) for u, (column, span) in enumerate(self._columns)]

    def _terms(self, terms: Sequence[Term], line: Register) -> list[Register]:
        places = self._places(self._outer * self._lines + line)
        return in_turns(self._b, [functools.partial(term, place) for term in terms for place in places])


def strips(b: Kernel, along: Along, element: Type = F32, *, only_folds: bool = False) -> Iterator[Strip]:
    """Loop over the strips of the tasks of a kernel; its body is written twice, for wide strips and for what is left.

    Args:
        b: the kernel.
        along: what is folded.
        element: vectors have as many lanes as a register holds of this type.
        only_folds: whether the body only folds and puts: where registers are few, it is written once more for columns, for strips
            of several lines of the cache. Neighbouring lines are fetched together, and are lost before the next strip comes to
            them where lines of the tensor lie a power of two apart.
    """
    if along is Along.COLUMNS:
        widths = (_FOLDED_WIDTH, _width(b)) if only_folds and not _has_many_registers(b) else (_width(b),)
        yield from _column_strips(b, element, widths)
        return
    for first, last in task_rows(b):
        yield from row_strips(b, first, last, element)


def task_rows(b: Kernel) -> Iterator[tuple[Register, Register]]:
    """Loop over the tasks of a kernel that folds rows: the first row of each and the one behind its last."""
    outer, block = b.param(_OUTER), b.param(_BLOCK)
    with b.loop(b.begin, b.end) as task:
        first = task * block
        yield first, b.min(first + block, outer)


def line_sizes(b: Kernel) -> tuple[Register, Register]:
    """Return how many lines an outer index has, and how many elements a line."""
    return b.param(_LINES), b.param(_LENGTH)


def row_length(b: Kernel) -> Register:
    """Return how many elements a row has that is folded."""
    return b.param(_LINES) * b.param(_LENGTH)


def row_strips(b: Kernel, first: Register, last: Register, element: Type) -> Iterator[Strip]:
    """Loop over the strips of the rows from `first` to the one before `last`; its body is written twice."""
    width = _width(b)
    short = row_length(b) <= SHORT_ROW
    whole = b.select(short, first + ((last - first) & -width), first)
    with b.loop(first, whole, width) as row:
        yield RowStrip(b, [row + u for u in range(width)], element)
    with b.loop(whole, last) as row:
        yield RowStrip(b, [row], element)


def _column_strips(b: Kernel, element: Type, widths: Sequence[int]) -> Iterator[Strip]:
    length, block = b.param(_LENGTH), b.param(_BLOCK)
    pieces = (length + block - 1) // block
    with b.loop(b.begin, b.end) as task:
        outer, first = task // pieces, task % pieces * block
        yield from column_strips(b, outer, (first, b.min(first + block, length)), element, widths=widths)


def column_strips(
    b: Kernel,
    outer: Register,
    columns: tuple[Register, Register],
    element: Type,
    lines: Register | None = None,
    *,
    widths: Sequence[int] = (),
) -> Iterator[Strip]:
    """Loop over the strips of the columns from the first number to the one before the second.

    They have so many `lines`, which are those of the parameters unless given. The body is written for strips of so many vectors as
    `widths` says, or the one that suits the registers, and once more for what is left.
    """
    (first, last), lanes = columns, b.lanes(element)
    for width in widths or (_width(b),):
        whole = first + ((last - first) & -(width * lanes))
        with b.loop(first, whole, width * lanes) as i:
            yield _ColumnStrip(b, outer, [(i + v * lanes, Span(lanes)) for v in range(width)], element, lines)
        first = whole
    with b.loop(first, last, lanes) as i:
        yield _ColumnStrip(b, outer, [(i, Span(lanes, b.tail_mask(b.min(last - i, lanes), lanes)))], element, lines)


def _width(b: Function) -> int:
    """Return the number of folds of one strip: as many as the registers hold with their two halves, and constants too."""
    return 4 if _has_many_registers(b) else 2


def _has_many_registers(b: Function) -> bool:
    return b.target.registers >= 32


@dataclass(frozen=True, slots=True)
class ExtraOperand:
    """A tensor that an expression reads beside the folded one, broadcast to it."""

    element: Type
    """Its element type."""
    ordered: bool
    """Whether it is walked along a line element after element, or is one element for the whole line."""
    moves: tuple[bool, ...]
    """For each dimension of the walk over lines, outermost first, whether it moves along."""


def write_lines(
    strip: Strip, target: Pointer, expr: ElementExpr, operands: Operands, element: Term, folded: Sequence[Sequence[Register]] = ()
) -> None:
    """Write a whole strip: at each place `expr` of its element, the extra operands and the folds; see `Operands.apply`."""
    for lines in strip.each_line():
        addresses = operands.at(lines)
        for places in strip.each_place(lines):
            values = operands.apply(expr, addresses, places, element, folded)
            for place, value in zip(places, values, strict=True):
                target.store(value, place.offset, place.span)


class Operands:
    """The extra operands, as a kernel reads them.

    Their walk is a few dimensions that make up the lines; parameters from `first_param` on: for each dimension, outermost
    first, its size and then the stride of each tensor in elements.
    """

    def __init__(self, b: Kernel, extra_operands: Sequence[ExtraOperand], *, first_buffer: int, first_param: int) -> None:
        self._b, self._extra_operands = b, extra_operands
        self._buffers = [b.buffer(first_buffer + k, extra.element) for k, extra in enumerate(extra_operands)]
        self._first_param = first_param

    def at(self, lines: Sequence[Register]) -> list[list[Pointer]]:
        """Return the address of each tensor for each of the lines."""
        known: dict[str, list[Pointer]] = {}
        for line in lines:
            if line.ref not in known:
                known[line.ref] = self._addresses(line)
        return [known[line.ref] for line in lines]

    def apply(
        self,
        expr: ElementExpr,
        addresses: Sequence[Sequence[Pointer]],
        places: Sequence[VectorPosition],
        element: Term,
        folded: Sequence[Sequence[Register]] = (),
    ) -> list[Register]:
        """Return for each place an expression of its element (argument 0) and the tensors (from argument 1 on, at `addresses`).

        Behind the tensors come the numbers that were `folded`: of each of them one for each fold of the strip. What several
        places share is read once.
        """
        known: dict[tuple[str, str], Register] = {}
        rows = [
            [self._load(known, pointer, extra, place) for pointer, extra in zip(row, self._extra_operands, strict=True)]
            for row, place in zip(addresses, places, strict=True)
        ]

        def write(place: VectorPosition, row: Sequence[Register]) -> Register:
            numbers = [values[place.number] for values in folded]
            return write_expressions(self._b, [expr], [element(place), *row, *numbers])[0].splat(place.span.lanes)

        return in_turns(self._b, [functools.partial(write, place, row) for place, row in zip(places, rows, strict=True)])

    def _load(
        self, known: dict[tuple[str, str], Register], pointer: Pointer, extra: ExtraOperand, place: VectorPosition
    ) -> Register:
        key = pointer.ref, place.column.ref if extra.ordered else ""
        if key not in known:
            known[key] = pointer.load(place.column, place.span) if extra.ordered else pointer.load().splat(place.span.lanes)
        return known[key]

    def _addresses(self, line: Register) -> list[Pointer]:
        b, width = self._b, 1 + len(self._extra_operands)
        offsets: list[Register | None] = [None] * len(self._extra_operands)
        rest = line
        for dim in reversed(range(len(self._extra_operands[0].moves) if self._extra_operands else 0)):
            place = self._first_param + dim * width
            position = rest % b.param(place) if dim else rest
            rest = rest // b.param(place) if dim else rest
            for k, extra in enumerate(self._extra_operands):
                if extra.moves[dim]:
                    step = position * b.param(place + 1 + k)
                    known = offsets[k]
                    offsets[k] = step if known is None else known + step
        return [buffer if offset is None else buffer.at(offset) for buffer, offset in zip(self._buffers, offsets, strict=True)]
