"""Depthwise convolution over channels-last data: each channel with a filter of its own, vectors along the channels.

Along a row of the output, places whose window lies inside of the input go by several at a time, and every element that they share
is loaded once:

    input     x0  x1  x2  x3  x4  x5          one vector of channels each
    place 0   w0  w1  w2                      sums[0] += x0 w0 + x1 w1 + x2 w2
    place 1       w0  w1  w2                  sums[1] += x1 w0 + …
    place 2           w0  w1  w2              filters of one row of taps in registers

Places at the borders go by one, several vectors of channels at a time, over the taps that meet the input. A sum is one chain in the
order of taps, those in the padding left out, whichever way it is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sardonyx.codegen.conv import ConvEpilogue, is_long
from sardonyx.codegen.module import Address, Kernel, Module
from sardonyx.codegen.target import Target
from sardonyx.codegen.types import F32, I64
from sardonyx.codegen.values import Pointer, Span, Value
from sardonyx.codegen.window import AxisValues, WindowAxis, axis_words, blocks, least, read_axes, taps_inside
from sardonyx.dtypes import Array

__all__ = ["DepthwiseParams", "pack_depthwise", "write_depthwise"]

INPUT, FILTERS, OUTPUT = range(3)
"""The first buffers of the kernel; those after them belong to the epilogue."""

PLACES = (8, 4)
"""How many places inside of the input go at a time."""

WIDE = 4
"""Vectors of channels that a place at the border takes at a time."""

TASKS_PER_THREAD = 4


@dataclass(frozen=True, slots=True)
class DepthwiseParams:
    """The integer parameters of the kernel, in their order; then those of the two axes, in the order of WindowAxis."""

    images: int
    channels: int
    filter_step: int
    """From one tap of the packed filters to the next."""
    first_inside: int
    """The first place along the last axis whose window lies inside of the input."""
    last_inside: int
    """The place after the last of those."""
    block_rows: int
    """Rows of places in one task."""
    block_places: int
    """Places of a row in one task."""
    axes: tuple[WindowAxis, WindowAxis]

    @staticmethod
    def blocked(
        target: Target, images: int, channels: int, axes: tuple[WindowAxis, WindowAxis], *, threads: int = 1
    ) -> DepthwiseParams:
        """The parameters with blocks that suit `threads`."""
        lanes, (outer, inner) = target.lanes(32), axes
        reach = (inner.taps - 1) * inner.dilation
        first = min(max(-(-inner.begin // inner.stride), 0), inner.places)
        last = min(max((inner.size + inner.begin - reach - 1) // inner.stride + 1, first), inner.places)
        wanted = TASKS_PER_THREAD * threads
        pieces = -(-wanted // max(images * outer.places, 1)) if threads > 1 else 1
        return DepthwiseParams(
            images=images,
            channels=channels,
            filter_step=-(-channels // lanes) * lanes,
            first_inside=first,
            last_inside=last,
            block_rows=max(images * outer.places // (4 * wanted), 1),
            block_places=max(-(-inner.places // pieces), 1),
            axes=axes,
        )

    def words(self) -> list[int]:
        """The parameters as the kernel reads them; those of an epilogue follow."""
        own = [getattr(self, name) for name in _PARAMS]
        return own + axis_words(self.axes)

    def tasks(self) -> int:
        """How many tasks a convolution is: rows are counted through all images."""
        return -(-self.images * self.axes[0].places // self.block_rows) * -(-self.axes[1].places // self.block_places)


_PARAMS = tuple(DepthwiseParams.__dataclass_fields__)[:-1]


def pack_depthwise(filters: Array, lanes: int) -> Array:
    """Filters (C, 1, kernel…) as [kernel…][C], channels filled up with zeros to whole vectors."""
    C = filters.shape[0]
    packed = np.zeros((filters[0].size, -(-C // lanes) * lanes), np.float32)
    packed[:, :C] = filters.reshape(C, -1).T
    return packed


@dataclass(frozen=True, slots=True)
class _Line:
    """What is baked into the code: the window along the last axis."""

    taps: int
    stride: int
    dilation: int

    def fits(self, count: int) -> bool:
        """Whether `count` places at a time are worth their code: their filters stay in registers, their elements are near."""
        return self.taps <= _LONGEST_LINE and (count - 1) * self.stride + (self.taps - 1) * self.dilation < _WIDEST


_LONGEST_LINE = 9
"""Most taps along the last axis whose filters stay in registers; longer windows go place by place."""

_WIDEST = 48
"""Most elements of a row that places computed together may span."""


def write_depthwise(
    module: Module, symbol: str, *, taps: int, stride: int, dilation: int, epilogue: ConvEpilogue | None = None
) -> None:
    """Write the kernel `symbol` for two axes: buffers input, packed filters, output and those of the epilogue.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        taps: along the last axis, as are the following.
        stride: from place to place.
        dilation: from tap to tap.
        epilogue: what to store instead of the sums.
    """
    line = _Line(taps, stride, dilation)
    writer = _Writer(module, symbol, line, epilogue)
    with module.kernel(symbol) as b:
        p = _params(b)
        outer, inner = _axes(b)
        columns = blocks(inner["places"], p["block_places"])
        rows = p["images"] * outer["places"]
        with b.loop(b.begin, b.end) as task:
            first = task // columns * p["block_rows"]
            left = task % columns * p["block_places"]
            right = least(b, left + p["block_places"], inner["places"])
            with b.loop(first, least(b, first + p["block_rows"], rows)) as row:
                writer.write_row(b, row, left, right)


class _Writer:
    """The parts of one kernel, and the loops around them."""

    def __init__(self, module: Module, symbol: str, line: _Line, epilogue: ConvEpilogue | None) -> None:
        self._lanes = module.target.lanes(32)
        self._always_masked = module.target.has_masks
        ways = (True,) if self._always_masked else (False, True)
        self._inside = {
            (count, masked): _write_inside(module, f"{symbol}_inside{count}{'m' * masked}", line, count, masked, epilogue)
            for count in PLACES
            for masked in ways
            if line.fits(count)
        }
        self._borders = {
            (vectors, masked): _write_border_place(module, f"{symbol}_border{vectors}{'m' * masked}", vectors, masked, epilogue)
            for vectors, masked in [(WIDE, False), *((1, masked) for masked in ways)]
        }

    def write_row(self, b: Kernel, row: Value, left: Value, right: Value) -> None:
        """The places [left, right) of one row, for all channels."""
        p = _params(b)
        wide, lanes = WIDE * self._lanes, self._lanes
        whole_wide = p["channels"] // wide * wide
        with b.loop(0, whole_wide, wide) as c:
            self._write_channels(b, row, left, right, c, WIDE, masked=False)
        if self._always_masked:
            with b.loop(whole_wide, p["channels"], lanes) as c:
                self._write_channels(b, row, left, right, c, 1, masked=True)
            return
        whole = p["channels"] // lanes * lanes
        for first, last, masked in ((whole_wide, whole, False), (whole, p["channels"], True)):
            with b.loop(first, last, lanes) as c:
                self._write_channels(b, row, left, right, c, 1, masked=masked)

    def _write_channels(self, b: Kernel, row: Value, left: Value, right: Value, c: Value, vectors: int, *, masked: bool) -> None:
        """One row of places for some vectors of channels from `c` on."""
        p = _params(b)
        outer, inner = _axes(b)
        image, place = row // outer["places"], row % outer["places"]
        first_tap, last_tap, start = taps_inside(b, place, outer)
        source = b.buffer(INPUT, F32).at((image * outer["size"] + start) * outer["in_step"] + c)
        filters = b.buffer(FILTERS, F32).at(first_tap * inner["taps"] * p["filter_step"] + c)
        result = row * outer["out_step"] + c
        taps = last_tap - first_tap
        done = _within(b, p["first_inside"], left, right)
        self._write_borders(b, source, filters, taps, result, c, (left, done), vectors, masked=masked)
        for count in dict.fromkeys(count for count, _ in self._inside):
            last = done + (_within(b, p["last_inside"], done, right) - done) // count * count
            with b.loop(done, last, count) as at:
                from_ = source.at((at * inner["stride"] - inner["begin"]) * inner["in_step"])
                for vector in range(vectors):
                    step = vector * self._lanes
                    part = self._inside[count, masked or self._always_masked]
                    b.call_part(part, from_.at(step), filters.at(step), taps, result + at * inner["out_step"] + step, c + step)
            done = last
        self._write_borders(b, source, filters, taps, result, c, (done, right), vectors, masked=masked)

    def _write_borders(self, b: Kernel, source: Pointer, filters: Pointer, taps: Value, result: Value, c: Value,
                       places: tuple[Value, Value], vectors: int, *, masked: bool) -> None:  # fmt: skip
        p, inner = _params(b), _axes(b)[1]
        part = self._borders[vectors, masked]
        with b.loop(*places) as at:
            first, last, start = taps_inside(b, at, inner)
            from_ = source.at(start * inner["in_step"])
            place = result + at * inner["out_step"]
            b.call_part(part, from_, filters.at(first * p["filter_step"]), taps, last - first, place, c)


def _write_inside(module: Module, symbol: str, line: _Line, count: int, masked: bool, epilogue: ConvEpilogue | None) -> Kernel:
    """One vector of channels of `count` places whose windows lie inside of the input along the last axis."""
    lanes = module.target.lanes(32)
    meetings: dict[int, list[tuple[int, int]]] = {}
    for place in range(count):
        for tap in range(line.taps):
            meetings.setdefault(place * line.stride + tap * line.dilation, []).append((place, tap))
    with module.part(symbol, Address(F32), Address(F32), I64, I64, I64) as b:
        source, filters = b.addresses
        rows, first, column = b.arguments
        p = _params(b)
        outer, inner = _axes(b)
        span = _span(b, lanes, p["channels"] - column, masked)
        sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in range(count)]
        with b.loop(0, rows) as row:
            element = source.at(row * (outer["dilation"] * outer["in_step"]))
            taps = filters.at(row * (line.taps * p["filter_step"]))
            weights = [taps.at(tap * p["filter_step"]).load(0, lanes) for tap in range(line.taps)]
            for offset in range(max(meetings) + 1):
                if offset in meetings:
                    x = element.load(0, span)
                    for met, tap in meetings[offset]:
                        sums[met].set(b.fma(x, weights[tap], sums[met].value))
                element = element.at(inner["in_step"])
        places = [first + inner["out_step"] * number for number in range(count)]
        _store(b, [total.value for total in sums], places, [column] * count, [span] * count, epilogue)
    return b


def _write_border_place(module: Module, symbol: str, vectors: int, masked: bool, epilogue: ConvEpilogue | None) -> Kernel:
    """Some vectors of channels of one place, over the taps that meet the input."""
    lanes = module.target.lanes(32)
    with module.part(symbol, Address(F32), Address(F32), I64, I64, I64, I64) as b:
        source, filters = b.addresses
        rows, taps, place, column = b.arguments
        p = _params(b)
        outer, inner = _axes(b)
        span = _span(b, lanes, p["channels"] - column, masked)
        sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in range(vectors)]
        with b.loop(0, rows) as row, b.loop(0, taps) as at:
            element = source.at(row * (outer["dilation"] * outer["in_step"]) + at * (inner["dilation"] * inner["in_step"]))
            weights = filters.at((row * inner["taps"] + at) * p["filter_step"])
            for vector, total in enumerate(sums):
                x = element.load(vector * lanes, span)
                total.set(b.fma(x, weights.load(vector * lanes, lanes), total.value))
        steps = [vector * lanes for vector in range(vectors)]
        _store(b, [total.value for total in sums], [place + step for step in steps], [column + step for step in steps],
               [span] * vectors, epilogue)  # fmt: skip
    return b


def _store(b: Kernel, sums: Sequence[Value], places: Sequence[Value], columns: Sequence[Value], spans: Sequence[Span],
           epilogue: ConvEpilogue | None) -> None:  # fmt: skip
    """Put sums down, through the epilogue: one after the other, or in a loop where it is long."""
    output = b.buffer(OUTPUT, F32)
    if epilogue is None or not is_long(b.target, epilogue):
        for total, place, column, span in zip(sums, places, columns, spans, strict=True):
            output.store(epilogue(b, total, place, column, span) if epilogue else total, place, span)
        return
    table = b.stack(I64, 2 * len(sums))
    lanes = sums[0].type.lanes
    kept = b.stack(F32, lanes * len(sums), align=4 * lanes)
    for number, (total, place, column) in enumerate(zip(sums, places, columns, strict=True)):
        kept.store(total, number * lanes, lanes)
        table.store(place, 2 * number)
        table.store(column, 2 * number + 1)
    with b.loop(0, len(sums)) as at:
        place, column = table.load(at * 2), table.load(at * 2 + 1)
        output.store(epilogue(b, kept.load(at * lanes, lanes), place, column, spans[0]), place, spans[0])


def _span(b: Kernel, lanes: int, remaining: Value, masked: bool) -> Span:
    return Span(lanes, b.tail_mask(least(b, remaining, b.const(I64, lanes)), lanes) if masked else None)


def _params(b: Kernel) -> dict[str, Value]:
    return {name: b.param(place) for place, name in enumerate(_PARAMS)}


def _axes(b: Kernel) -> tuple[AxisValues, AxisValues]:
    outer, inner = read_axes(b, len(_PARAMS), 2)
    return outer, inner


def _within(b: Kernel, value: Value, low: Value, high: Value) -> Value:
    return least(b, b.max(value, low), high)
