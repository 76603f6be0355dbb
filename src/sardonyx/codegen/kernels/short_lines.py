"""Folds of a tensor whose rows or lines are short, so that a vector of one of them would be mostly empty.

Columns of short lines, several lines to a vector, for folds of many lines:

    memory      a0 b0 c0 a1 b1 c1 a2 b2 c2 …            lines of 3 elements, vectors of 8 lanes
    vectors     [a0 b0 c0 a1 b1 c1 . .]  [a2 b2 c2 …    whole lines; the lanes behind them are masked
    folded      a0 + a2 + …, …, a1 + a3 + …, …          vector onto vector
    combined    (a0 + a2 + …) + (a1 + a3 + …), …        then lanes of the same column, in every lane of it

Short rows, and columns of few short lines, are gathered with one fold to a lane: a vector holds an element each of neighbouring
folds, and nothing is combined across lanes. A row is a column of lines of one element.

The order depends on the sizes alone, as `lines` wants it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from sardonyx.codegen.emit.folds import Fold, Folding, in_turns
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.types import I32, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.lines import (
    Along,
    ReducedStrip,
    Strip,
    Term,
    VectorPosition,
    column_strips,
    line_sizes,
    row_length,
    row_strips,
    strips,
    task_rows,
)

__all__ = ["GatheredStrip", "block_strips", "mapped_rows", "packed_strips", "reduced_strips"]

_LEAST_VECTORS = 2
"""Fewer vectors of lines are not worth the combination of lanes."""
_LEAST_GATHERED = 2
"""Least outer indices of 32-bit elements to a gathered vector; of 64 bits twice as many, as fewer are gathered at once."""
_MOST_GATHERED = 8
"""Lines for each outer index of a gathered vector, up to which a gather for each is faster than vectors of lines."""
_MOST_BESIDE_MASKS = 4
"""Elements of 32 bits of rows that are gathered where masks are free: longer ones are faster read a row to a vector."""
_VECTORS = 2
"""Vectors of gathered folds side by side."""
_GATHERED_BITS, _GATHERING_BYTES = 32, 32
"""Elements of fewer bits are gathered by no instruction, nor are any where registers have fewer bytes."""


def packed_strips(b: Kernel, along: Along, element: Type, *, only_folds: bool = False) -> Iterator[Strip]:
    """Loop over strips as `lines.strips` does, but take columns of many short lines by vectors of several lines.

    For kernels without extra operands, as a place of such a strip spans several lines. The body is written once more for columns.
    """
    if along is Along.ROWS or b.lanes(element) < 4:
        yield from strips(b, along, element, only_folds=only_folds)
        return
    layout = _Layout(b, *line_sizes(b), b.lanes(element))
    packed = layout.is_short & (layout.lines >= layout.together * _LEAST_VECTORS)
    with b.when(packed), b.loop(b.begin, b.end) as outer:
        yield _PackedStrip(layout, outer, element)
    with b.when(~packed):
        yield from strips(b, along, element, only_folds=only_folds)


def block_strips(b: Kernel, lines: Register, columns: tuple[Register, Register], element: Type) -> Iterator[Strip]:
    """Loop over the strips of some columns of so many lines, which lie behind each other from the first element of arrays on.

    Whole lines are taken by vectors of several where they are short and many; its body is written three times.
    """
    length, zero = line_sizes(b)[1], lines.like(0)
    if b.lanes(element) < 4:
        yield from column_strips(b, zero, columns, element, lines)
        return
    layout = _Layout(b, lines, length, b.lanes(element))
    packed = layout.is_short & (lines >= layout.together * _LEAST_VECTORS)
    with b.when(packed):
        yield _PackedStrip(layout, zero, element)
    with b.when(~packed):
        yield from column_strips(b, zero, columns, element, lines)


def reduced_strips(b: Kernel, along: Along, element: Type) -> Iterator[ReducedStrip]:
    """Loop over strips as `packed_strips` does, of a kernel that only folds and puts; short folds are gathered, one to a lane."""
    if element.bits < _GATHERED_BITS or b.target.vector_bytes < _GATHERING_BYTES:
        yield from packed_strips(b, along, element, only_folds=True)
        return
    if along is Along.ROWS:
        length = row_length(b)
        layout = _Layout(b, length, length * 0 + 1, b.lanes(element))
        yield from _short_rows(layout, _most_gathered(b, element, b.lanes(I32)), element)
        return
    layout = _Layout(b, *line_sizes(b), b.lanes(element))
    few = (layout.together >= _LEAST_GATHERED * element.bits // _GATHERED_BITS) & (layout.lines <= layout.together * _MOST_GATHERED)
    with b.when(few):
        yield from _gathered_strips(layout, b.begin, b.end, element)
    with b.when(~few):
        yield from packed_strips(b, along, element, only_folds=True)


def mapped_rows(b: Kernel, element: Type) -> Iterator[GatheredStrip | Strip]:
    """Loop over the strips of rows as `lines.strips` does, but gather rows that fit a vector where there are gathers.

    For kernels without extra operands. What was folded of gathered rows is spread over their elements by `GatheredStrip.spread`.
    """
    if element.bits < _GATHERED_BITS or b.target.vector_bytes < _GATHERING_BYTES:
        yield from strips(b, Along.ROWS, element)
        return
    length, lanes = row_length(b), b.lanes(element)
    whole = _Layout(b, length, length, lanes)
    yield from _short_rows(_Layout(b, length, length * 0 + 1, lanes), _most_gathered(b, element, lanes), element, whole)


def _most_gathered(b: Kernel, element: Type, most: int) -> int:
    """Return how many elements a row has at most that is gathered, `most` where masks are not free."""
    return _MOST_BESIDE_MASKS * _GATHERED_BITS // element.bits if b.target.has_masks else most


def _short_rows(layout: _Layout, most: int, element: Type, whole: _Layout | None = None) -> Iterator[GatheredStrip | Strip]:
    """Loop over the strips of rows, gathered where they have at most so many elements; `whole` is how they lie in a vector."""
    b, few = layout.b, layout.lines <= most
    for first, last in task_rows(b):
        between = b.select(few, last, first)
        yield from _gathered_strips(layout, first, between, element, whole)
        yield from row_strips(b, between, last, element)


class _Layout:
    """How whole lines lie in a vector: element c of line r in lane r * length + c."""

    def __init__(self, b: Kernel, lines: Register, length: Register, lanes: int) -> None:
        self.b, self.lines, self.length, self.lanes = b, lines, length, lanes
        self.together = b.const(length.type, lanes) // b.max(length, 1)
        self.is_short, self.used = self.together > 1, self.together * length
        rows = b.stack(I32, lanes)
        with b.loop(0, lanes) as lane:
            rows.store((lane // b.max(length, 1)).to(I32), lane)
        self.rows = rows.load(0, lanes)

    def mask(self, lines: Register) -> Register:
        """Return the lanes of so many lines, at most those of a vector."""
        return self.b.tail_mask(self.b.min(lines, self.together) * self.length, self.lanes)

    def span(self, lines: Register) -> Span:
        """Return an access to so many lines, at most those of a vector."""
        return Span(self.lanes, self.mask(lines))

    def combine(self, fold: Fold, vector: Register) -> Register:
        """Combine lanes of the same column, in the order of their lines; the result is in every lane of the column."""
        b = self.b
        memory = b.stack(vector.type.scalar, 2 * self.lanes)
        memory.store(vector, 0, self.lanes)
        memory.store(vector, self.lanes, self.lanes)
        total = b.variable(vector)
        with b.loop(self.length, self.used, self.length) as lane:
            total.set(fold.combine(b, total.value, memory.load(lane, self.lanes)))
        with b.loop(0, self.used, self.length) as lane:
            memory.store(total.value, lane, self.lanes)
        return memory.load(0, self.lanes)


class _PackedStrip:
    """All columns of one outer index, several lines to a vector."""

    width = 1

    def __init__(self, layout: _Layout, outer: Register, element: Type) -> None:
        self._layout, self._first, self.kind = layout, outer * layout.lines, element
        self._start = outer * layout.length
        self.count, self.lanes = layout.lines, layout.lanes

    def fold(self, fold: Fold, term: Term, kind: Type | None = None, *, chains: int = 2) -> list[Register]:
        """Fold the lines."""
        return self._fold(fold, [term], kind or self.kind, chains)

    def fold_all(self, fold: Fold, terms: Sequence[Term]) -> list[list[Register]]:
        """Fold several terms of the lines."""
        return [[total] for total in self._fold(fold, terms, self.kind, 2)]

    def _fold(self, fold: Fold, terms: Sequence[Term], kind: Type, chains: int) -> list[Register]:
        """Fold whole vectors by blocks, then what is left under a mask, then lanes."""
        layout, b = self._layout, self._layout.b
        folding = Folding(b, fold, kind.vector(self.lanes), len(terms), layout.together, chains)
        totals = folding.totals()
        step = layout.together * chains
        whole, full = layout.lines // step * step, layout.span(layout.together)
        folding.take_range(totals, b.const(whole.type, 0), whole, lambda line: self._terms(terms, line, full), 2)
        neutral = b.const(kind.vector(self.lanes), fold.neutral(kind))
        with b.loop(whole, layout.lines, layout.together) as line:
            mask = layout.mask(layout.lines - line)
            terms_left = self._terms(terms, line, Span(self.lanes, mask))
            folding.take(totals, [b.select(mask, value, neutral) for value in terms_left])
        return [layout.combine(fold, total.value) for total in totals]

    def load(self, source: Pointer, place: VectorPosition) -> Register:
        """Return neighbouring lines."""
        return source.load(place.offset, place.span)

    def position(self, place: VectorPosition, kind: Type) -> Register:
        """Return the line of each lane."""
        return (place.line - self._first).to(kind).splat(self.lanes) + self._layout.rows.to(kind)

    def put(self, target: Pointer, values: Sequence[Register]) -> None:
        """Write one line of results."""
        layout = self._layout
        target.store(values[0], self._start, Span(self.lanes, layout.b.tail_mask(layout.length, self.lanes)))

    def each_line(self, *, reverse: bool = False) -> Iterator[list[Register]]:
        """Loop over the first lines of vectors."""
        layout = self._layout
        vectors = (layout.lines + layout.together - 1) // layout.together
        with layout.b.loop(0, vectors) as i:
            number = vectors - 1 - i if reverse else i
            yield [self._first + number * layout.together]

    def each_place(self, lines: Sequence[Register]) -> Iterator[list[VectorPosition]]:
        """Yield the vector that begins with a line, without a loop."""
        yield [self._place(lines[0], self._layout.span(self._first + self._layout.lines - lines[0]))]

    def _place(self, line: Register, span: Span) -> VectorPosition:
        layout = self._layout
        return VectorPosition(0, line, layout.b.const(line.type, 0), line * layout.length, span)

    def _terms(self, terms: Sequence[Term], line: Register, span: Span) -> list[Register]:
        place = self._place(self._first + line, span)
        return in_turns(self._layout.b, [functools.partial(term, place) for term in terms])


def _gathered_strips(
    layout: _Layout, first: Register, last: Register, element: Type, whole: _Layout | None = None
) -> Iterator[GatheredStrip]:
    with layout.b.loop(first, last, layout.together * _VECTORS) as outer:
        yield GatheredStrip(layout, outer, last, element, whole)


class GatheredStrip:
    """The folds of neighbouring outer indices, one to a lane: nothing is folded across lanes."""

    width = _VECTORS

    def __init__(self, layout: _Layout, outer: Register, last: Register, element: Type, whole: _Layout | None) -> None:
        b, self._layout, self.kind, self._whole = layout.b, layout, element, whole
        self.count, self.lanes = layout.lines, layout.lanes
        self._outers = [outer + number * layout.together for number in range(_VECTORS)]
        self._left = last - outer
        self._spans = [layout.span(b.max(last - begin, 0)) for begin in self._outers]
        skipped = (layout.lines - 1) * layout.length
        self._steps = b.iota(I32, self.lanes) + layout.rows * skipped.to(I32).splat(self.lanes)

    def fold(self, fold: Fold, term: Term, kind: Type | None = None, *, chains: int = 2) -> list[Register]:
        """Fold the lines one after another, whatever `chains` is."""
        b = self._layout.b
        folding = Folding(b, fold, (kind or self.kind).vector(self.lanes), self.width, 1, 1)
        totals = folding.totals()
        with b.loop(0, self.count) as line:
            folding.take(totals, in_turns(b, [functools.partial(term, place) for place in self._places(line)]))
        return [total.value for total in totals]

    def load(self, source: Pointer, place: VectorPosition) -> Register:
        """Return a line of each of the neighbouring outer indices."""
        return source.at(place.offset).gather(self._steps, place.span.mask)

    def position(self, place: VectorPosition, kind: Type) -> Register:
        """Return the line, in every lane."""
        return place.column.to(kind).splat(self.lanes)

    def put(self, target: Pointer, values: Sequence[Register]) -> None:
        """Write a number for each fold."""
        for outer, value, span in zip(self._outers, values, self._spans, strict=True):
            target.store(value, outer * self._layout.length, span)

    def spread(self, values: Sequence[Sequence[Register]]) -> Iterator[tuple[VectorPosition, list[Register]]]:
        """Loop over all elements of the rows, whole rows to a vector; beside a place stand the values of its lanes' rows.

        Values are of rows, as `fold` gives them. For rows of at most so many elements as a vector has lanes.
        """
        whole = self._whole
        if whole is None:
            raise TypeError("only strips of `mapped_rows` are spread")
        b, most = whole.b, self.width * self.lanes
        rows, memories = b.min(self._left, most), [b.stack(parts[0].type.scalar, most) for parts in values]
        for memory, parts in zip(memories, values, strict=True):
            for number, part in enumerate(parts):
                memory.store(part, number * self.lanes, self.lanes)
        with b.loop(0, rows, whole.together) as row:
            first = self._outers[0] + row
            place = VectorPosition(0, first, row * 0, first * whole.length, whole.span(rows - row))
            numbers = whole.rows + row.to(I32).splat(self.lanes)
            yield place, [memory.gather(numbers, place.span.mask) for memory in memories]

    def _places(self, line: Register) -> list[VectorPosition]:
        layout = self._layout
        return [
            VectorPosition(number, outer, line, (outer * layout.lines + line) * layout.length, span)
            for number, (outer, span) in enumerate(zip(self._outers, self._spans, strict=True))
        ]
