"""What attention of few queries does with one piece of keys: their scores with a query, and the sums of their values.

    write_scores    a query, keys        ->  exponentials of scores less the greatest one, m, and their sum l
    write_values    values, exponentials ->  sums y

Other kernels call them, one piece after another; the parameters of all of these begin alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import F32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.attention.block_params import Strides
from sardonyx.codegen.kernels.attention.codes import load_wide
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking
from sardonyx.codegen.kernels.gemm_params import CHAIN
from sardonyx.codegen.kernels.softmax import exp_of_difference
from sardonyx.codegen.kernels.transpose import transpose_tile
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "GREATEST",
    "PIECE",
    "ROWS",
    "STATISTICS",
    "SUM",
    "RowAttentionParams",
    "further_param",
    "inverse_of",
    "part_elements",
    "row_param",
    "write_scores",
    "write_values",
]

PIECE = 2 * CHAIN
"""Keys of one task."""

ROWS, _VECTORS = 4, 4
"""Rows and vectors of a tile of values: 16 sums."""

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


GREATEST, SUM, STATISTICS = range(3)
"""What follows the sums of one query and one piece of keys: m, which joining replaces by f, and l."""


def part_elements(Dv: int) -> int:
    """Return how many elements are kept of one query and one piece of keys: its sums, m and l."""
    return Dv + STATISTICS


def row_param(b: Kernel, name: str) -> Register:
    """Return a parameter of `RowAttentionParams.words`."""
    return b.param(_PARAMS.index(name))


def further_param(b: Kernel, place: int) -> Register:
    """Return a parameter that a kernel has behind those of `RowAttentionParams.words`."""
    return b.param(len(_PARAMS) + 1 + place)


def inverse_of(b: Function, total: Register) -> Register:
    """Return 1 / l, and 1 for a query that sees no key, whose sums are 0."""
    return 1.0 / b.select(total.eq(0), 1.0, total)


def write_scores(module: Module, symbol: str, shape: AttentionShape, kind: Type) -> Kernel:
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
        stride, scale = row_param(b, "k_row"), b.param_float(len(_PARAMS)).splat(lanes)

        def score(first: Register, left: Register | None) -> None:
            places = [stride * (lane if left is None else b.min(left - 1, lane)) for lane in range(lanes)]
            sums = _products(b, q, k.at(first * stride), places, row_param(b, "D"))
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
        statistics.store(top, GREATEST)
        statistics.store(b.sum_lanes(total.value), SUM)
    return b


def _products(b: Kernel, q: Pointer, k: Pointer, places: Sequence[Register], D: Register) -> Register:
    """Return one vector with the product of the query and each key, which lie `places` behind `k`."""
    lanes = b.lanes(F32)
    sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in places]
    keys = [k.at(place) for place in places]
    for d, span in _vectors(b, D):
        query = q.load(d, span)
        for key, total in zip(keys, sums, strict=True):
            total.set(b.fma(load_wide(b, key, d, span), query, total.value))
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


def write_values(module: Module, symbol: str, height: int, kind: Type) -> Kernel:
    """Write sums of the values of the keys [begin, end), by the exponentials of `height` rows.

    Its arguments: the first value of the head, the exponentials, where the sums of each row go; begin, end.
    """
    addresses = [Address(of, unique=False) for of in (kind, *[F32] * (1 + height))]
    with module.part(symbol, *addresses, I64, I64) as b:
        v, room, *parts = b.addresses
        begin, end = b.arguments
        lanes, stride = b.lanes(F32), row_param(b, "v_row")
        v = v.at(begin * stride)
        wide = row_param(b, "Dv") // (_VECTORS * lanes) * (_VECTORS * lanes)

        def sum_up(column: Register, spans: Sequence[Span]) -> None:
            sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in range(height * len(spans))]
            with b.loop(0, b.max(end - begin, 1), CHAIN) as first:
                for total in sums:
                    total.set(b.const(F32.vector(lanes), 0.0))
                with b.loop(first, b.min(first + CHAIN, end - begin)) as key:
                    row = v.at(key * stride)
                    values = [load_wide(b, row, column + j * lanes, span) for j, span in enumerate(spans)]
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
        with b.loop(wide, row_param(b, "Dv"), lanes) as column:
            left = b.min(row_param(b, "Dv") - column, lanes)
            sum_up(column, [Span(lanes, b.tail_mask(left, lanes))])
    return b
