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
from collections.abc import Iterator, Sequence

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address, Kernel, Module, float_word
from sardonyx.codegen.emit.narrow import from_narrow
from sardonyx.codegen.emit.types import F32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.attention.block_params import Strides
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking, sum_with_sink
from sardonyx.codegen.kernels.gemm_params import CHAIN
from sardonyx.codegen.kernels.softmax import exp_of_difference
from sardonyx.codegen.kernels.transpose import transpose_tile
from sardonyx.lazy_dataclasses import dataclass, replace

__all__ = ["FEW", "PIECE", "RowAttentionParams", "part_elements", "write_join", "write_row_attention"]

FEW = 8
"""Up to so many queries of a head are attended to row by row: with more, blocks of queries along the lanes are faster."""

PIECE = 2 * CHAIN
"""Keys of one task."""

_ROWS, _VECTORS = 4, 4
"""Rows and vectors of a tile of values: 16 sums."""

Q, K, V, Y, PARTS, LENGTHS, PAST_K, PAST_V, MASK = range(9)
"""The buffers of the kernel: float32, but for the lengths, int64 (past, total) of each batch; the mask only where there is one,
behind it the sinks (H), where there are; where rows are named, behind all the row of each batch, int64, and the status word."""

_SINKS_OF_JOIN = PARTS + 1
"""Where the second kernel finds them."""

_PARAMS = (
    "M group S T D Dv pieces past window P N former streams "
    "q_batch q_head q_row k_batch k_head k_row v_batch v_head v_row y_batch y_head y_row mask_batch mask_head mask_row"
).split()


