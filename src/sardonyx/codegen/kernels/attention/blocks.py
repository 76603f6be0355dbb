"""Attention in fp32 by blocks of queries and keys, with no matrix of scores in memory: Y = softmax(scale Q Kᵀ + mask) V.

A block of queries is turned once, so that queries lie along the lanes; K and V are read where they are, one broadcast per element:

                     queries, turned: D x 64              block of scores: keys x 64
                    ┌──┬──┬──┬──┐                        ┌──┬──┬──┬──┐
    6 keys of K     │q0│q1│q2│q3│                        │p0│p1│p2│p3│     6 columns of V
     k0 · · ·       └──┴──┴──┴──┘      softmax down      └──┴──┴──┴──┘      v0 · · ·
     k1 · · ·       scores[i][j] += k[i] * q[j]          y[i][j] += v[i] * p[j]
     …                                the keys           …

Both products are the tiles of `gemm`, and what the softmax needs of each query (the greatest score m, the sum l of exponentials)
is a vector per 16 queries, never a fold across lanes. Blocks of keys follow one another as in FlashAttention (Dao et al. 2022,
algorithm 1; Milakov and Gimelshein 2018 for the softmax): m grows, and what was summed so far is scaled by exp(old m - new m).
The result is turned back as it is stored.

Where less precision is asked for, both products are dot products of pairs of bfloat16: of two elements of a head for the scores, of
two keys for the result. Keys and values are then rounded beforehand (`pairs`), queries and exponentials here.

A query that sees no key gives zeros. One that meets NaN gives NaN. All sums are taken key by key in one order, block by block: the
result of a query does not depend on its position, on other queries, on the batch or on the number of threads.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.bfloat_dots import dot2
from sardonyx.codegen.emit.builder import Variable
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import F32, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.attention.block_params import PARAMS, STATISTICS, param_of, scale_of
from sardonyx.codegen.kernels.attention.pairs import pair_of_rows, pairs_of_row
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking, sum_with_sink
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.softmax import exp_of_difference
from sardonyx.codegen.kernels.transpose import transpose_tile
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["write_attention"]

Q, K, V, Y, SCRATCH, MASK = range(6)
"""The buffers of the kernel, float32; the mask only where there is one, and behind all the sinks (H), where there are."""


_GREATEST, _NEXT, _SUM, _FACTOR = range(STATISTICS)
"""Rows of what is known of each query: m, m with the block of keys at hand, l, and what the sums so far are to be multiplied by."""


@dataclass(frozen=True, slots=True)
class _Block:
    """One block of queries of one head: addresses and sizes, in the function that is being written."""

    b: Kernel
    vectors: int
    """Of queries."""
    addresses: tuple[Pointer, ...]
    """Q, K, V, Y, the mask and the sink at its head, Q and Y not yet at its queries; the task's scratch memory."""
    s: Register
    """The first query."""

    @property
    def q(self) -> Pointer:
        return self.addresses[0]

    @property
    def k(self) -> Pointer:
        return self.addresses[1]

    @property
    def v(self) -> Pointer:
        return self.addresses[2]

    @property
    def y(self) -> Pointer:
        return self.addresses[3]

    @property
    def mask(self) -> Pointer:
        return self.addresses[4]

    @property
    def sink(self) -> Pointer:
        return self.addresses[5]

    @property
    def lanes(self) -> int:
        return self.b.lanes(F32)

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    def param(self, name: str) -> Register:
        return param_of(self.b, name)

    @property
    def turned(self) -> Pointer:
        """The queries (D, width), scaled."""
        return self.addresses[-1]

    @property
    def sums(self) -> Pointer:
        """The result so far (Dv, width)."""
        return self.turned.at(self._rows("D") * self.width)

    @property
    def scores(self) -> Pointer:
        """The scores of a block of keys (keys, width), then their exponentials."""
        return self.sums.at(self._rows("Dv") * self.width)

    def statistic(self, row: int) -> Pointer:
        """Return one number for each query (width)."""
        return self.scores.at((self.param("block_keys") + row) * self.width)

    def _rows(self, name: str) -> Register:
        return (self.param(name) + (self.lanes - 1)) & -self.lanes


