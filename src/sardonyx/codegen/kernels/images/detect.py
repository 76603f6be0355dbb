"""Detections of a network: boxes decoded by anchors, and the best ones with their classes; what is between is `suppress`.

    boxes, anchors ── write_decode ──► corners (M, 4)
    scores (M, C)  ─────────┘   └────► ranked (1, M), the best of each box; or (C, M), those of each class
    kept (1, most) or (C, most), counts ── write_best or write_merged ──► corners, classes, scores and their number

Boxes and anchors are centers and sizes: y, x, height, width. Source: TensorFlow Lite's TFLite_Detection_PostProcess.
"""

from __future__ import annotations

import math

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.folds import MAX
from sardonyx.codegen.emit.mathlib import exp
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, F32, F64, I32, I64
from sardonyx.codegen.emit.values import Pointer, Register, Span

__all__ = ["write_best", "write_decode", "write_merged"]


def write_decode(module: Module, symbol: str, *, by_class: bool) -> None:
    """Write the kernel `symbol`; a task is a block of boxes.

    Buffers: boxes (M, width), anchors (M, 4), scores (M, columns), float32[4] that centers and sizes are divided by,
    corners (M, 4), ranked. Parameters: M, width, columns, the first column that counts, classes, boxes of a block.

    Exponentials are computed in float64, and centers and halves of sizes rounded to float32.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        by_class: whether ranked has all classes, transposed, or the best one of each box.
    """
    with module.kernel(symbol) as b:
        boxes, width, columns, first, classes, block = (b.param(place) for place in range(6))
        given, anchors, scores, scales, corners, ranked = (b.buffer(place, F32) for place in range(6))
        with b.loop(b.begin, b.end) as task, b.loop(task * block, b.min((task + 1) * block, boxes)) as box:
            _decode(b, given.at(box * width), anchors.at(box * 4), scales, corners.at(box * 4))
            row = scores.at(box * columns + first)
            if by_class:
                with b.loop(0, classes) as name:
                    ranked.store(row.load(name), name * boxes + box)
            else:
                ranked.store(_greatest(b, row, classes), box)


def _decode(b: Function, box: Pointer, anchor: Pointer, scales: Pointer, corners: Pointer) -> None:
    def wide(source: Pointer, place: int) -> Register:
        return source.load(place, 2).to(F64)

    size = wide(anchor, 2)
    center = (wide(box, 0) / wide(scales, 0) * size + wide(anchor, 0)).to(F32)
    half = (exp(b, wide(box, 2) / wide(scales, 2)) * 0.5 * size).to(F32)
    corners.store(center - half, 0)
    corners.store(center + half, 2)


def _greatest(b: Function, row: Pointer, count: Register) -> Register:
    """Return the greatest of the first elements of a row; NaN where there is one."""
    lanes = b.lanes(F32)
    found = b.variable(b.const(F32, -math.inf).splat(lanes))
    with b.loop(0, count, lanes) as place:
        here = b.tail_mask(b.min(count - place, lanes), lanes)
        found.set(MAX.combine(b, found.value, b.select(here, row.load(place, Span(lanes, here)), -math.inf)))
    return b.reduce(found.value, lambda one, other: MAX.combine(b, one, other))


_CORNERS, _SCORES, _KEPT, _COUNTS, _BOXES, _CLASSES, _VALUES, _NUMBER, _HEADS = range(9)


