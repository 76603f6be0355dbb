"""Depthwise convolution over channels-last data: each channel with a filter of its own, vectors along the channels.

Along a row of the output, places whose window lies inside of the input go by several at a time, and every element that they share
is loaded once:

    input     x0  x1  x2  x3  x4  x5          one vector of channels each
    place 0   w0  w1  w2                      sums[0] += x0 w0 + x1 w1 + x2 w2
    place 1       w0  w1  w2                  sums[1] += x1 w0 + …
    place 2           w0  w1  w2              filters of one row of taps in registers

Channels in small groups, each filter over all channels of its group, go the same way: an element's vector is permuted so that each
lane has the first channel of its group, then the second, and so on; each has a filter of its own. Groups may make more channels
than they read.

At the ends of a row, elements in the padding are read from zeros; rows of taps in the padding are left out. Windows too long for
the registers go by one place, several vectors of channels at a time, over the taps that meet the input. A sum is one chain in the
order of taps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import numpy as np

from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import F32, I64, U64
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import AxisValues, WindowAxis, axis_words, blocks, least, read_axes, taps_inside
from sardonyx.codegen.kernels.conv import ConvEpilogue
from sardonyx.codegen.kernels.gemm_params import TASK_PRODUCTS
from sardonyx.codegen.kernels.tiles import is_long
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "FEW_PLACES",
    "PLACES",
    "DepthwiseParams",
    "Line",
    "channel_span",
    "depthwise_axes",
    "depthwise_params",
    "pack_depthwise",
    "store_places",
    "write_depthwise",
]

INPUT, FILTERS, OUTPUT = range(3)
"""The first buffers of the kernel; those after them belong to the epilogue."""

PLACES, FEW_PLACES = 8, 4
"""How many places go at a time, and at the end of a row."""

WIDE = 4
"""Vectors of channels that go at a time where places go by one."""

TASKS_PER_THREAD = 4
_TASK_PRODUCTS = TASK_PRODUCTS >> 1
"""Products of one task at most, whole vectors of channels counted: few taps read each element anew."""


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
    out_image: int
    """Elements of one image of the output."""
    out_begin: int
    """Where the first place lies in the output."""
    axes: tuple[WindowAxis, WindowAxis]

    @staticmethod
    def blocked(
        target: Target,
        images: int,
        channels: int,
        axes: tuple[WindowAxis, WindowAxis],
        *,
        threads: int = 1,
        out_image: int | None = None,
        out_begin: int = 0,
    ) -> DepthwiseParams:
        """Return the parameters with blocks that suit `threads`; images of the output are dense unless `out_image` is given."""
        lanes, (outer, inner) = target.lanes(32), axes
        reach = (inner.taps - 1) * inner.dilation
        first = min(max(-(-inner.begin // inner.stride), 0), inner.places)
        last = min(max((inner.size + inner.begin - reach - 1) // inner.stride + 1, first), inner.places)
        wanted = TASKS_PER_THREAD * threads
        pieces = -(-wanted // max(images * outer.places, 1)) if threads > 1 else 1
        row = inner.places * (-(-channels // lanes) * lanes) * inner.taps * outer.taps
        pieces = max(pieces, row // _TASK_PRODUCTS)
        return DepthwiseParams(
            images=images,
            channels=channels,
            filter_step=-(-channels // lanes) * lanes,
            first_inside=first,
            last_inside=last,
            block_rows=max(min(images * outer.places // (4 * wanted), _TASK_PRODUCTS // max(row, 1)), 1),
            block_places=max(-(-inner.places // pieces), 1),
            out_image=outer.places * outer.out_step if out_image is None else out_image,
            out_begin=out_begin,
            axes=axes,
        )

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them; those of an epilogue follow."""
        own = [getattr(self, name) for name in _PARAMS]
        return own + axis_words(self.axes)

    def tasks(self) -> int:
        """Return how many tasks a convolution is: rows are counted through all images."""
        return -(-self.images * self.axes[0].places // self.block_rows) * -(-self.axes[1].places // self.block_places)


_PARAMS = tuple(DepthwiseParams.__dataclass_fields__)[:-1]


def pack_depthwise(filters: Array, lanes: int) -> Array:
    """Return the filters (C, channels of a group, kernel…) as [kernel…][channel of the group][C], C filled up to whole vectors."""
    C = filters.shape[0]
    packed = np.zeros((filters[0].size, -(-C // lanes) * lanes), np.float32)
    packed[:, :C] = np.moveaxis(filters, 1, -1).reshape(C, -1).T
    return packed


@dataclass(frozen=True, slots=True)
class Line:
    """What is baked into the code: the window along the last axis."""

    taps: int
    stride: int
    dilation: int
    members: int = 1
    """Channels of a group."""
    makes: int = 1
    """Channels that a group makes, no fewer."""

    def spread(self, element: Pointer, member: int, lanes: int, span: Span) -> Register:
        """Return a vector in which each lane has a channel of its group, which begins at `element`; `span` is of what is read."""
        if self.makes == lanes:
            return element.at(member).load().splat(lanes)
        x = element.load(0, span)
        return x if self.makes == 1 else x.shuffle([lane // self.makes * self.members + member for lane in range(lanes)])

    def fits(self, count: int) -> bool:
        """Return whether `count` places at a time are worth their code.

        Their filters stay in registers, their elements are near.
        """
        return self.taps <= _LONGEST_LINE and (count - 1) * self.stride + (self.taps - 1) * self.dilation < _WIDEST


_LONGEST_LINE = 9
"""Most taps along the last axis whose filters stay in registers; longer windows go place by place."""

_FAR_ELEMENTS = 1 << 17
"""Of an image that is not read from the second-level cache."""

_WIDEST = 48
"""Most elements of a row that places computed together may span."""


def write_depthwise(
    module: Module,
    symbol: str,
    *,
    taps: int,
    stride: int,
    dilation: int,
    groups: tuple[int, int] = (1, 1),
    epilogue: ConvEpilogue | None = None,
) -> None:
    """Write the kernel `symbol` for two axes: buffers input, packed filters, output and those of the epilogue.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        taps: along the last axis, as are the following.
        stride: from place to place.
        dilation: from tap to tap.
        groups: channels that a group reads, and no fewer that it makes; both divide the target's lanes. With more than one the line
            must fit.
        epilogue: what to store instead of the sums.
    """
    line = Line(taps, stride, dilation, *groups)
    writer = _Writer(module, symbol, line, epilogue)
    with module.kernel(symbol) as b:
        p = depthwise_params(b)
        outer, inner = depthwise_axes(b)
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

    def __init__(self, module: Module, symbol: str, line: Line, epilogue: ConvEpilogue | None) -> None:
        self._lanes, self._line = module.target.lanes(32), line
        self._ways = (True,) if module.target.has_masks else (False, True)
        self._fits = line.fits(PLACES)
        kinds = ((PLACES, False), (PLACES, True), (FEW_PLACES, True)) if self._fits else ()
        zeros = module.table(f"{symbol}_zeros", np.zeros(self._lanes, np.float32)) if self._fits else ""
        self._lines = {
            (count, edge, masked): _write_places(
                module, f"{symbol}_{count}{'e' * edge}{'m' * masked}", line, count, zeros if edge else None, epilogue, masked=masked
            )
            for count, edge in kinds
            for masked in self._ways
        }
        self._single = {
            (vectors, masked): _write_place(module, f"{symbol}_single{vectors}{'m' * masked}", vectors, epilogue, masked=masked)
            for vectors, masked in ([(WIDE, False), *((1, masked) for masked in self._ways)] if not self._fits else ())
        }

    def write_row(self, b: Kernel, row: Register, left: Register, right: Register) -> None:
        """Write the places [left, right) of one row, for all channels."""
        p, (outer, inner) = depthwise_params(b), depthwise_axes(b)
        image, place = row // outer["places"], row % outer["places"]
        first_tap, last_tap, start = taps_inside(b, place, outer)
        line = _Row(
            source=b.buffer(INPUT, F32).at((image * outer["size"] + start) * outer["in_step"]),
            filters=b.buffer(FILTERS, F32).at(first_tap * (inner["taps"] * self._line.members) * p["filter_step"]),
            taps=last_tap - first_tap,
            result=image * p["out_image"] + place * outer["out_step"] + p["out_begin"],
        )
        if self._fits:
            self._write_lines(b, line, left, right)
        else:
            self._write_singles(b, line, left, right)

    def _write_lines(self, b: Kernel, row: _Row, left: Register, right: Register) -> None:
        """Write several places at a time: those that see no padding, those that may, and the last few."""
        p = depthwise_params(b)
        with b.loop(left, right, PLACES) as at:
            inside = (at >= p["first_inside"]) & (at + PLACES <= least(b, p["last_inside"], right))
            b.branch(
                inside,
                lambda: self._write_channels(b, row, at, right, PLACES, edge=False),
                lambda: b.branch(
                    right - at > FEW_PLACES,
                    lambda: self._write_channels(b, row, at, right, PLACES, edge=True),
                    lambda: self._write_channels(b, row, at, right, FEW_PLACES, edge=True),
                ),
            )

    def _write_channels(self, b: Kernel, row: _Row, at: Register, right: Register, count: int, *, edge: bool) -> None:
        inner = depthwise_axes(b)[1]
        start = at * inner["stride"] - inner["begin"]
        source = row.source if edge else row.source.at(start * inner["in_step"])
        result = row.result + at * inner["out_step"]
        for c, masked in self._vectors(b, b.const(I64, 0)):
            part = self._lines[count, edge, masked]
            read = c // self._line.makes * self._line.members
            b.call_part(part, source.at(read), row.filters.at(c), row.taps, result + c, c, start, right - at)

    def _vectors(self, b: Kernel, first: Register) -> Iterator[tuple[Register, bool]]:
        """Yield vectors of channels from `first` on: whole ones, then the last under a mask.

        Under masks always where they are free.
        """
        channels = depthwise_params(b)["channels"]
        if len(self._ways) == 1:
            with b.loop(first, channels, self._lanes) as c:
                yield c, True
            return
        whole = channels // self._lanes * self._lanes
        for begin, end, masked in ((first, whole, False), (b.max(whole, first), channels, True)):
            with b.loop(begin, end, self._lanes) as c:
                yield c, masked

    def _write_singles(self, b: Kernel, row: _Row, left: Register, right: Register) -> None:
        """Place by place."""
        p, inner = depthwise_params(b), depthwise_axes(b)[1]
        wide = WIDE * self._lanes
        whole = p["channels"] // wide * wide
        with b.loop(left, right) as at:
            first, last, start = taps_inside(b, at, inner)
            source, filters = row.source.at(start * inner["in_step"]), row.filters.at(first * p["filter_step"])
            result, taps = row.result + at * inner["out_step"], last - first
            with b.loop(0, whole, wide) as c:
                b.call_part(self._single[WIDE, False], source.at(c), filters.at(c), row.taps, taps, result + c, c)
            for c, masked in self._vectors(b, whole):
                b.call_part(self._single[1, masked], source.at(c), filters.at(c), row.taps, taps, result + c, c)


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of places: where the first row of taps that meets the input begins, in the input and the filters."""

    source: Pointer
    filters: Pointer
    taps: Register
    """How many rows of taps meet the input."""
    result: Register
    """Where the row begins in the output."""


def _write_places(
    module: Module, symbol: str, line: Line, count: int, zeros: str | None, epilogue: ConvEpilogue | None, *, masked: bool
) -> Kernel:
    """Write one vector of channels of `count` places side by side.

    With `zeros`, a table of as many as a vector has, elements may lie in the padding, and only the first `limit` places are stored;
    the source is then where the row of the input begins, else where the window of the first place does.
    """
    lanes = module.target.lanes(32)
    meetings: dict[int, list[tuple[int, int]]] = {}
    for place in range(count):
        for tap in range(line.taps):
            meetings.setdefault(place * line.stride + tap * line.dilation, []).append((place, tap))
    with module.part(symbol, Address(F32), Address(F32), I64, I64, I64, I64, I64) as b:
        source, filters = b.addresses
        rows, first, column, start, limit = b.arguments
        p = depthwise_params(b)
        outer, inner = depthwise_axes(b)
        span = channel_span(b, lanes, p["channels"] - column, masked)
        few = lanes // line.makes * line.members
        read = span if few == lanes else channel_span(b, few, (p["channels"] - column) // line.makes * line.members, masked)
        sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in range(count)]
        if zeros is None:
            _fetch_next_row(b, line, count, source, rows)
        with b.loop(0, rows) as row:
            element = source.at(row * (outer["dilation"] * outer["in_step"]))
            taps = filters.at(row * (line.taps * line.members * p["filter_step"]))
            if zeros is not None:
                element = element.at(start * inner["in_step"])
            elements: dict[int, Pointer] = {}
            for offset in range(max(meetings) + 1):
                if offset in meetings:
                    elements[offset] = element if zeros is None else _inside(b, element, zeros, start + offset)
                element = element.at(inner["in_step"])
            for member in range(line.members):
                weights = [taps.at((tap * line.members + member) * p["filter_step"]).load(0, lanes) for tap in range(line.taps)]
                for offset, where in elements.items():
                    x = line.spread(where, member, lanes, read)
                    for met, tap in meetings[offset]:
                        sums[met].set(b.fma(x, weights[tap], sums[met].value))
        places = [first + inner["out_step"] * number for number in range(count)]
        columns, spans = [column] * count, [span] * count
        totals = [total.value for total in sums]
        store_places(b, b.buffer(OUTPUT, F32), totals, places, columns, spans, epilogue, limit if zeros is not None else None)
    return b


def _fetch_next_row(b: Kernel, line: Line, count: int, source: Pointer, rows: Register) -> None:
    """Fetch what the same places of the next row of the output read first, where an image does not stay in the cache."""
    outer, inner = depthwise_axes(b)
    last = source.at((rows - 1) * (outer["dilation"] * outer["in_step"]))
    with b.when(outer["size"] * outer["in_step"] > _FAR_ELEMENTS), b.loop(0, outer["stride"]) as row:
        element = last.at((row + 1) * outer["in_step"])
        for _ in range(count * line.stride):
            b.prefetch(element, locality=2)
            element = element.at(inner["in_step"])


def _inside(b: Kernel, element: Pointer, zeros: str, place: Register) -> Pointer:
    """Return where to read the element at a place of a row, which may lie in the padding."""
    outside = place.to(U64) >= depthwise_axes(b)[1]["size"].to(U64)
    return Pointer(b, b.select(outside, b.pointer(zeros, F32), element).ref, F32)


def _write_place(module: Module, symbol: str, vectors: int, epilogue: ConvEpilogue | None, *, masked: bool) -> Kernel:
    """Write some vectors of channels of one place, over the taps that meet the input."""
    lanes = module.target.lanes(32)
    with module.part(symbol, Address(F32), Address(F32), I64, I64, I64, I64) as b:
        source, filters = b.addresses
        rows, taps, place, column = b.arguments
        p = depthwise_params(b)
        outer, inner = depthwise_axes(b)
        span = channel_span(b, lanes, p["channels"] - column, masked)
        sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in range(vectors)]
        with b.loop(0, rows) as row, b.loop(0, taps) as at:
            element = source.at(row * (outer["dilation"] * outer["in_step"]) + at * (inner["dilation"] * inner["in_step"]))
            weights = filters.at((row * inner["taps"] + at) * p["filter_step"])
            for vector, total in enumerate(sums):
                x = element.load(vector * lanes, span)
                total.set(b.fma(x, weights.load(vector * lanes, lanes), total.value))
        steps = [vector * lanes for vector in range(vectors)]
        store_places(
            b,
            b.buffer(OUTPUT, F32),
            [total.value for total in sums],
            [place + step for step in steps],
            [column + step for step in steps],
            [span] * vectors,
            epilogue,
        )
    return b


def store_places(
    b: Kernel,
    output: Pointer,
    sums: Sequence[Register],
    places: Sequence[Register],
    columns: Sequence[Register],
    spans: Sequence[Span],
    epilogue: ConvEpilogue | None,
    limit: Register | None = None,
) -> None:
    """Put the first `limit` sums down, through the epilogue: one after the other, or in a loop where it is long."""
    kind = sums[0].type.scalar
    if epilogue is None or not is_long(b.target, epilogue, kind):
        for number, (total, place, column, span) in enumerate(zip(sums, places, columns, spans, strict=True)):
            with nullcontext() if limit is None else b.when(limit > number):
                output.store(epilogue(b, total, place, column, span) if epilogue else total, place, span)
        return
    table = b.stack(I64, 2 * len(sums))
    lanes = sums[0].type.lanes
    kept = b.stack(kind, lanes * len(sums), align=4 * lanes)
    for number, (total, place, column) in enumerate(zip(sums, places, columns, strict=True)):
        kept.store(total, number * lanes, lanes)
        table.store(place, 2 * number)
        table.store(column, 2 * number + 1)
    count = b.const(I64, len(sums))
    with b.loop(0, count if limit is None else least(b, limit, count)) as at:
        place, column = table.load(at * 2), table.load(at * 2 + 1)
        output.store(epilogue(b, kept.load(at * lanes, lanes), place, column, spans[0]), place, spans[0])


def channel_span(b: Kernel, lanes: int, remaining: Register, masked: bool) -> Span:
    """Return how a vector touches the channels that remain."""
    return Span(lanes, b.tail_mask(least(b, remaining, b.const(I64, lanes)), lanes) if masked else None)


def depthwise_params(b: Kernel) -> dict[str, Register]:
    """Return the fields of DepthwiseParams but the axes, as values of a kernel."""
    return {name: b.param(place) for place, name in enumerate(_PARAMS)}


def depthwise_axes(b: Kernel) -> tuple[AxisValues, AxisValues]:
    """Return the axes of DepthwiseParams as values of a kernel."""
    outer, inner = read_axes(b, len(_PARAMS), 2)
    return outer, inner
