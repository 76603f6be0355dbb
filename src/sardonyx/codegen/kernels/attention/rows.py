"""Attention in fp32 of a few queries over many keys, as a decoder needs it at each step: Y = softmax(scale Q Kᵀ + mask) V.

Here elements of a head lie along the lanes, and K and V are read once, in the order of memory, for all queries that share them:

    scores   16 keys at a time: 16 sums of products along D, turned to one vector of 16 scores
    softmax  of one piece of PIECE keys, in the first-level cache: its greatest score m and the sum l of exponentials
    values   4 rows of exponentials times V, a tile of sums in registers

Each piece of keys of each head of keys is a task of its own, so that one long cache occupies all threads. Its sums y, m and l are
joined in the order of the pieces by a second kernel, which is not run where there is but one piece:

    m = max m_i        f_i = exp(m_i - m)        Y = (sum f_i y_i) / (sum f_i l_i)

Where keys and values of former runs lie elsewhere, a task copies its piece of them into the cache first, and reads it there: they
come from memory once, then from the second-level cache. Where they are many, they are written past the caches of the processor,
which would otherwise read from memory what is overwritten, and the piece is read where it was. Where they are the cache itself,
nothing is copied. A search by beams may name the row whose former keys each row goes on from.

Keys that no query sees are not read, be they before a window or behind the end of a sequence. A query that sees no key gives
zeros; one that meets NaN gives NaN. The result of a query depends on nothing but its own keys: not on the batch, nor on threads.
"""

from __future__ import annotations

import math

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.attention.codes import stored_elements
from sardonyx.codegen.kernels.attention.row_parts import (
    GREATEST,
    PIECE,
    ROWS,
    STATISTICS,
    SUM,
    inverse_of,
    row_param,
    write_scores,
    write_values,
)
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking, sum_with_sink
from sardonyx.codegen.kernels.softmax import exp_of_difference
from sardonyx.lazy_dataclasses import dataclass, replace

__all__ = ["FEW", "write_join", "write_row_attention"]

FEW = 8
"""Up to so many queries of a head are attended to row by row: with more, blocks of queries along the lanes are faster."""

Q, K, V, Y, PARTS, LENGTHS, PAST_K, PAST_V, MASK = range(9)
"""The buffers of the kernel: float32, but for the lengths, int64 (past, total) of each batch; the mask only where there is one,
behind it the sinks (H), where there are; where rows are named, behind all the row of each batch, int64, and the status word."""

_SINKS_OF_JOIN = PARTS + 1
"""Where the second kernel finds them."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One piece of keys of one head, in the function that is being written."""

    b: Kernel
    shape: AttentionShape
    batch: Register
    head: Register
    """Of keys and values."""
    number: Register
    """Of the piece."""
    k: Pointer
    """The first key of the head."""
    v: Pointer
    """Its value."""
    past: Register
    """Keys before the first query's own."""
    total: Register
    """Keys that there are."""

    def param(self, name: str) -> Register:
        return row_param(self.b, name)

    def caches(self) -> tuple[tuple[int, Pointer, Register], tuple[int, Pointer, Register]]:
        """Return the buffers of keys and values of former runs, where those of the head go, and elements of a row of each."""
        sizes = [stored_elements(self.param(name), self.k.element) for name in ("D", "Dv")]
        return (PAST_K, self.k, sizes[0]), (PAST_V, self.v, sizes[1])

    def seen_by(self, query: Register) -> tuple[Register, Register]:
        """Return the first key that a query sees, and the one after the last."""
        b = self.b
        if not self.shape.is_causal:
            return b.const(I64, 0), self.total
        end = self.past + query + 1
        return b.max(end - self.param("window"), 0), b.max(b.min(end, self.total), 0)

    def keys(self) -> tuple[Register, Register]:
        """Return the first key of the piece that any query sees, and the one after the last; it may lie before the first."""
        b = self.b
        begin = b.max(self.number * PIECE, self.seen_by(b.const(I64, 0))[0])
        return begin, b.min(self.number * PIECE + PIECE, self.seen_by(self.param("S") - 1)[1])


