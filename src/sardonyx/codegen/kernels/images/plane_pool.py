"""Pooling over planes, data whose channels come first: vectors along the last axis.

A row of the output is made in two passes. The first folds the outer axes of its windows: for each element of the last axis one
number, in a scratch row that holds what changes nothing where there is padding. The second folds the taps of the last axis:

    input rows that windows meet     scratch row                 output row
    a b c d …
    e f g h …                   →    - ae bf cg dh … -     →     ae|bf  bf|cg|dh …
    (outer taps)                     (last axis, padded)         (taps of the last axis, strided)

A row that is no longer than a vector, with its padding, stays in a register between the passes, where masks are not free: the taps
of the last axis are then permutations of it.

Every element is folded by itself in the order of taps: no block, thread or position changes bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from sardonyx.codegen.emit.builder import Variable
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import AXIS_WORDS, AxisValues, WindowAxis, axis_words, blocks, least, read_axes, taps_inside
from sardonyx.codegen.kernels.pool import Fold, fold_of
from sardonyx.codegen.kernels.tiles import store_first
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["LONGEST_EXTENT", "MOST_STRIDE", "PlanePoolCode", "PlanePoolParams", "write_plane_pool"]

INPUT, OUTPUT = range(2)
"""The buffers of the kernel."""

_SCRATCH = 4096
"""Elements of the scratch row."""

LONGEST_EXTENT = _SCRATCH
"""How far the first and the last tap on the last axis may lie apart, with both."""

_SLACK = 256
"""Elements behind the scratch row that whole vectors may read."""

_WIDE = 4
"""Vectors of the first pass that go at a time."""

MOST_STRIDE = 4
"""The code for strides up to this one is their own."""

_WORDS = (32, 64)
"""Bits of elements of which parts of vectors are read and written at once."""

_MASKED_BYTES = 32
"""Vectors of so many bytes are read under masks at once also where these are not free; stores take longer."""

_TASKS_PER_THREAD = 4
_MOST_ELEMENTS = 1 << 24
"""Elements of the windows of one task at most: a run can only be ended between tasks."""


@dataclass(frozen=True, slots=True)
class PlanePoolParams:
    """The integer parameters of the kernel, in their order; then those of each axis, then its declared end."""

    rows: int
    """Rows of the output, counted through all planes and outer axes."""
    block_rows: int
    """Rows in one task."""
    block_places: int
    """Places of a row in one task."""
    axes: tuple[WindowAxis, ...]
    ends: tuple[int, ...]
    """Padding after the last element of each axis, as declared: a window may hang over it, but what it counts does not."""

    @staticmethod
    def blocked(planes: int, axes: Sequence[WindowAxis], ends: Sequence[int], *, threads: int = 1) -> PlanePoolParams:
        """Return the parameters of a pooling of so many planes, with blocks that suit `threads` and the scratch row."""
        last = axes[-1]
        rows = planes * math.prod(axis.places for axis in axes[:-1])
        extent = (last.taps - 1) * last.dilation + 1
        places = min((_SCRATCH - extent) // last.stride + 1, max(last.places, 1))
        wanted = -(-rows // (_TASKS_PER_THREAD * threads)) if threads > 1 else rows
        elements = ((places - 1) * last.stride + extent) * math.prod(axis.taps for axis in axes[:-1])
        block_rows = max(min(wanted, _MOST_ELEMENTS // elements), 1)
        return PlanePoolParams(rows, block_rows, places, tuple(axes), tuple(ends))

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.rows, self.block_rows, self.block_places, *axis_words(self.axes), *self.ends]

    def tasks(self) -> int:
        """Return how many tasks the pooling is."""
        return -(-self.rows // self.block_rows) * -(-self.axes[-1].places // self.block_places)


_ROWS, _BLOCK_ROWS, _BLOCK_PLACES, _AXES = range(4)


@dataclass(frozen=True, slots=True)
class PlanePoolCode:
    """What the code of a kernel depends on."""

    fold: str
    """A name in FOLDS."""
    kind: Type
    """The type of the elements; for folds other than max a float."""
    rank: int
    """The number of spatial axes."""
    stride: int
    """Of the last axis, where it is MOST_STRIDE at most; 0 for any."""
    taps: int
    """Of the last axis, where they are few: they are written one after another; 0 for any."""
    counts_padding: bool
    """Whether elements of the declared padding count for a mean."""
    dilated: bool
    """Whether taps lie apart on any axis."""
    after: ElementExpr
    """What is stored, of argument 0, the result of the fold."""


def write_plane_pool(module: Module, symbol: str, code: PlanePoolCode) -> None:
    """Write the kernel `symbol`: buffers input and output, parameters as in PlanePoolParams, LONGEST_EXTENT observed."""
    with module.kernel(symbol) as b:
        axes = read_axes(b, _AXES, code.rank)
        ends = [b.param(_AXES + code.rank * AXIS_WORDS + axis) for axis in range(code.rank)]
        scratch = b.stack(code.kind, _SCRATCH + _SLACK, align=64)
        counts = b.stack(code.kind, _SCRATCH + _SLACK, align=64) if code.fold == "mean" else None
        columns = blocks(axes[-1]["places"], b.param(_BLOCK_PLACES))
        with b.loop(b.begin, b.end) as task:
            first, left = task // columns * b.param(_BLOCK_ROWS), task % columns * b.param(_BLOCK_PLACES)
            right = least(b, left + b.param(_BLOCK_PLACES), axes[-1]["places"])
            strip = _Strip(b, code, axes, ends, scratch, counts, left, right)
            rows = first, least(b, first + b.param(_BLOCK_ROWS), b.param(_ROWS))

            strip.prepare()
            if strip.may_be_short:
                b.branch(
                    strip.length <= strip.lanes,
                    functools.partial(strip.each_row, *rows, strip.fold_short_row),
                    functools.partial(strip.each_row, *rows, strip.fold_row),
                )
            else:
                strip.each_row(*rows, strip.fold_row)


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of the output."""

    source: Pointer
    """The first element of the rows of the input that its windows meet."""
    result: Pointer
    """Where it begins."""
    taps: list[Register]
    """How many taps of each outer axis meet the input."""
    count: Register
    """How many of them, all axes together, count for a mean."""


