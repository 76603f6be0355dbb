"""Pool regions of images: by bilinear samples (ONNX RoiAlign), or by the greatest elements of cells (MaxRoiPool).

RoiAlign goes through the output cells of a region by vectors: where samples of some cells lie, and how their four neighbours are
weighed, is found once, and then added up, or the greatest kept, channel after channel:

    work[c, cell] op= w00 * x[c, at00] + w01 * x[c, at01] + w10 * x[c, at10] + w11 * x[c, at11]       (or the greatest of the four)
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.folds import MAX
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span

__all__ = ["MOST_SAMPLES", "write_max_roi_pool", "write_roi_align"]

X, ROIS, IMAGES, Y, WORK, STATUS = range(6)
"""The buffers of `write_roi_align`."""
MOST_SAMPLES = 1 << 20
"""A region that asks for more sample rows or columns in a cell is an error."""
_FARTHEST = float(1 << 40)


@dataclasses.dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of a region."""

    start: Register
    """Where it begins, in elements."""
    cell: Register
    """The length of a cell."""
    samples: Register
    """How many samples a cell has."""
    size: Register
    """How long the axis of the image is."""


def write_roi_align(module: Module, symbol: str, *, shifted: bool, takes_max: bool, kind: Type = F32) -> None:
    """Write the kernel `symbol`.

    Parameters: images, channels, height and width of an image, rows and columns of the output, samples of a cell along an axis or 0
    for as many as it has elements, the scale as a float, the most samples of a region times channels, tasks that run at a time. A
    task is one region. A region of an image that there is not, or that needs too many samples, is reported in the status word.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        shifted: whether elements' centres lie at halves, and regions may be of any length; else these are 1 at least.
        takes_max: whether the greatest of all weighed neighbours is wanted, or the mean of the samples.
        kind: the type of images, regions and results: F32 or F64.
    """
    with module.kernel(symbol) as b:
        images, channels, height, width, rows, columns = (b.param(place) for place in range(6))
        most, together = b.param(8), b.param(9)
        with b.loop(b.begin, b.end) as task:
            roi, image = b.buffer(ROIS, kind).at(task * 4), b.buffer(IMAGES, I64).load(task)
            down = _axis(b, roi, 1, height, rows, shifted=shifted)
            across = _axis(b, roi, 0, width, columns, shifted=shifted)
            fits = (down.samples <= MOST_SAMPLES) & (across.samples <= MOST_SAMPLES) & (image >= 0) & (image < images)
            samples = b.select(fits, down.samples * across.samples, 0)
            few = b.const(I64, 1)
            fits = fits & (samples <= most // b.max(rows * columns * channels, few))
            with b.when(~fits):
                b.buffer(STATUS, I64).store(task + 1)
            with b.when(fits):
                work = b.buffer(WORK, kind).at(task % together * channels * b.lanes(kind))
                x = b.buffer(X, kind).at(image * channels * height * width)
                y = b.buffer(Y, kind).at(task * channels * rows * columns)
                for cell, span in b.vectors(0, rows * columns, kind):
                    _pool_cells(b, (down, across), (x, y, work), (cell, span), takes_max=takes_max)


def _axis(b: Kernel, roi: Pointer, first: int, size: Register, cells: Register, *, shifted: bool) -> _Axis:
    kind = roi.element
    scale, ratio = b.param_float(7, kind), b.param(6)
    half = 0.5 if shifted else 0.0
    start = roi.load(first) * scale - half
    length = roi.load(first + 2) * scale - half - start
    if not shifted:
        length = b.select(length < 1.0, 1.0, length)
    cell = length / cells.to(kind)
    inside = cell <= float(MOST_SAMPLES)
    whole = b.max(b.select(inside, cell, 0.0), 0.0).to(I64)
    many = b.select(whole.to(kind) < cell, whole + 1, whole)
    adaptive = b.select(inside, many, many.like(MOST_SAMPLES + 1))
    return _Axis(start, cell, b.select(ratio > 0, ratio, adaptive), size)


def _pool_cells(
    b: Kernel,
    axes: tuple[_Axis, _Axis],
    buffers: tuple[Pointer, Pointer, Pointer],
    cells: tuple[Register, Span],
    *,
    takes_max: bool,
) -> None:
    """Pool a vector of cells in every channel."""
    (down, across), (x, y, work), (first, span) = axes, buffers, cells
    channels, rows, columns, kind = b.param(1), b.param(4), b.param(5), x.element
    plane = down.size * across.size
    empty = (down.samples < 1) | (across.samples < 1)
    with b.loop(0, channels) as channel:
        neutral = b.select(empty, 0.0, b.const(kind, MAX.neutral(kind) if takes_max else 0.0))
        work.store(neutral, channel * span.lanes, Span(span.lanes))
    number = b.iota(I32, span.lanes) + first.to(I32).splat(span.lanes)
    row, column = number // columns.to(I32).splat(span.lanes), number % columns.to(I32).splat(span.lanes)
    with b.loop(0, b.select(empty, 0, down.samples)) as i:
        above = _neighbours(b, down, row, i)
        with b.loop(0, b.select(empty, 0, across.samples)) as j:
            beside = _neighbours(b, across, column, j)
            taps = [(at * across.size.to(I32) + to, weight * factor) for at, weight in above for to, factor in beside]
            with b.loop(0, channels) as channel:
                source, place = x.at(channel * plane), channel * span.lanes
                total = work.load(place, span.lanes)
                terms = [_gathered(source, at, span) * weight for at, weight in taps]
                if takes_max:
                    for term in terms:
                        total = MAX.combine(b, total, term)
                else:
                    total = total + (((terms[0] + terms[1]) + terms[2]) + terms[3])
                work.store(total, place, Span(span.lanes))
    with b.loop(0, channels) as channel:
        total = work.load(channel * span.lanes, span.lanes)
        if not takes_max:
            total = b.select(empty, total, total / (down.samples * across.samples).to(kind))
        y.store(total, channel * rows * columns + first, span)


def _neighbours(b: Function, axis: _Axis, cell: Register, sample: Register) -> list[tuple[Register, Register]]:
    """Return the two neighbours of a sample of each cell: their indices, as int32, and weights, which are 0 outside."""
    kind = axis.start.type
    size, samples = axis.size.to(kind), axis.samples.to(kind)
    number = cell.to(kind) * samples + sample.to(kind)
    at = (number + 0.5) / samples * axis.cell + axis.start
    inside = (at >= -1.0) & (at <= size)
    at = b.max(b.min(b.select(inside, at, 0.0), size - 1.0), 0.0)
    low = at.to(I32)
    fraction = at - low.to(kind)
    high = b.min(low + 1, axis.size.to(I32) - 1)
    return [(low, b.select(inside, 1.0 - fraction, 0.0)), (high, b.select(inside, fraction, 0.0))]


def _gathered(x: Pointer, offset: Register, span: Span) -> Register:
    return x.load(offset) if span.lanes == 1 else x.gather(offset, span.mask)


def write_max_roi_pool(module: Module, symbol: str, kind: Type = F32) -> None:
    """Write the kernel `symbol`: buffers x, regions (R, 5), y, all of F32 or F64, and the status word. A task is one region.

    Parameters: images, channels, height and width of an image, rows and columns of the output, the scale as a float. A region of an
    image that there is not is reported in the status word.
    """
    with module.kernel(symbol) as b:
        images, channels, height, width, rows, columns = (b.param(place) for place in range(6))
        with b.loop(b.begin, b.end) as task:
            roi = b.buffer(1, kind).at(task * 5)
            valid = (roi.load(0) > -1.0) & (roi.load(0) < images.to(kind))
            with b.when(~valid):
                b.buffer(3, I64).store(task + 1)
            with b.when(valid):
                left, top, right, bottom = (_corner(b, roi.load(place)) for place in range(1, 5))
                first = roi.load(0).to(I64) * channels
                with b.loop(0, rows) as row:
                    above, below = _cell(b, top, bottom, rows, row, height)
                    with b.loop(0, columns) as column:
                        before, behind = _cell(b, left, right, columns, column, width)
                        with b.loop(0, channels) as channel:
                            x = b.buffer(0, kind).at((first + channel) * height * width)
                            found = _greatest(b, x, (above, below), (before, behind), width)
                            b.buffer(2, kind).store(found, ((task * channels + channel) * rows + row) * columns + column)


def _corner(b: Kernel, x: Register) -> Register:
    """Return a corner in elements, rounded to the nearest, halves away from 0."""
    scaled = x.to(F64) * b.param_float(6, F64)
    near = b.abs(scaled) + 0.5
    near = b.select(near < _FARTHEST, near, _FARTHEST).to(I64)
    return b.select(scaled < 0.0, -near, near)


def _cell(
    b: Kernel, first: Register, last: Register, count: Register, number: Register, size: Register
) -> tuple[Register, Register]:
    """Return where cell `number` begins and ends."""
    length = b.max(last - first + 1, 1).to(F32) / count.to(F32)
    low, high = number.to(F32) * length, (number + 1).to(F32) * length
    up = high.to(I64)
    up = b.select(up.to(F32) < high, up + 1, up)
    return b.max(b.min(low.to(I64) + first, size), 0), b.max(b.min(up + first, size), 0)


def _greatest(
    b: Kernel, x: Pointer, rows: tuple[Register, Register], columns: tuple[Register, Register], width: Register
) -> Register:
    """Return the greatest element of a cell, 0 for an empty one."""
    empty = (rows[0] >= rows[1]) | (columns[0] >= columns[1])
    kind = x.element
    least = b.const(kind, MAX.neutral(kind))
    found = b.variable(b.select(empty, 0.0, least))
    for column, span in b.vectors(*columns, kind):
        strip = b.variable(least.splat(span.lanes))
        with b.loop(*rows) as row:
            strip.set(MAX.combine(b, strip.value, x.load(row * width + column, span)))
        value = strip.value if span.mask is None else b.select(span.mask, strip.value, least)
        one = b.reduce(value, lambda left, right: MAX.combine(b, left, right))
        with b.when(~empty):
            found.set(MAX.combine(b, found.value, one))
    return found.value
