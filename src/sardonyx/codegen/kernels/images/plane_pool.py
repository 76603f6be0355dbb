"""Pooling over planes, data whose channels come first: vectors along the last axis.

A row of the output is made in two passes. The first folds the outer axes of its windows: for each element of the last axis one
number, in a scratch row that holds what changes nothing where there is padding. The second folds the taps of the last axis:

    input rows that windows meet     scratch row                 output row
    a b c d …
    e f g h …                   →    - ae bf cg dh … -     →     ae|bf  bf|cg|dh …
    (outer taps)                     (last axis, padded)         (taps of the last axis, strided)

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
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import AXIS_WORDS, AxisValues, WindowAxis, axis_words, blocks, least, read_axes, taps_inside
from sardonyx.codegen.kernels.pool import Fold, fold_of
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["LONGEST_EXTENT", "PlanePoolCode", "PlanePoolParams", "write_plane_pool"]

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
    """Of the last axis, where it is 1 or 2; 0 for any."""
    taps: int
    """Of the last axis, where they are few: they are written one after another; 0 for any."""
    counts_padding: bool
    """Whether elements of the declared padding count for a mean."""
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
            strip.prepare()
            with b.loop(first, least(b, first + b.param(_BLOCK_ROWS), b.param(_ROWS))) as row:
                strip.fold_row(row)


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

    def prepare(self) -> None:
        """Fill the scratch row's padding, and find how many elements of the last axis count for each place."""
        b, kind = self.b, self.code.kind
        if self.counts is not None:
            counted = b.min(self.end + self.ends[-1], self.length) if self.code.counts_padding else self.end
            begin = b.const(counted.type, 0) if self.code.counts_padding else self.first
            self._fill(0, begin, 0)
            self._fill(begin, counted, 1)
            self._fill(counted, self.length, 0)
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

    def fold_row(self, row: Register) -> None:
        """Make one row of the output."""
        b, code = self.b, self.code
        source, result, taps, count = self._place(row)
        for i, spans in self._wide_vectors():
            for vector, value in enumerate(self._fold_outer(source.at(self.begin + i), taps, spans)):
                self.scratch.store(value, i + vector * self.lanes, spans[vector])
        for i, span in b.vectors(0, self.right - self.left, code.kind, lanes=self.lanes):
            value = self._fold_last(i, span, count)
            result.store(write_expressions(b, [code.after], [value])[0], self.left + i, span)

    def _place(self, row: Register) -> tuple[Pointer, Pointer, list[Register], Register]:
        """Return where the first inputs of a row of windows are, where its results go, its outer taps, and how many count."""
        b, axes, rest = self.b, self.axes, row
        places: list[Register] = []
        for axis in reversed(axes[:-1]):
            places.insert(0, rest % axis["places"])
            rest = rest // axis["places"]
        source = rest * (axes[0]["size"] * axes[0]["in_step"])
        taps: list[Register] = []
        count = row.like(1)
        for axis, end, at in zip(axes[:-1], self.ends, places, strict=False):
            first, last, start = taps_inside(b, at, axis)
            source = source + start * axis["in_step"]
            taps.append(last - first)
            if self.code.counts_padding:
                room = axis["size"] + end - (at * axis["stride"] - axis["begin"])
                count = count * least(b, axis["taps"], b.max(blocks(room, axis["dilation"]), room.like(0)))
            else:
                count = count * (last - first)
        pointers = b.buffer(INPUT, self.code.kind).at(source), b.buffer(OUTPUT, self.code.after.type).at(row * axes[-1]["places"])
        return *pointers, taps, count

    def _wide_vectors(self) -> Iterator[tuple[Register, list[Span]]]:
        """Walk the scratch row that is not padding: several vectors at a time, then one."""
        b, step = self.b, _WIDE * self.lanes
        whole = self.first + (self.end - self.first) // step * step
        with b.loop(self.first, whole, step) as i:
            yield i, [Span(self.lanes)] * _WIDE
        for i, span in b.vectors(whole, self.end, self.code.kind, lanes=self.lanes):
            yield i, [span]

    def _fold_outer(self, source: Pointer, taps: Sequence[Register], spans: Sequence[Span]) -> list[Register]:
        b, kind = self.b, self.code.kind.vector(spans[0].lanes)
        states = [[b.variable(b.const(kind, number)) for number in self.fold.begin] for _ in spans]
        with ExitStack() as loops:
            for axis, count in zip(self.axes[:-1], taps, strict=True):
                tap = loops.enter_context(b.loop(0, count))
                source = source.at(tap * (axis["dilation"] * axis["in_step"]))
            for vector, (state, span) in enumerate(zip(states, spans, strict=True)):
                self.fold.step(b, state, source.load(vector * self.lanes, span))
        return [self._partial(state) for state in states]

    def _partial(self, state: Sequence[Variable]) -> Register:
        """Return what the first pass stores: the greatest so far, or the sum so far."""
        values = [variable.value for variable in state]
        return self.fold.end(self.b, values, values[0]) if self.code.fold == "max" else values[0]

    def _fold_last(self, i: Register, span: Span, outer_count: Register) -> Register:
        b, kind = self.b, self.code.kind.vector(span.lanes)
        state = [b.variable(b.const(kind, number)) for number in self.fold.begin]
        is_max = self.code.fold == "max"
        self._each_tap(i, span, functools.partial(self.fold.step, b, state) if is_max else state[0].add)
        values = [variable.value for variable in state]
        if self.counts is None:
            return self.fold.end(b, values, values[0])
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