def write_row_attention(
    module: Module,
    symbol: str,
    shape: AttentionShape,
    *,
    has_lengths: bool,
    has_past: bool,
    names_rows: bool = False,
    kind: Type = F32,
) -> None:
    """Write the kernel `symbol`: buffers Q, K, V, Y, parts, lengths, keys and values of former runs, the mask.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        shape: what is done to scores; a mask of pairs is read row by row, as it is in memory.
        has_lengths: whether past and total are read from the lengths.
        has_past: whether K and V are a cache, into which keys and values of former runs are copied first.
        names_rows: whether each batch says whose keys and values of former runs are its own; one that there was not is reported in
            the status word.
        kind: the type of keys and values, float32, one of 16 bits, or that of codes.
    """
    scores = write_scores(module, f"{symbol}_scores", shape, kind)
    values = {height: write_values(module, f"{symbol}_values{height}", height, kind) for height in (ROWS, 1)}
    with module.kernel(symbol) as b:
        M, pieces = row_param(b, "M"), row_param(b, "pieces")
        room = b.stack(F32, ROWS * PIECE, align=64)
        with b.loop(b.begin, b.end) as task:
            place, number = task // pieces, task % pieces
            batch, head = place // M, place % M
            k, v = (
                b.buffer(buffer, kind).at(batch * row_param(b, f"{name}_batch") + head * row_param(b, f"{name}_head"))
                for buffer, name in ((K, "k"), (V, "v"))
            )
            past, total = row_param(b, "past"), row_param(b, "T")
            if has_lengths:
                past, total = (b.buffer(LENGTHS, I64).load(batch * 2 + index) for index in range(2))
            piece = _Piece(b, shape, batch, head, number, k, v, past, total)
            if names_rows:
                _copy_named_past(piece)
            elif has_past:
                piece = _stream_past(piece, place)
            rows = row_param(b, "group") * row_param(b, "S")
            whole = rows // ROWS * ROWS
            for height, (first, end) in ((ROWS, (b.const(I64, 0), whole)), (1, (whole, rows))):
                with b.loop(first, end, height) as row:
                    _attend(piece, scores, values[height], height, row, room)


def _copy_named_past(piece: _Piece) -> None:
    """Copy keys and values of former runs from the row that the batch names; a negative number counts from the last."""
    b, former = piece.b, piece.param("former")
    first = MASK + (piece.shape.masking is not Masking.NONE) + piece.shape.has_sink
    row = b.buffer(first, I64).load(piece.batch)
    row = b.select(row < 0, row + former, row)
    is_there = (row >= 0) & (row < former)
    with b.when(~is_there):
        b.buffer(first + 1, I64).store(1)
    with b.when(is_there):
        _copy_past(piece, row * piece.param("M") + piece.head)


def _stream_past(piece: _Piece, place: Register) -> _Piece:
    """Copy keys and values of former runs of the piece into the cache; returns the piece, to be read where it was if all are."""
    b = piece.b
    begin, streams = piece.number * PIECE, piece.param("streams").ne(0) & (piece.number * PIECE + PIECE <= piece.past)
    former, caches = [], piece.caches()
    for index, cache, size in caches:
        former.append(b.buffer(index, cache.element).at(place * piece.param("P") * size))
        first = cache.at(begin * size).to(I64)
        streams = streams & former[-1].ne(cache) & (first & (b.lanes(cache.element) * cache.element.size_bytes - 1)).eq(0)
    with b.when(streams):
        for source, (_, cache, size) in zip(former, caches, strict=True):
            lanes = b.lanes(cache.element)
            with b.loop(begin * size, (begin + PIECE) * size, lanes) as i:
                cache.stream(source.load(i, lanes), i)
        b.stream_fence()
    with b.when(~streams):
        _copy_past(piece, place)
    k, v = (
        b.pointer(b.select(streams, source, cache).ref, cache.element)
        for source, cache in zip(former, (piece.k, piece.v), strict=True)
    )
    return replace(piece, k=k, v=v)


def _copy_past(piece: _Piece, place: Register) -> None:
    """Copy keys and values of former runs of the piece into the cache, unless they lie there, and clear what no sequence has."""
    b = piece.b
    begin = piece.number * PIECE
    end = b.min(begin + PIECE, piece.param("T"))
    kept, cleared = (b.max(b.min(row, end), begin) for row in (piece.past, piece.past + piece.param("N")))
    for index, cache, size in piece.caches():
        kind = cache.element
        source = b.buffer(index, kind).at(place * piece.param("P") * size)
        with b.when(source.ne(cache)):
            for i, span in b.vectors(begin * size, kept * size, kind):
                cache.store(source.load(i, span), i, span)
            for i, span in b.vectors(cleared * size, end * size, kind):
                cache.store(0.0, i, span)


