"""Depthwise convolution of 8-bit integers over channels-last data: each channel with a filter of its own, vectors along channels.

Places side by side go together. Four elements of their row lie in the bytes of one vector, once for all places that they meet:

    quad 0: x0 x1 x2 x3     quad 1: x4 x5 x6 x7         one channel in each lane of four bytes
    place 0:  w0 w1 w2 -                                sums[0] += dot(quad 0, w0 w1 w2 -)
    place 1:  -  w0 w1 w2
    place 2:  -  -  w0 w1             w2 -  -  -        filters are moved by bytes to where their place's elements are

The other taps go row by row. Elements in the padding, and whole rows of it, are read from a vector of zero points: every place has
all its taps, so that zero points are one offset for each channel, as `dot_conv` has it. Signed elements are made unsigned ones on
the way. Where filters have zero points, which are the factors of `dot_conv`, elements are added up besides.

Windows too long for that go by one place, tap by tap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import numpy as np

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.dots import dot4, flip_sign
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import I8, I32, I64, U8, U32, U64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import blocks, least
from sardonyx.codegen.kernels.conv import ConvEpilogue
from sardonyx.codegen.kernels.depthwise import (
    FEW_PLACES,
    PLACES,
    Line,
    channel_span,
    depthwise_axes,
    depthwise_params,
    store_places,
)
from sardonyx.codegen.kernels.narrowing import narrow_together
from sardonyx.codegen.kernels.tiles import is_long
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["FIRST_OPERAND", "DotDepthwiseCode", "pack_dot_depthwise", "write_dot_depthwise"]

INPUT, FILTERS, OUTPUT, BORDER, OFFSETS, FACTORS, FIRST_OPERAND = range(7)
"""The buffers of the kernel; those from FIRST_OPERAND on belong to the epilogue.