class _Found:
    """The detections that are listed."""

    def __init__(self, b: Kernel, columns: Register, first: Register) -> None:
        self.count: Variable = b.variable(b.const(I64, 0))
        self._b, self._columns, self._first = b, columns, first

    def score(self, box: Register, name: Register) -> Register:
        return self._b.buffer(_SCORES, F32).load(box * self._columns + self._first + name)

    def add(self, box: Register, name: Register, score: Register) -> None:
        b, place = self._b, self.count.value
        b.buffer(_BOXES, F32).store(b.buffer(_CORNERS, F32).load(box * 4, 4), place * 4)
        b.buffer(_CLASSES, F32).store(name.to(F32), place)
        b.buffer(_VALUES, F32).store(score, place)
        self.count.add(1)

    def finish(self, rows: Register) -> None:
        """Store how many there are, and zeros behind them."""
        b = self._b
        b.buffer(_NUMBER, F32).store(self.count.value.to(F32))
        with b.loop(self.count.value, rows) as place:
            for buffer in (_CLASSES, _VALUES):
                b.buffer(buffer, F32).store(0.0, place)
            b.buffer(_BOXES, F32).store(b.const(F32, 0).splat(4), place * 4)


class _Best:
    """The best of some scores; of equal ones the first."""

    def __init__(self, b: Function) -> None:
        self._b, self.is_found = b, b.variable(b.const(BOOL, False))
        self.score, self.name = b.variable(b.const(F32, 0)), b.variable(b.const(I64, 0))

    def reset(self) -> None:
        self.is_found.set(self._b.const(BOOL, False))

    def offer(self, score: Register, name: Register, allowed: Register) -> None:
        with self._b.when(allowed & (~self.is_found.value | (score > self.score.value))):
            self.score.set(score)
            self.name.set(name)
            self.is_found.set(self._b.const(BOOL, True))


def write_best(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, one task: each box that is kept with the best of its classes, from the best one on.

    Buffers: corners, scores, kept, counts, the four results. Parameters: columns, the first one that counts, classes, rows of the
    results, classes of a box.
    """
    with module.kernel(symbol) as b:
        columns, first, classes, rows, most = (b.param(place) for place in range(5))
        found, best, before = _Found(b, columns, first), _Best(b), _Best(b)
        with b.loop(b.begin, b.end):
            with b.loop(0, b.buffer(_COUNTS, I64).load()) as place:
                box = b.buffer(_KEPT, I32).load(place).to(I64)
                before.reset()
                with b.loop(0, b.min(most, classes)):
                    best.reset()
                    with b.loop(0, classes) as name:
                        score, last = found.score(box, name), before.score.value
                        follows = (score < last) | (score.eq(last) & (name > before.name.value))
                        best.offer(score, name, ~before.is_found.value | follows)
                    found.add(box, best.name.value, best.score.value)
                    before.score.set(best.score.value)
                    before.name.set(best.name.value)
                    before.is_found.set(b.const(BOOL, True))
            found.finish(rows)


def write_merged(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, one task: the best of the boxes that are kept of each class, from the best one on.

    Buffers: corners, scores, kept, counts, the four results, int64[classes] to work with. Parameters: columns, the first one that
    counts, classes, rows of the results, the most boxes of a class, and of all.
    """
    with module.kernel(symbol) as b:
        columns, first, classes, rows, most, limit = (b.param(place) for place in range(6))
        heads, counts, found, best = b.buffer(_HEADS, I64), b.buffer(_COUNTS, I64), _Found(b, columns, first), _Best(b)
        with b.loop(b.begin, b.end):
            with b.loop(0, classes) as name:
                heads.store(0, name)
            with b.repeat() as again:
                best.reset()
                with b.loop(0, classes) as name, b.when(heads.load(name) < counts.load(name)):
                    best.offer(found.score(_head(b, heads, name, most), name), name, b.const(BOOL, True))
                again.stop_if(~best.is_found.value | (found.count.value >= limit))
                chosen = best.name.value
                found.add(_head(b, heads, chosen, most), chosen, best.score.value)
                heads.store(heads.load(chosen) + 1, chosen)
            found.finish(rows)


def _head(b: Kernel, heads: Pointer, name: Register, most: Register) -> Register:
    """Return the best box of a class that is not listed yet."""
    return b.buffer(_KEPT, I32).load(name * most + heads.load(name)).to(I64)
