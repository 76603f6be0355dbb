"""Select the best boxes none of which overlaps a better one too much; ONNX NonMaxSuppression.

    write_suppress    for each batch and class: candidates in the order of their scores, each kept unless one kept before covers it;
                      in parts, so that a run can end in the middle of many boxes
    write_selected    result[j] = (batch, class, box) of all that are kept, batch by batch and class by class

A box is its lower and its upper corner, in either order of the axes. The overlap is the intersection divided by the union, in
float32; a box without area, or with NaN, overlaps none.
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, F32, I32, I64, U32
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.ranking import Keys, each_lane, sort_key, write_sort

__all__ = ["PADDING", "work_words", "write_selected", "write_suppress"]

BOXES, SCORES, LIMIT, OVERLAP, LEAST, KEPT, COUNTS, WORK, STATUS = range(9)
"""The buffers of `write_suppress`. KEPT has `most` boxes for each batch and class, COUNTS how many of them are kept."""
PADDING = 32
"""Elements behind the parts of the boxes that are kept, since they are read by whole vectors."""


def work_words() -> tuple[int, int]:
    """Return how many words of 32 bits a class needs for each box and for each that may be kept, plus PADDING; and one besides."""
    return 4, 5


@dataclasses.dataclass(frozen=True, slots=True)
class _Box:
    """The corners of a box, and its area: scalars, or vectors of several boxes."""

    low: tuple[Register, Register]
    high: tuple[Register, Register]
    area: Register


def write_suppress(module: Module, symbol: str, *, centers: bool, limits_scores: bool, takes_least: bool = False) -> None:
    """Write the kernel `symbol`; a task is a part of one class, and the parts of as many classes as run at a time take turns.

    Parameters: classes, boxes, `most`, together, words of work of one class, parts, candidates of a part, batches times classes.

    An overlap that is no number from 0 to 1 is reported in the status word.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        centers: whether a box is center and size, or two corners.
        limits_scores: whether only boxes with a score above LEAST are candidates.
        takes_least: whether a score that equals LEAST is enough.
    """
    sort = write_sort(module, f"{symbol}_sort", U32)
    with module.kernel(symbol) as b:
        classes, boxes, most, together, work, parts, share, every = (b.param(place) for place in range(8))
        limit, overlap = b.min(b.buffer(LIMIT, I64).load(), most), b.buffer(OVERLAP, F32).load()
        with b.when(~((overlap >= 0.0) & (overlap <= 1.0))):
            b.buffer(STATUS, I64).store(1)
        with b.loop(b.begin, b.end) as task:
            slot, group = task % together, task // together
            part, row = group % parts, group // parts * together + slot
            with b.when(row < every):
                memory, counts = b.buffer(WORK, I32).at(slot * work), b.buffer(COUNTS, I64)
                keys, candidates = Keys(b, memory, boxes, U32), memory.at(work - 1)
                with b.when(part.eq(0)):
                    count = b.variable(b.const(I64, 0))
                    with b.when(limit > 0):
                        scores = b.buffer(SCORES, F32).at(row * boxes)
                        count.set(_candidates(b, keys, scores, boxes, limits_scores=limits_scores, takes_least=takes_least))
                        keys.sort(sort, count.value)
                    candidates.store(count.value.to(I32))
                    counts.store(0, row)
                places = memory.at(boxes * work_words()[0]).of(F32)
                kept = _Kept(b, places, most + PADDING, b.buffer(KEPT, I32).at(row * most), overlap)
                kept.count.set(counts.load(row))
                source = b.buffer(BOXES, F32).at(row // classes * boxes * 4)
                last = b.min((part + 1) * share, candidates.load().to(I64))
                with b.loop(part * share, last) as place, b.when(kept.count.value < limit):
                    number = keys.places.load(place)
                    kept.offer(_box(b, source.at(number.to(I64) * 4), centers=centers), number)
                counts.store(kept.count.value, row)


def _candidates(b: Kernel, keys: Keys, scores: Pointer, boxes: Register, *, limits_scores: bool, takes_least: bool) -> Register:
    """List the boxes whose scores suffice with their keys; returns how many they are."""
    if not limits_scores:
        for i, span in b.vectors(0, boxes, F32):
            keys.keys.store(sort_key(b, scores.load(i, span), descending=True), i, span)
            keys.places.store(b.iota(I32, span.lanes) + i.to(I32).splat(span.lanes), i, span)
        return boxes
    least, found = b.buffer(LEAST, F32).load(), b.variable(b.const(I64, 0))
    for i, span in b.vectors(0, boxes, F32):
        x = scores.load(i, span)
        chosen = x >= least if takes_least else x > least
        with each_lane(b, chosen if span.mask is None else chosen & span.mask) as lane:
            score = x if span.lanes == 1 else x.lane(lane)
            keys.store(sort_key(b, score, descending=True), i + lane, found.value)
            found.add(1)
    return found.value


def _box(b: Function, parts: Pointer, *, centers: bool) -> _Box:
    first, second, third, fourth = (parts.load(place) for place in range(4))
    if centers:
        half = third / 2.0, fourth / 2.0
        low, high = (first - half[0], second - half[1]), (first + half[0], second + half[1])
    else:
        low = b.call_math("minimum", first, third), b.call_math("minimum", second, fourth)
        high = b.call_math("maximum", first, third), b.call_math("maximum", second, fourth)
    return _Box(low, high, (high[0] - low[0]) * (high[1] - low[1]))


class _Kept:
    """The boxes of one class that are kept, part by part."""

    def __init__(self, b: Kernel, parts: Pointer, room: Register, numbers: Pointer, overlap: Register) -> None:
        self.count: Variable = b.variable(b.const(I64, 0))
        self._b, self._numbers, self._overlap = b, numbers, overlap
        self._parts = [parts.at(room * place) for place in range(5)]

    def offer(self, box: _Box, number: Register) -> None:
        """Keep a box that none of those kept covers."""
        b, covered, place = self._b, self._b.variable(self._b.const(BOOL, False)), self._b.variable(self._b.const(I64, 0))
        lanes = b.lanes(F32)
        with b.repeat() as again:
            again.stop_if((place.value >= self.count.value) | covered.value)
            y1, x1, y2, x2, area = (part.load(place.value, lanes) for part in self._parts)
            here = b.tail_mask(b.min(self.count.value - place.value, lanes), lanes)
            covered.set(b.any_lane(self._covers(_Box((y1, x1), (y2, x2), area), box) & here))
            place.add(lanes)
        with b.when(~covered.value):
            for part, value in zip(self._parts, (*box.low, *box.high, box.area), strict=True):
                part.store(value, self.count.value)
            self._numbers.store(number, self.count.value)
            self.count.add(1)

    def _covers(self, better: _Box, worse: _Box) -> Register:
        b, lanes = self._b, better.area.type.lanes
        sides = [
            b.min(better.high[axis], worse.high[axis].splat(lanes)) - b.max(better.low[axis], worse.low[axis].splat(lanes))
            for axis in range(2)
        ]
        shared = sides[0] * sides[1]
        union = better.area + worse.area - shared
        counts = (sides[0] > 0.0) & (sides[1] > 0.0) & (shared > 0.0) & (union > 0.0) & (better.area > 0.0)
        return counts & (worse.area.splat(lanes) > 0.0) & (shared / union > self._overlap)


def write_selected(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, one task; parameters: batches times classes, classes, `most`.

    Buffers: KEPT and COUNTS of `write_suppress`, the result, how many rows it has.
    """
    with module.kernel(symbol) as b:
        all_classes, classes, most = (b.param(place) for place in range(3))
        kept, counts, result = b.buffer(0, I32), b.buffer(1, I64), b.buffer(2, I64)
        row = b.variable(b.const(I64, 0))
        with b.loop(b.begin, b.end), b.loop(0, all_classes) as task, b.loop(0, counts.load(task)) as j:
            place = row.value * 3
            result.store(task // classes, place)
            result.store(task % classes, place + 1)
            result.store(kept.load(task * most + j).to(I64), place + 2)
            row.add(1)
        b.buffer(3, I64).store(row.value)