def _attend(piece: _Piece, scores: Kernel, values: Kernel, height: int, first: Register, room: Pointer) -> None:
    """Attend with `height` rows, of which a row is a query of one head, to the piece of keys."""
    b, S, Dv = piece.b, piece.param("S"), piece.param("Dv")
    begin, end = piece.keys()
    heads = piece.batch * piece.param("M") + piece.head
    places, parts = [], []
    for i in range(height):
        row = first + i
        place = piece.head * piece.param("group") + row // S, row % S
        number = (heads * piece.param("pieces") + piece.number) * (piece.param("group") * S) + row
        part = b.buffer(PARTS, F32).at(number * (Dv + STATISTICS))
        q = _row(piece, Q, "q", *place)
        mask = q if piece.shape.masking is Masking.NONE else _row(piece, MASK, "mask", *place)
        b.call_part(scores, q, piece.k, mask, room.at(i * PIECE), part.at(Dv), begin, end, *piece.seen_by(row % S))
        places.append(place)
        parts.append(part)
    b.call_part(values, piece.v, room, *parts, begin, end)
    with b.when(piece.param("pieces").eq(1)):
        for place, part in zip(places, parts, strict=True):
            total = part.load(Dv + SUM)
            if piece.shape.has_sink:
                sinks = b.buffer(MASK + (piece.shape.masking is not Masking.NONE), F32)
                total = sum_with_sink(b, total, part.load(Dv + GREATEST), sinks.load(place[0]))
            inverse = inverse_of(b, total)
            y = _row(piece, Y, "y", *place)
            for d, span in b.vectors(0, Dv, F32):
                y.store(part.load(d, span) * inverse, d, span)


def _row(piece: _Piece, buffer: int, name: str, head: Register, query: Register) -> Pointer:
    """Return where a row of a query is, in a buffer whose strides are called `name`."""
    batch = piece.batch * piece.param(f"{name}_batch")
    offset = batch + head * piece.param(f"{name}_head") + query * piece.param(f"{name}_row")
    return piece.b.buffer(buffer, F32).at(offset)


def write_join(module: Module, symbol: str, *, has_sink: bool = False) -> None:
    """Write the kernel `symbol`, which joins the pieces: buffers and parameters are those of the other kernel; a task is a row.

    It has the first five of the buffers, and the sinks behind them.
    """
    with module.kernel(symbol) as b:
        M, group, S, Dv, pieces = (row_param(b, name) for name in ("M", "group", "S", "Dv", "pieces"))
        with b.loop(b.begin, b.end) as task:
            heads, row = task // (group * S), task % (group * S)
            step = group * S * (Dv + STATISTICS)
            part = b.buffer(PARTS, F32).at(heads * pieces * step + row * (Dv + STATISTICS))
            greatest = b.variable(b.const(F32, -math.inf))
            with b.loop(0, pieces) as number:
                greatest.set(b.max(part.load(number * step + Dv + GREATEST), greatest.value))
            finite = b.select(greatest.value.eq(-math.inf), 0.0, greatest.value)
            total = b.variable(b.const(F32, 0.0))
            with b.loop(0, pieces) as number:
                statistics = part.at(number * step + Dv)
                factor = exp_of_difference(b, statistics.load(GREATEST), finite)
                statistics.store(factor, GREATEST)
                total.set(b.fma(factor, statistics.load(SUM), total.value))
            batch, head = heads // M, heads % M * group + row // S
            whole = total.value
            if has_sink:
                whole = sum_with_sink(b, whole, greatest.value, b.buffer(_SINKS_OF_JOIN, F32).load(head))
            inverse = inverse_of(b, whole)
            place = batch * row_param(b, "y_batch") + head * row_param(b, "y_head") + row % S * row_param(b, "y_row")
            y = b.buffer(Y, F32).at(place)
            for d, span in b.vectors(0, Dv, F32):
                lanes = span.lanes
                found = b.variable(b.const(F32.vector(lanes), 0.0))
                with b.loop(0, pieces) as number:
                    at = part.at(number * step)
                    factor = at.load(Dv + GREATEST)
                    found.set(b.fma(factor if lanes == 1 else factor.splat(lanes), at.load(d, span), found.value))
                y.store(found.value * inverse, d, span)