@dataclass(frozen=True, slots=True)
class RowAttentionParams:
    """The sizes of one call: batch B, M heads of keys for `group` heads of queries each, S queries, T keys, head sizes D, Dv."""

    B: int
    """Batch."""
    M: int
    """Heads of keys and values."""
    group: int
    """Heads of queries that share one."""
    S: int
    """Queries of a head."""
    T: int
    """Keys, or rows of the cache."""
    D: int
    """Size of a head of queries and keys."""
    Dv: int
    """Size of a head of values."""
    scale: float
    """What the products are multiplied by."""
    q: Strides
    """Of the queries."""
    k: Strides
    """Of the keys."""
    v: Strides
    """Of the values."""
    y: Strides
    """Of the result."""
    past: int = 0
    """Keys before the first query's own, where the lengths do not say it."""
    window: int = 1 << 40
    """Keys that a causal query sees at most, its own among them."""
    P: int = 0
    """Rows of each head of keys of former runs, which lie densely (B, M, P, D), and of which `past` are copied."""
    N: int = 0
    """Rows of the cache that are new, behind those: what follows is cleared."""
    former: int = 0
    """How many batches there were in former runs, where each batch names one of them."""
    streams: bool = False
    """Whether pieces of former keys are written past the caches of the processor."""
    mask: tuple[int, int, int] = (0, 0, 0)
    """From one batch, one head, one query of the mask to the next; 0 takes the same one."""

    @property
    def pieces(self) -> int:
        """Pieces of the keys; one where there are none."""
        return max(-(-self.T // PIECE), 1)

    def words(self) -> list[int]:
        """Return the parameters as both kernels read them."""
        sizes = [
            self.M,
            self.group,
            self.S,
            self.T,
            self.D,
            self.Dv,
            self.pieces,
            self.past,
            self.window,
            self.P,
            self.N,
            self.former,
            int(self.streams),
        ]
        return [*sizes, *self.q, *self.k, *self.v, *self.y, *self.mask, float_word(self.scale)]

    def tasks(self) -> int:
        """Return how many tasks it is; without queries former keys are still to be copied."""
        return self.B * self.M * self.pieces if self.S or self.P else 0

    def joins(self) -> int:
        """Return how many tasks joining is: none where there is one piece."""
        return self.B * self.M * self.group * self.S if self.pieces > 1 else 0


_GREATEST, _SUM, _STATISTICS = range(3)
"""What follows the sums of one query and one piece of keys: m, which joining replaces by f, and l."""


def part_elements(Dv: int) -> int:
    """Return how many elements are kept of one query and one piece of keys: its sums, m and l."""
    return Dv + _STATISTICS


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
        return _param(self.b, name)

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
        kind: the type of keys and values, float32 or one of 16 bits.
    """
    scores = _write_scores(module, f"{symbol}_scores", shape, kind)
    values = {height: _write_values(module, f"{symbol}_values{height}", height, kind) for height in (_ROWS, 1)}
    with module.kernel(symbol) as b:
        M, pieces = _param(b, "M"), _param(b, "pieces")
        room = b.stack(F32, _ROWS * PIECE, align=64)
        with b.loop(b.begin, b.end) as task:
            place, number = task // pieces, task % pieces
            batch, head = place // M, place % M
            k, v = (
                b.buffer(buffer, kind).at(batch * _param(b, f"{name}_batch") + head * _param(b, f"{name}_head"))
                for buffer, name in ((K, "k"), (V, "v"))
            )
            past, total = _param(b, "past"), _param(b, "T")
            if has_lengths:
                past, total = (b.buffer(LENGTHS, I64).load(batch * 2 + index) for index in range(2))
            piece = _Piece(b, shape, batch, head, number, k, v, past, total)
            if names_rows:
                _copy_named_past(piece)
            elif has_past:
                piece = _stream_past(piece, place)
            rows = _param(b, "group") * _param(b, "S")
            whole = rows // _ROWS * _ROWS
            for height, (first, end) in ((_ROWS, (b.const(I64, 0), whole)), (1, (whole, rows))):
                with b.loop(first, end, height) as row:
                    _attend(piece, scores, values[height], height, row, room)


def _param(b: Kernel, name: str) -> Register:
    return b.param(_PARAMS.index(name))


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
    former = []
    for index, cache, size in ((PAST_K, piece.k, piece.param("D")), (PAST_V, piece.v, piece.param("Dv"))):
        former.append(b.buffer(index, cache.element).at(place * piece.param("P") * size))
        first = cache.at(begin * size).to(I64)
        streams = streams & former[-1].ne(cache) & (first & (b.lanes(cache.element) * cache.element.size_bytes - 1)).eq(0)
    with b.when(streams):
        for source, cache, size in zip(former, (piece.k, piece.v), (piece.param("D"), piece.param("Dv")), strict=True):
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
    for index, cache, size in ((PAST_K, piece.k, piece.param("D")), (PAST_V, piece.v, piece.param("Dv"))):
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
        part = b.buffer(PARTS, F32).at(number * (Dv + _STATISTICS))
        q = _row(piece, Q, "q", *place)
        mask = q if piece.shape.masking is Masking.NONE else _row(piece, MASK, "mask", *place)
        b.call_part(scores, q, piece.k, mask, room.at(i * PIECE), part.at(Dv), begin, end, *piece.seen_by(row % S))
        places.append(place)
        parts.append(part)
    b.call_part(values, piece.v, room, *parts, begin, end)
    with b.when(piece.param("pieces").eq(1)):
        for place, part in zip(places, parts, strict=True):
            total = part.load(Dv + _SUM)
            if piece.shape.has_sink:
                sinks = b.buffer(MASK + (piece.shape.masking is not Masking.NONE), F32)
                total = sum_with_sink(b, total, part.load(Dv + _GREATEST), sinks.load(place[0]))
            inverse = _inverse(b, total)
            y = _row(piece, Y, "y", *place)
            for d, span in b.vectors(0, Dv, F32):
                y.store(part.load(d, span) * inverse, d, span)


def _row(piece: _Piece, buffer: int, name: str, head: Register, query: Register) -> Pointer:
    """Return where a row of a query is, in a buffer whose strides are called `name`."""
    batch = piece.batch * piece.param(f"{name}_batch")
    offset = batch + head * piece.param(f"{name}_head") + query * piece.param(f"{name}_row")
    return piece.b.buffer(buffer, F32).at(offset)


def _inverse(b: Function, total: Register) -> Register:
    """Return 1 / l, and 1 for a query that sees no key, whose sums are 0."""
    return 1.0 / b.select(total.eq(0), 1.0, total)


def _wide(b: Function, x: Register) -> Register:
    """Return keys or values as float32."""
    return from_narrow(b, x) if x.type.is_narrow else x


def _write_scores(module: Module, symbol: str, shape: AttentionShape, kind: Type) -> Kernel:
    """Write exponentials of the scores of one query with the keys [begin, end), and m and l.

    Its arguments: the query, the first key of the head, the query's mask, where exponentials go, where m and l go; begin, end, the
    first key that the query sees and the one after the last.
    """
    addresses = [Address(of, unique=False) for of in (F32, kind, F32, F32, F32)]
    with module.part(symbol, *addresses, *[I64] * 4) as b:
        q, k, mask, room, statistics = b.addresses
        begin, end, low, high = b.arguments
        lanes = b.lanes(F32)
        greatest = b.variable(b.const(F32.vector(lanes), -math.inf))
        stride, scale = _param(b, "k_row"), b.param_float(len(_PARAMS)).splat(lanes)

        def score(first: Register, left: Register | None) -> None:
            places = [stride * (lane if left is None else b.min(left - 1, lane)) for lane in range(lanes)]
            sums = _products(b, q, k.at(first * stride), places, _param(b, "D"))
            value = _masked(b, shape, sums * scale, mask.at(first), Span(lanes, None if left is None else b.tail_mask(left, lanes)))
            key = b.iota(I64, lanes) + first.splat(lanes)
            seen = (key >= low.splat(lanes)) & (key < b.min(high, end).splat(lanes))
            value = b.select(seen, value, value.like(-math.inf))
            room.store(value, first - begin, lanes)
            greatest.set(b.max(value, greatest.value))

        whole = begin + (b.max(end - begin, 0) & -lanes)
        with b.loop(begin, whole, lanes) as first:
            score(first, None)
        with b.when(whole < end):
            score(whole, end - whole)
        top = b.max_lanes(greatest.value)
        finite = b.select(top.eq(-math.inf), 0.0, top).splat(lanes)
        total = b.variable(b.const(F32.vector(lanes), 0.0))
        with b.loop(0, end - begin, lanes) as place:
            value = exp_of_difference(b, room.load(place, lanes), finite)
            room.store(value, place, lanes)
            total.add(value)
        statistics.store(top, _GREATEST)
        statistics.store(b.sum_lanes(total.value), _SUM)
    return b


def _products(b: Kernel, q: Pointer, k: Pointer, places: Sequence[Register], D: Register) -> Register:
    """Return one vector with the product of the query and each key, which lie `places` behind `k`."""
    lanes = b.lanes(F32)
    sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in places]
    keys = [k.at(place) for place in places]
    for d, span in _vectors(b, D):
        query = q.load(d, span)
        for key, total in zip(keys, sums, strict=True):
            total.set(b.fma(_wide(b, key.load(d, span)), query, total.value))
    columns = transpose_tile([total.value for total in sums])
    while len(columns) > 1:
        columns = [left + right for left, right in zip(columns[::2], columns[1::2], strict=True)]
    return columns[0]


def _vectors(b: Kernel, end: Register) -> Iterator[tuple[Register, Span]]:
    """Walk [0, end) by vectors; what is left is walked under a mask."""
    lanes = b.lanes(F32)
    whole = end & -lanes
    with b.loop(0, whole, lanes) as place:
        yield place, Span(lanes)
    with b.when(whole < end):
        yield whole, Span(lanes, b.tail_mask(end - whole, lanes))


def _masked(b: Kernel, shape: AttentionShape, score: Register, mask: Pointer, span: Span) -> Register:
    """Return the scores of one query with some keys, capped, and masked by the numbers from `mask` on."""
    if shape.softcap > 0:
        score = mathlib.tanh(b, score / shape.softcap) * shape.softcap
    if shape.masking is Masking.NONE:
        return score
    added = mask.load(0, span)
    return b.select(added < 0, added, score) if shape.replaces else score + added


def _write_values(module: Module, symbol: str, height: int, kind: Type) -> Kernel:
    """Write sums of the values of the keys [begin, end), by the exponentials of `height` rows.

    Its arguments: the first value of the head, the exponentials, where the sums of each row go; begin, end.
    """
    addresses = [Address(of, unique=False) for of in (kind, *[F32] * (1 + height))]
    with module.part(symbol, *addresses, I64, I64) as b:
        v, room, *parts = b.addresses
        begin, end = b.arguments
        lanes, stride = b.lanes(F32), _param(b, "v_row")
        v = v.at(begin * stride)
        wide = _param(b, "Dv") // (_VECTORS * lanes) * (_VECTORS * lanes)

        def sum_up(column: Register, spans: Sequence[Span]) -> None:
            sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in range(height * len(spans))]
            with b.loop(0, b.max(end - begin, 1), CHAIN) as first:
                for total in sums:
                    total.set(b.const(F32.vector(lanes), 0.0))
                with b.loop(first, b.min(first + CHAIN, end - begin)) as key:
                    row = v.at(key * stride + column)
                    values = [_wide(b, row.load(j * lanes, span)) for j, span in enumerate(spans)]
                    for i in range(height):
                        weight = room.at(i * PIECE).load(key).splat(lanes)
                        for total, value in zip(sums[i * len(spans) : (i + 1) * len(spans)], values, strict=True):
                            total.set(b.fma(weight, value, total.value))
                for n, total in enumerate(sums):
                    i, j = divmod(n, len(spans))
                    place = column + j * lanes
                    with b.when(first > 0):
                        total.set(parts[i].load(place, spans[j]) + total.value)
                    parts[i].store(total.value, place, spans[j])

        with b.loop(0, wide, _VECTORS * lanes) as column:
            sum_up(column, [Span(lanes)] * _VECTORS)
        with b.loop(wide, _param(b, "Dv"), lanes) as column:
            left = b.min(_param(b, "Dv") - column, lanes)
            sum_up(column, [Span(lanes, b.tail_mask(left, lanes))])
    return b


def write_join(module: Module, symbol: str, *, has_sink: bool = False) -> None:
    """Write the kernel `symbol`, which joins the pieces: buffers and parameters are those of the other kernel; a task is a row.

    It has the first five of the buffers, and the sinks behind them.
    """
    with module.kernel(symbol) as b:
        M, group, S, Dv, pieces = (_param(b, name) for name in ("M", "group", "S", "Dv", "pieces"))
        with b.loop(b.begin, b.end) as task:
            heads, row = task // (group * S), task % (group * S)
            step = group * S * (Dv + _STATISTICS)
            part = b.buffer(PARTS, F32).at(heads * pieces * step + row * (Dv + _STATISTICS))
            greatest = b.variable(b.const(F32, -math.inf))
            with b.loop(0, pieces) as number:
                greatest.set(b.max(part.load(number * step + Dv + _GREATEST), greatest.value))
            finite = b.select(greatest.value.eq(-math.inf), 0.0, greatest.value)
            total = b.variable(b.const(F32, 0.0))
            with b.loop(0, pieces) as number:
                statistics = part.at(number * step + Dv)
                factor = exp_of_difference(b, statistics.load(_GREATEST), finite)
                statistics.store(factor, _GREATEST)
                total.set(b.fma(factor, statistics.load(_SUM), total.value))
            batch, head = heads // M, heads % M * group + row // S
            whole = total.value
            if has_sink:
                whole = sum_with_sink(b, whole, greatest.value, b.buffer(_SINKS_OF_JOIN, F32).load(head))
            inverse = _inverse(b, whole)
            place = batch * _param(b, "y_batch") + head * _param(b, "y_head") + row % S * _param(b, "y_row")
            y = b.buffer(Y, F32).at(place)
            for d, span in b.vectors(0, Dv, F32):
                lanes = span.lanes
                found = b.variable(b.const(F32.vector(lanes), 0.0))
                with b.loop(0, pieces) as number:
                    at = part.at(number * step)
                    factor = at.load(Dv + _GREATEST)
                    found.set(b.fma(factor if lanes == 1 else factor.splat(lanes), at.load(d, span), found.value))
                y.store(found.value * inverse, d, span)