BORDER holds zero points of the input, as many as a vector has lanes of 32 bits; OFFSETS and FACTORS are int32, one for each
channel, filled up to whole vectors. FACTORS is not read where there are none.
"""


@dataclass(frozen=True, slots=True)
class DotDepthwiseCode:
    """What the code of the kernel depends on, besides its epilogue."""

    taps: int
    """Along the last axis, as are the following."""
    stride: int
    """From place to place."""
    dilation: int
    """From tap to tap."""
    signed: bool
    """Whether the input is int8; uint8 else."""
    factors: bool
    """Whether filters have zero points."""
    whole: bool
    """Whether channels fill whole vectors."""

    @property
    def name(self) -> str:
        """The kernel's name without target and epilogue."""
        sign = "s8" if self.signed else "u8"
        return f"depthwise_{sign}_{self.taps}s{self.stride}d{self.dilation}{'_factors' * self.factors}{'_whole' * self.whole}"

    @property
    def quads(self) -> int:
        """Vectors of four taps along the last axis."""
        return -(-self.taps // 4)


def pack_dot_depthwise(filters: Array, lanes: int) -> Array:
    """Return int8 or uint8 filters (C, 1, kernel…) as int8, 128 less than uint8: [row][taps / 4][channels][4].

    Channels are filled up with zeros to whole vectors of `lanes`, taps to four.
    """
    C, taps = filters.shape[0], filters.shape[-1]
    flip = np.uint8(0x80 if filters.dtype == np.uint8 else 0)
    rows = filters.view(np.uint8).reshape(C, -1, taps) ^ flip
    packed = np.zeros((-(-C // lanes) * lanes, rows.shape[1], -(-taps // 4) * 4), np.uint8)
    packed[:C, :, :taps] = rows
    return np.ascontiguousarray(packed.reshape(len(packed), rows.shape[1], -1, 4).transpose(1, 2, 0, 3))


def write_dot_depthwise(
    module: Module, symbol: str, code: DotDepthwiseCode, output: Type, epilogue: ConvEpilogue | None = None
) -> None:
    """Write the kernel `symbol` for two axes: buffers as above, params as in DepthwiseParams.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        code: what it depends on.
        output: the type of what is stored.
        epilogue: what to store instead of the sums, which are int32.
    """
    fits = Line(code.taps, code.stride, code.dilation).fits(PLACES)
    kinds = ((PLACES, False), (PLACES, True), (FEW_PLACES, True)) if fits else ((1, True),)
    ways = (False,) if code.whole else (True,) if module.target.has_masks else (False, True)
    write = _write_places if fits else _write_place
    parts = {
        (count, edge, masked): write(
            module, f"{symbol}_{count}{'e' * edge}{'m' * masked}", _Part(code, count, edge, masked, output, epilogue)
        )
        for count, edge in kinds
        for masked in ways
    }
    with module.kernel(symbol) as b:
        p, (outer, inner) = depthwise_params(b), depthwise_axes(b)
        columns, rows = blocks(inner["places"], p["block_places"]), p["images"] * outer["places"]
        with b.loop(b.begin, b.end) as task:
            first, left = task // columns * p["block_rows"], task % columns * p["block_places"]
            right = least(b, left + p["block_places"], inner["places"])
            with b.loop(first, least(b, first + p["block_rows"], rows)) as row, b.loop(left, right, kinds[0][0]) as at:
                place = _Place(row, at, right)
                if fits:
                    _write_side_by_side(b, parts, place)
                else:
                    _call(b, parts, place, 1, edge=True)


def _write_side_by_side(b: Kernel, parts: dict[tuple[int, bool, bool], Kernel], place: _Place) -> None:
    """Compute places that see no padding, those that may, or the last few."""
    p = depthwise_params(b)
    inside = (place.at >= p["first_inside"]) & (place.at + PLACES <= least(b, p["last_inside"], place.right))
    b.branch(
        inside,
        lambda: _call(b, parts, place, PLACES, edge=False),
        lambda: b.branch(
            place.right - place.at > FEW_PLACES,
            lambda: _call(b, parts, place, PLACES, edge=True),
            lambda: _call(b, parts, place, FEW_PLACES, edge=True),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """What some places side by side are written for."""

    code: DotDepthwiseCode
    count: int
    edge: bool
    """Whether elements may lie in the padding along the last axis; only the first places up to a limit are stored then."""
    masked: bool
    output: Type
    epilogue: ConvEpilogue | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where some places begin: their row of the output, counted through all images, and the place on it."""

    row: Register
    at: Register
    right: Register


def _call(b: Kernel, parts: dict[tuple[int, bool, bool], Kernel], place: _Place, count: int, *, edge: bool) -> None:
    """Compute some places side by side, for all channels."""
    outer, inner = depthwise_axes(b)
    image, line = place.row // outer["places"], place.row % outer["places"]
    source = b.buffer(INPUT, U8).at(image * outer["size"] * outer["in_step"])
    top, start = line * outer["stride"] - outer["begin"], place.at * inner["stride"] - inner["begin"]
    result = place.row * outer["out_step"] + place.at * inner["out_step"]
    channels, lanes = depthwise_params(b)["channels"], b.target.lanes(32)
    ways = [masked for masked in (False, True) if (count, edge, masked) in parts]
    between = channels if ways == [False] else b.const(I64, 0) if ways == [True] else channels // lanes * lanes
    for masked in ways:
        first, end = (between, channels) if masked else (b.const(I64, 0), between)
        b.call_part(parts[count, edge, masked], source, top, start, result, first, end, place.right - place.at)


class _Rows:
    """The rows of taps of some places, and where their elements are."""

    def __init__(self, b: Kernel, source: Pointer, top: Register, start: Register, span: Span, *, edge: bool) -> None:
        self._b, self._source, self._top, self._start, self._span, self._edge = b, source, top, start, span, edge
        self._outer, self._inner = depthwise_axes(b)
        self._border = b.buffer(BORDER, U8)

    def at(self, tap: Register) -> tuple[Pointer, Register]:
        """Return where the first element of a row of taps is, and how far the next one is: in the padding no distance."""
        b = self._b
        line = self._top + tap * self._outer["dilation"]
        inside = line.to(U64) < self._outer["size"].to(U64)
        first = self._source.at(line * self._outer["in_step"] + self._start * self._inner["in_step"])
        chosen = b.select(inside, first, self._border)
        return Pointer(b, chosen.ref, U8), b.select(inside, self._inner["in_step"], 0)

    def load(self, first: Pointer, step: Register, position: Register | int) -> Register:
        """Return a vector of channels of the element at a position from the first one."""
        element = first.at(step * position)
        if self._edge:
            outside = (self._start + position).to(U64) >= self._inner["size"].to(U64)
            element = Pointer(self._b, self._b.select(outside, self._border, element).ref, U8)
        return element.load(0, self._span)


def _write_places(module: Module, symbol: str, part: _Part) -> Kernel:
    """Write some places, vector by vector of channels, by quads of elements."""
    lanes = module.target.lanes(32)
    with module.part(symbol, Address(U8), I64, I64, I64, I64, I64, I64) as b:
        top, start, result, first, end, limit = b.arguments
        with b.loop(first, end, lanes) as column:
            span = channel_span(b, lanes, end - column, part.masked)
            rows = _Rows(b, b.addresses[0].at(column), top, start, span, edge=part.edge)
            _write_vector(b, part, rows, result + column, column, limit, span)
    return b


def _write_vector(b: Kernel, part: _Part, rows: _Rows, result: Register, column: Register, limit: Register, span: Span) -> None:
    """Write one vector of channels of some places."""
    lanes, code = span.lanes, part.code
    p, (outer, inner) = depthwise_params(b), depthwise_axes(b)
    sums = [b.variable(b.buffer(OFFSETS, I32).load(column, lanes)) for _ in range(part.count)]
    elements = [b.variable(b.const(I32.vector(lanes), 0)) for _ in sums] if code.factors else []
    with b.loop(0, outer["taps"]) as tap:
        first, step = rows.at(tap)
        taps = b.buffer(FILTERS, U8).at((tap * code.quads * p["filter_step"] + column) * 4)
        weights = [taps.at(p["filter_step"] * (4 * quad)).of(U32).load(0, lanes) for quad in range(code.quads)]
        for positions, met in _quads_of(code, part.count):
            found = [b.const(U8.vector(lanes), 0) if at is None else rows.load(first, step, at) for at in positions]
            quad = _interleaved(b, found, signed=code.signed)
            for place, tap_of_first in met:
                sums[place].set(dot4(b, sums[place].value, quad, _moved(weights, tap_of_first)))
                if code.factors:
                    ones = quad.like(_ones(tap_of_first, code.taps))
                    elements[place].set(dot4(b, elements[place].value, quad, ones))
    totals = [total.value for total in sums]
    if code.factors:
        factor = b.buffer(FACTORS, I32).load(column, lanes)
        totals = [total + element.value * factor for total, element in zip(totals, elements, strict=True)]
    places = [result + inner["out_step"] * number for number in range(part.count)]
    _store(b, part, totals, places, column, span, limit if part.edge else None)


def _store(
    b: Kernel,
    part: _Part,
    sums: Sequence[Register],
    places: Sequence[Register],
    column: Register,
    span: Span,
    limit: Register | None,
) -> None:
    """Put the first `limit` sums down, four together where they are narrowed; those after are computed as the first is."""
    output, lanes = b.buffer(OUTPUT, part.output), span.lanes
    if limit is not None:
        safe = [places[0], *(b.select(limit > number, place, places[0]) for number, place in enumerate(places[1:], 1))]
    else:
        safe = list(places)
    may_pack = len(sums) % _TOGETHER == 0 and not (part.epilogue and is_long(b.target, part.epilogue, I32))
    for first in range(0, len(sums), _TOGETHER):
        group = range(first, first + _TOGETHER)
        packed = None
        if may_pack:
            positions = [(safe[number], column, span) for number in group]
            packed = narrow_together(b, part.epilogue, [sums[number] for number in group], positions)
        if packed is None:
            count = len(sums)
            store_places(b, output, sums, places, [column] * count, [span] * count, part.epilogue, limit)
            return
        for number in group:
            one = packed.shuffle(range((number - first) * lanes, (number - first + 1) * lanes))
            with nullcontext() if limit is None else b.when(limit > number):
                output.store(one, places[number], span)


_TOGETHER = 4
"""Places whose sums are narrowed together."""


def _quads_of(code: DotDepthwiseCode, count: int) -> Iterator[tuple[list[int | None], list[tuple[int, int]]]]:
    """Yield the positions of four elements, as far as a place meets them, and the places that meet some.

    Of each of these places which tap meets the first element: less than 0 where the place begins after it. Elements that are
    `dilation` apart lie side by side.
    """
    starts = [divmod(place * code.stride, code.dilation) for place in range(count)]
    for remainder in sorted({rest for _, rest in starts}):
        begins = {place: index for place, (index, rest) in enumerate(starts) if rest == remainder}
        used = {index + tap for index in begins.values() for tap in range(code.taps)}
        for first in range(0, max(used) + 1, 4):
            indices = [index if index in used else None for index in range(first, first + 4)]
            met = [(place, first - index) for place, index in begins.items() if -4 < first - index < code.taps]
            if met:
                yield [None if index is None else remainder + index * code.dilation for index in indices], met


def _interleaved(b: Function, parts: list[Register], *, signed: bool) -> Register:
    """Return lanes of four bytes, one of each part; signed bytes become unsigned ones, 128 more."""
    lanes = parts[0].type.lanes
    joined = b.join(b.join(parts[0], parts[1]), b.join(parts[2], parts[3]))
    quad = joined.shuffle([lane + part * lanes for lane in range(lanes) for part in range(4)]).bits_as(U32.vector(lanes))
    return flip_sign(quad).bits_as(U32) if signed else quad


def _moved(weights: list[Register], first: int) -> Register:
    """Return the weights of the taps `first`, first + 1 and so on in the four bytes; 0 where there is no tap."""
    quad, rest = divmod(first, 4)
    low = weights[quad] if 0 <= quad < len(weights) else weights[0].like(0)
    high = weights[quad + 1] if 0 <= quad + 1 < len(weights) else weights[0].like(0)
    if not rest:
        return low
    if low.is_constant:
        return high << (32 - 8 * rest)
    return low >> (8 * rest) if high.is_constant else (low >> (8 * rest)) | (high << (32 - 8 * rest))


def _ones(first: int, taps: int) -> int:
    return sum(1 << (8 * byte) for byte in range(4) if 0 <= first + byte < taps)


def _write_place(module: Module, symbol: str, part: _Part) -> Kernel:
    """Write one place, vector by vector of channels, tap by tap."""
    lanes = module.target.lanes(32)
    with module.part(symbol, Address(U8), I64, I64, I64, I64, I64, I64) as b:
        top, start, result, first, end, _ = b.arguments
        with b.loop(first, end, lanes) as column:
            span = channel_span(b, lanes, end - column, part.masked)
            rows = _Rows(b, b.addresses[0].at(column), top, start, span, edge=True)
            _write_taps(b, part, rows, result + column, column, span)
    return b


def _write_taps(b: Kernel, part: _Part, rows: _Rows, result: Register, column: Register, span: Span) -> None:
    """Write one vector of channels of one place."""
    lanes, code = span.lanes, part.code
    p, (outer, inner) = depthwise_params(b), depthwise_axes(b)
    total = b.variable(b.buffer(OFFSETS, I32).load(column, lanes))
    elements = b.variable(total.value.like(0))
    with b.loop(0, outer["taps"]) as row, b.loop(0, code.taps) as tap:
        first, step = rows.at(row)
        quads = b.buffer(FILTERS, I8).at(((row * code.quads + tap // 4) * p["filter_step"] + column) * 4)
        x = rows.load(first, step, tap * inner["dilation"])
        x = (x ^ 0x80 if code.signed else x).to(I32)
        weights = (quads.of(U32).load(0, lanes) >> (tap % 4 * 8).to(U32)).to(I8).to(I32)
        total.add(x * weights)
        elements.add(x)
    value = total.value
    if code.factors:
        value = value + elements.value * b.buffer(FACTORS, I32).load(column, lanes)
    store_places(b, b.buffer(OUTPUT, part.output), [value], [result], [column], [span], part.epilogue)