def write_attention(module: Module, symbol: str, shape: AttentionShape) -> None:
    """Write the kernel `symbol`: buffers Q, K, V, Y, scratch memory of all tasks, the mask; parameters as in AttentionParams."""
    tiles = tiling(module.target)
    widths = (tiles.tiles[0][0], tiles.tiles[-1][0])
    turns = _write_turn_in(module, f"{symbol}_in", pairs=shape.in_pairs), _write_turn_out(module, f"{symbol}_out")
    parts = {vectors: _write_block(module, f"{symbol}_{vectors}", shape, vectors, *turns) for vectors in dict.fromkeys(widths)}
    with module.kernel(symbol) as b:
        p = {name: param_of(b, name) for name in PARAMS}
        with b.loop(b.begin, b.end) as task:
            scratch = b.buffer(SCRATCH, F32).at(task % p["together"] * p["scratch"])
            with b.loop(task * p["total"] // p["tasks"], (task + 1) * p["total"] // p["tasks"]) as number:
                place, block = number // p["blocks"], number % p["blocks"]
                batch, head = place // p["H"], place % p["H"]
                heads = {"q": head, "k": head // p["group"], "v": head // p["group"], "y": head, "mask": head}
                buffers = {"q": Q, "k": K, "v": V, "y": Y, "mask": MASK if shape.masking is not Masking.NONE else Q}
                addresses = [
                    b.buffer(buffer, F32).at(batch * p[f"{name}_batch"] + heads[name] * p[f"{name}_head"])
                    for name, buffer in buffers.items()
                ]
                addresses.append(
                    b.buffer(MASK + (shape.masking is not Masking.NONE), F32).at(head) if shape.has_sink else addresses[0]
                )
                narrow_first = p["wide"] * tiles.panel + (block - p["wide"]) * tiles.lanes
                b.branch(
                    block < p["wide"],
                    functools.partial(b.call_part, parts[widths[0]], *addresses, scratch, block * tiles.panel),
                    functools.partial(b.call_part, parts[widths[1]], *addresses, scratch, narrow_first),
                )


def _write_block(module: Module, symbol: str, shape: AttentionShape, vectors: int, turn_in: Kernel, turn_out: Kernel) -> Kernel:
    """Write all keys for one block of queries."""
    heights = next(heights for count, heights in tiling(module.target).tiles if count == vectors)
    scores = {height: _write_scores(module, f"{symbol}_scores{height}", shape, vectors, height) for height in heights}
    values = {height: _write_values(module, f"{symbol}_values{height}", shape, vectors, height) for height in heights}
    with _part(module, symbol, vectors) as (b, block):
        with b.loop(0, block.width, block.lanes) as first:
            b.call_part(turn_in, block.q, block.turned.at(first), block.s + first, b.const(I64, block.width))
        _clear(block)
        end = block.param("T")
        if shape.is_causal:
            end = b.min(block.s + block.param("past") + block.width, end)
        with b.loop(0, end, block.param("block_keys")) as t:
            last = b.min(t + block.param("block_keys"), end)
            for height, (top, bottom) in _cover(heights, t, last):
                with b.loop(top, bottom, height) as row:
                    _call(block, scores[height], row, t)
            _exponentiate(block, last - t, pairs=shape.in_pairs)
            for height, (top, bottom) in _cover(heights, b.const(I64, 0), block.param("Dv")):
                with b.loop(top, bottom, height) as column:
                    _call(block, values[height], column, t, last)
        if shape.has_sink:
            _add_sink(block)
        with b.loop(0, b.min(block.param("S") - block.s, block.width), block.lanes) as first:
            place = block.s + first
            b.call_part(
                turn_out,
                block.sums.at(first),
                block.statistic(_SUM).at(first),
                block.y.at(place * block.param("y_row")),
                block.param("S") - place,
                b.const(I64, block.width),
            )
    return b


@contextlib.contextmanager
def _part(module: Module, symbol: str, vectors: int, *more: Type) -> Iterator[tuple[Kernel, _Block]]:
    """Open a function with the addresses of a block of queries, and the number of the first, as its arguments."""
    with module.part(symbol, *[Address(F32, unique=False)] * 7, I64, *more) as b:
        yield b, _Block(b, vectors, tuple(b.addresses), b.arguments[0])


def _call(block: _Block, part: Kernel, *arguments: Register) -> None:
    block.b.call_part(part, *block.addresses, block.s, *arguments)


def _cover(heights: Sequence[int], first: Register, end: Register) -> Iterator[tuple[int, tuple[Register, Register]]]:
    """Yield ranges for tiles of falling height."""
    for height in heights:
        last = first + (end - first) // height * height
        yield height, (first, last)
        first = last


def _write_turn_in(module: Module, symbol: str, *, pairs: bool) -> Kernel:
    """Write scaled queries with D going down, by pairs or not, and queries along the lanes; behind the last query it is repeated.

    Its arguments: Q, where the first goes, the number of the first, and elements from one row of the turned ones to the next.
    """
    with module.part(symbol, Address(F32, unique=False), Address(F32, unique=False), I64, I64) as b:
        q, turned = b.addresses
        first, width = b.arguments
        lanes, last, stride = b.lanes(F32), param_of(b, "S") - 1, param_of(b, "q_row")
        rows = [q.at(b.min(first + lane, last) * stride) for lane in range(lanes)]
        scale = scale_of(b)
        if pairs:
            with b.loop(0, (param_of(b, "D") + 1) // 2, lanes) as d:
                words = [pairs_of_row(b, row, d * 2, param_of(b, "D"), scale) for row in rows]
                for step, queries in enumerate(transpose_tile(words)):
                    turned.store(queries, (d + step) * width, lanes)
            return b
        for d, span in _vectors(b, param_of(b, "D")):
            for step, queries in enumerate(transpose_tile([row.load(d, span) * scale for row in rows])):
                turned.store(queries, (d + step) * width, lanes)
    return b


def _write_turn_out(module: Module, symbol: str) -> Kernel:
    """Divide the sums by l, turn them back, and write them to the rows of their queries.

    Its arguments: the sums and l of a vector of queries, the row of the first, how many queries there are from it on, and
    elements from one row of the sums to the next.
    """
    with module.part(symbol, *[Address(F32, unique=False)] * 3, I64, I64) as b:
        sums, total, y = b.addresses
        rows, width = b.arguments
        lanes, stride = b.lanes(F32), param_of(b, "y_row")
        weight = total.load(0, lanes)
        inverse = 1.0 / b.select(weight.eq(0), 1.0, weight)
        for d, span in _vectors(b, param_of(b, "Dv")):
            values = [sums.load((d + step) * width, lanes) * inverse for step in range(lanes)]
            for lane, value in enumerate(transpose_tile(values)):
                with b.when(rows > lane):
                    y.store(value, lane * stride + d, span)
    return b


def _vectors(b: Kernel, end: Register) -> Iterator[tuple[Register, Span]]:
    """Walk [0, end) by vectors, the last one under a mask: where masks are free, all are."""
    lanes, first = b.lanes(F32), b.const(I64, 0)
    if not b.target.has_masks:
        first = end & -lanes
        with b.loop(0, first, lanes) as place:
            yield place, Span(lanes)
    with b.loop(first, end, lanes) as place:
        yield place, Span(lanes, b.tail_mask(b.min(end - place, lanes), lanes))


def _clear(block: _Block) -> None:
    b, lanes = block.b, block.lanes
    with b.loop(0, block.param("Dv") * block.width, lanes) as place:
        block.sums.store(0.0, place, lanes)
    for j in range(0, block.width, lanes):
        block.statistic(_GREATEST).store(-math.inf, j, lanes)
        block.statistic(_NEXT).store(-math.inf, j, lanes)
        block.statistic(_SUM).store(0.0, j, lanes)


def _add_sink(block: _Block) -> None:
    for j in range(0, block.width, block.lanes):
        total, greatest = (block.statistic(row).load(j, block.lanes) for row in (_SUM, _GREATEST))
        block.statistic(_SUM).store(sum_with_sink(block.b, total, greatest, block.sink.load(0).splat(block.lanes)), j, block.lanes)


def _write_scores(module: Module, symbol: str, shape: AttentionShape, vectors: int, height: int) -> Kernel:
    """Write the scores of `height` keys from `row` on, with the mask, and the greatest so far; `first` begins the block of keys."""
    with _part(module, symbol, vectors, I64, I64) as (b, block):
        row, first = b.arguments[1:]
        lanes, width, stride = block.lanes, block.width, block.param("k_row")
        keys = [block.k.at((row + i) * stride) for i in range(height)]
        sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in range(height * vectors)]
        depth = (block.param("D") + 1) // 2 if shape.in_pairs else block.param("D")
        _accumulate(b, depth, sums, lambda d: [key.load(d) for key in keys], block.turned, width, pairs=shape.in_pairs)
        next_greatest = block.statistic(_NEXT)
        greatest = [next_greatest.load(j, lanes) for j in range(0, width, lanes)]
        for place, total in enumerate(sums):
            i, j = divmod(place, vectors)
            score = _finish(block, shape, total.value, row + i, j * lanes)
            block.scores.store(score, (row - first + i) * width + j * lanes, lanes)
            greatest[j] = b.max(score, greatest[j])
        for j, found in enumerate(greatest):
            next_greatest.store(found, j * lanes, lanes)
    return b


def _accumulate(
    b: Kernel,
    depth: Register,
    sums: Sequence[Variable],
    factors: Callable[[Register], list[Register]],
    panel: Pointer,
    width: int,
    *,
    pairs: bool,
) -> None:
    """Add factors(k)[i] * panel[k, j], or the dot product of these pairs, to sums[i, j] for `depth` steps, in their order."""
    lanes, vectors, add = sums[0].type.lanes, width // sums[0].type.lanes, _add_pairs if pairs else _add
    with b.loop(0, depth) as k:
        columns = [panel.load(k * width + j * lanes, lanes) for j in range(vectors)]
        for i, factor in enumerate(factors(k)):
            for total, column in zip(sums[i * vectors : (i + 1) * vectors], columns, strict=True):
                total.set(add(b, total.value, factor.splat(lanes), column))


def _add(b: Kernel, total: Register, factor: Register, column: Register) -> Register:
    return b.fma(factor, column, total)


def _add_pairs(b: Kernel, total: Register, factor: Register, column: Register) -> Register:
    return dot2(b, total, factor, column)


def _finish(block: _Block, shape: AttentionShape, score: Register, key: Register, j: int) -> Register:
    """Return the score of one vector of queries, from `j` on in the block, with one key."""
    b, lanes = block.b, block.lanes
    if shape.softcap > 0:
        score = mathlib.tanh(b, score / shape.softcap) * shape.softcap
    if shape.masking is not Masking.NONE:
        mask = _mask(block, shape.masking, key, j)
        score = b.select(mask < 0, mask, score) if shape.replaces else score + mask
    if shape.is_causal:
        query = b.iota(I32, lanes) + (block.s + block.param("past") + j).to(I32)
        score = b.select(query < key.to(I32), score.like(-math.inf), score)
    return score


def _mask(block: _Block, masking: Masking, key: Register, j: int) -> Register:
    """Return what is to be added to the scores of one vector of queries, from `j` on in the block, with one key."""
    if masking is Masking.KEYS:
        return block.mask.load(key).splat(block.lanes)
    panel = tiling(block.b.target).panel
    place = (block.s // panel * block.param("T") + key) * panel + block.s % panel + j
    return block.mask.load(place, block.lanes)


def _exponentiate(block: _Block, keys: Register, *, pairs: bool) -> None:
    """Turn the scores of a block of keys to exp(score - m), add them to l, and say what the sums so far are to be multiplied by.

    Where they go by `pairs`, two keys become one row of words; behind an odd one stands a zero.
    """
    b, lanes, width = block.b, block.lanes, block.width
    subtracted, sums = [], []
    for j in range(0, width, lanes):
        old, new = block.statistic(_GREATEST).load(j, lanes), block.statistic(_NEXT).load(j, lanes)
        finite = b.select(new.eq(-math.inf), 0.0, new)
        factor = exp_of_difference(b, old, finite)
        block.statistic(_GREATEST).store(new, j, lanes)
        block.statistic(_FACTOR).store(factor, j, lanes)
        subtracted.append(finite)
        sums.append(b.variable(factor.like(0.0)))
    columns = list(enumerate(zip(subtracted, sums, strict=True)))

    def weight(row: Register, j: int, greatest: Register, total: Variable) -> Register:
        value = exp_of_difference(b, block.scores.load(row * width + j * lanes, lanes), greatest)
        total.add(value)
        return value

    if pairs:
        with b.loop(0, keys // 2) as row:
            for j, (greatest, total) in columns:
                two = [weight(row * 2 + other, j, greatest, total) for other in range(2)]
                block.scores.store(pair_of_rows(b, *two), row * width + j * lanes, lanes)
        with b.when((keys & 1).ne(0)):
            for j, (greatest, total) in columns:
                last = weight(keys - 1, j, greatest, total)
                block.scores.store(pair_of_rows(b, last, last.like(0.0)), keys // 2 * width + j * lanes, lanes)
    else:
        with b.loop(0, keys) as row:
            for j, (greatest, total) in columns:
                block.scores.store(weight(row, j, greatest, total), row * width + j * lanes, lanes)
    for j, total in enumerate(sums):
        before, factor = (block.statistic(row).load(j * lanes, lanes) for row in (_SUM, _FACTOR))
        block.statistic(_SUM).store(b.fma(before, factor, total.value), j * lanes, lanes)


def _write_values(module: Module, symbol: str, shape: AttentionShape, vectors: int, height: int) -> Kernel:
    """Add the values of the keys [first, last), `height` of their elements from `column` on, to the result so far."""
    with _part(module, symbol, vectors, I64, I64, I64) as (b, block):
        column, first, last = b.arguments[1:]
        lanes, width, stride = block.lanes, block.width, block.param("v_row")
        start, steps = (first // 2, (last - first + 1) // 2) if shape.in_pairs else (first, last - first)
        values = block.v.at(start * stride + column)
        places = [(column + i) * width + j for i in range(height) for j in range(0, width, lanes)]
        factors = [block.statistic(_FACTOR).load(j, lanes) for j in range(0, width, lanes)]
        sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in places]

        def factors_at(t: Register) -> list[Register]:
            return [values.load(t * stride + i) for i in range(height)]

        _accumulate(b, steps, sums, factors_at, block.scores, width, pairs=shape.in_pairs)
        for n, (place, total) in enumerate(zip(places, sums, strict=True)):
            block.sums.store(b.fma(block.sums.load(place, lanes), factors[n % vectors], total.value), place, lanes)
    return b