class _Strip:
    """Some neighbouring places of the last axis, of a row of the output after another."""

    def __init__(
        self,
        b: Kernel,
        code: PlanePoolCode,
        axes: Sequence[AxisValues],
        ends: Sequence[Register],
        scratch: Pointer,
        counts: Pointer | None,
        left: Register,
        right: Register,
    ) -> None:
        self.b, self.code, self.axes, self.ends, self.scratch, self.counts = b, code, axes, ends, scratch, counts
        self.left, self.right, last = left, right, axes[-1]
        self.fold: Fold = fold_of(code.fold, code.kind)
        self.lanes = b.target.lanes(code.kind.bits if code.after.type == code.kind else 32)
        self.begin = left * last["stride"] - last["begin"]
        self.length = (right - left - 1) * last["stride"] + (last["taps"] - 1) * last["dilation"] + 1
        self.first = b.min(b.max(-self.begin, 0), self.length)
        self.end = b.max(b.min(last["size"] - self.begin, self.length), self.first)
        index, kind = b.iota(I32, self.lanes), I32 if code.kind.bits == I32.bits else I64
        is_there = (index >= self.first.to(I32)) & (index < self.end.to(I32))
        self.signs = b.select(is_there, b.const(kind.vector(self.lanes), -1), 0)
        """Negative in the lanes of a short row that the input has: a mask that stays in one register."""
        has_words = code.kind.bits in _WORDS and code.after.type.bits in _WORDS
        has_code = not code.dilated and code.taps > 0 and code.stride > 0
        self.may_be_short = has_words and has_code and not b.target.has_masks and b.target.vector_bytes >= _MASKED_BYTES

    def prepare(self) -> None:
        """Fill the scratch row's padding, and find how many elements of the last axis count for each place."""
        b, kind = self.b, self.code.kind
        if self.counts is not None:
            counted = b.min(self.end + self.ends[-1], self.length) if self.code.counts_padding else self.end
            begin = b.const(counted.type, 0) if self.code.counts_padding else self.first
            self._fill(0, begin, 0)
            self._fill(begin, counted, 1)
            self._fill(counted, self.length, 0)
            self.counts.store(1, self.right - self.left, self.lanes)
            for i, span in b.vectors(0, self.right - self.left, kind, lanes=self.lanes):
                total = b.variable(b.const(kind.vector(span.lanes), 0))
                self._each_tap(i, span, total.add)
                self.counts.store(total.value, i, span)
        neutral = self.fold.begin[0]
        self._fill(0, self.first, neutral)
        self._fill(self.end, self.length, neutral)

    def _fill(self, begin: Register | int, end: Register, number: float) -> None:
        for i, span in self.b.vectors(begin, end, self.code.kind, lanes=self.lanes):
            self.scratch.store(number, i, span)

    def each_row(self, first: Register, last: Register, fold: Callable[[_Row], None]) -> None:
        """Fold the rows [first, last) of the output one after another."""
        b, outer, rest = self.b, self.axes[:-1], first
        places: list[Variable] = []
        for axis in reversed(outer):
            places.insert(0, b.variable(rest % axis["places"]))
            rest = rest // axis["places"]
        plane = b.variable(rest)
        with b.loop(first, last) as row:
            fold(self._row(row, plane.value, [place.value for place in places]))
            step = row.like(1)
            for axis, place in zip(reversed(outer), reversed(places), strict=True):
                following = place.value + step
                is_end = following.eq(axis["places"])
                place.set(b.select(is_end, 0, following))
                step = b.select(is_end, row.like(1), 0)
            plane.add(step)

    def fold_row(self, row: _Row) -> None:
        """Make one row of the output."""
        b, code = self.b, self.code
        for i, spans in self._wide_vectors():
            for vector, value in enumerate(self._fold_outer(row.source.at(self.begin + i), row.taps, spans)):
                self.scratch.store(value, i + vector * self.lanes, spans[vector])
        for i, span in b.vectors(0, self.right - self.left, code.kind, lanes=self.lanes):
            value = self._fold_last(i, span, row.count)
            row.result.store(write_expressions(b, [code.after], [value])[0], self.left + i, span)

    def fold_short_row(self, row: _Row) -> None:
        """Make one row of the output whose windows see no more than a vector."""
        b, code, kind = self.b, self.code, self.code.kind.vector(self.lanes)
        count, neutral = self.right - self.left, self.fold.begin[0]
        seen = self._fold_outer(row.source.at(self.begin), row.taps, [Span(self.lanes)], self.signs)[0]
        seen = b.select(self.signs < 0, seen, b.const(kind, neutral)) if neutral else seen
        state = self._start_last(kind)
        for tap in range(code.taps):
            self._take_last(state, seen.shuffle([min(place * code.stride + tap, self.lanes - 1) for place in range(self.lanes)]))
        value = self._end_last(state, b.const(I64, 0), Span(self.lanes), row.count)
        value = write_expressions(b, [code.after], [value])[0]
        result = row.result.at(self.left)
        b.branch(
            count.eq(self.lanes),
            lambda: result.store(value, 0, self.lanes),
            lambda: store_first(b, [(result, value)], count),
        )

    def _row(self, row: Register, plane: Register, places: Sequence[Register]) -> _Row:
        """Return a row of the output, at `places` of the outer axes of a plane."""
        b, axes = self.b, self.axes
        source = plane * (axes[0]["size"] * axes[0]["in_step"])
        taps: list[Register] = []
        count = row.like(1)
        for axis, end, at in zip(axes[:-1], self.ends, places, strict=False):
            first, last, start = taps_inside(b, at, axis, dilated=self.code.dilated)
            source = source + start * axis["in_step"]
            taps.append(last - first)
            if self.code.counts_padding:
                room = axis["size"] + end - (at * axis["stride"] - axis["begin"])
                room = blocks(room, axis["dilation"]) if self.code.dilated else room
                count = count * least(b, axis["taps"], b.max(room, room.like(0)))
            else:
                count = count * (last - first)
        pointers = b.buffer(INPUT, self.code.kind).at(source), b.buffer(OUTPUT, self.code.after.type).at(row * axes[-1]["places"])
        return _Row(*pointers, taps, count)

    def _wide_vectors(self) -> Iterator[tuple[Register, list[Span]]]:
        """Walk the scratch row that is not padding: several vectors at a time, then one."""
        b, step = self.b, _WIDE * self.lanes
        whole = self.first + (self.end - self.first) // step * step
        with b.loop(self.first, whole, step) as i:
            yield i, [Span(self.lanes)] * _WIDE
        for i, span in b.vectors(whole, self.end, self.code.kind, lanes=self.lanes):
            yield i, [span]

    def _fold_outer(
        self, source: Pointer, taps: Sequence[Register], spans: Sequence[Span], signs: Register | None = None
    ) -> list[Register]:
        """Return what the outer taps of neighbouring vectors fold to; of one vector only where `signs` are negative, if given."""
        b, kind = self.b, self.code.kind.vector(spans[0].lanes)
        states = [[b.variable(b.const(kind, number)) for number in self.fold.begin] for _ in spans]
        with ExitStack() as loops:
            for axis, count in zip(self.axes[:-1], taps, strict=True):
                tap = loops.enter_context(b.loop(0, count))
                source = source.at(tap * (axis["dilation"] * axis["in_step"]))
            seen = spans if signs is None else [Span(self.lanes, signs < 0)]
            for vector, (state, span) in enumerate(zip(states, seen, strict=True)):
                self.fold.step(b, state, source.load(vector * self.lanes, span))
        return [self._partial(state) for state in states]

    def _partial(self, state: Sequence[Variable]) -> Register:
        """Return what the first pass stores: the greatest so far, or the sum so far."""
        values = [variable.value for variable in state]
        return self.fold.end(self.b, values, values[0]) if self.code.fold == "max" else values[0]

    def _fold_last(self, i: Register, span: Span, outer_count: Register) -> Register:
        state = self._start_last(self.code.kind.vector(span.lanes))
        self._each_tap(i, span, functools.partial(self._take_last, state))
        return self._end_last(state, i, span, outer_count)

    def _start_last(self, kind: Type) -> list[Variable]:
        return [self.b.variable(self.b.const(kind, number)) for number in self.fold.begin]

    def _take_last(self, state: Sequence[Variable], x: Register) -> None:
        if self.code.fold == "max":
            self.fold.step(self.b, state, x)
        else:
            state[0].add(x)

    def _end_last(self, state: Sequence[Variable], i: Register, span: Span, outer_count: Register) -> Register:
        values = [variable.value for variable in state]
        if self.counts is None:
            return self.fold.end(self.b, values, values[0])
        return values[0] / (self.counts.load(i, span) * outer_count.to(self.code.kind))

    def _each_tap(self, i: Register, span: Span, take: Callable[[Register], None]) -> None:
        """Take the scratch row's elements that each tap of the last axis meets."""
        axis, b = self.axes[-1], self.b
        place = i * axis["stride"]
        if self.code.taps:
            for number in range(self.code.taps):
                take(self._strided(place + axis["dilation"] * number, span))
            return
        with b.loop(0, axis["taps"]) as tap:
            take(self._strided(place + tap * axis["dilation"], span))

    def _strided(self, place: Register, span: Span) -> Register:
        """Return the elements at `place`, a stride apart; lanes under a mask may hold anything."""
        lanes = span.lanes
        if lanes == 1:
            return self.scratch.load(place)
        if self.code.stride == 1:
            return self.scratch.load(place, lanes)
        if self.code.stride == 2:
            return self.scratch.load(place, lanes).shuffle(range(0, 2 * lanes, 2), self.scratch.load(place + lanes, lanes))
        places = self.b.iota(place.type, lanes) * self.axes[-1]["stride"] + place
        return self.scratch.gather(places, span.mask)
