"""What PagedAttention does: tokens of all sequences lie one behind the other, keys and values in blocks of a shared cache.

    write_tokens       lengths, table        ->  for each token its sequence, position, slot and number of keys, checked
    write_pages        cache                 ->  a copy of it, unless it is the same memory
    write_new_rows     rows of tokens        ->  rotated by their positions, into the slots of the cache or one behind the other
    write_paged        queries, cache        ->  Y = softmax(scale Q Kᵀ) V, block by block

The key at position p of a sequence lies in block table[sequence][p / L] of the cache [blocks][L][M][D], at place p mod L. A query
reads blocks in the order of positions, and joins what each gives with what it has: sums y, the greatest score m, and l:

    m = max(m, m')      y = y exp(m_old - m) + y' exp(m' - m)      l likewise      Y = y / l

A token that does not fit has no keys and no slot: nothing is addressed by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.narrow import to_narrow
from sardonyx.codegen.emit.types import F32, I64, Type
from sardonyx.codegen.kernels.attention.group_query import Rotation, write_row
from sardonyx.codegen.kernels.attention.row_parts import (
    GREATEST,
    PIECE,
    STATISTICS,
    SUM,
    further_param,
    inverse_of,
    row_param,
    write_scores,
    write_values,
)
from sardonyx.codegen.kernels.attention.scores import AttentionShape, sum_with_sink
from sardonyx.codegen.kernels.softmax import exp_of_difference

__all__ = ["NUMBERS", "write_new_rows", "write_paged", "write_pages", "write_tokens"]

_SEQUENCE, _POSITION, _SLOT, _KEYS = range(4)
NUMBERS = 4
"""How many there are of a token."""
_NONE = (0, -1, -1, 0)
"""Those of one that does not fit."""


def write_tokens(module: Module, symbol: str, kinds: Sequence[Type]) -> None:
    """Write the kernel `symbol`: buffers first tokens [B + 1], past [B], table [B][W], numbers [tokens][4], status, slots [tokens].

    Parameters: B, tokens, W, L, blocks, positions that there are angles for, or -1. What does not fit is reported by its sequence.
    `kinds` are the types of the first three buffers, and of the slots where these are given; a slot below 0 stands for nowhere.
    """
    with module.kernel(symbol) as b:
        B, tokens, W, L, blocks, positions = (b.param(place) for place in range(6))
        firsts, pasts, table = (b.buffer(place, kinds[place]) for place in range(3))
        numbers, status = b.buffer(3, I64), b.buffer(4, I64)
        with b.loop(b.begin, b.end):
            with b.loop(0, tokens) as token:
                for place, number in enumerate(_NONE):
                    numbers.store(b.const(I64, number), token * NUMBERS + place)
            with b.loop(0, B) as sequence:
                first, end = (firsts.load(sequence + place).to(I64) for place in (0, 1))
                past = pasts.load(sequence).to(I64)
                total = past + end - first
                fits = (first >= 0) & (end >= first) & (end <= tokens) & (past >= 0) & (total <= W * L)
                fits = fits & ((positions < 0) | (total <= positions))
                fits = fits & (sequence.ne(0) | first.eq(0)) & ((sequence + 1 < B) | end.eq(tokens))
                wrong = b.variable(b.select(fits, b.const(I64, 0), b.const(I64, 1)))
                used = b.select(fits, (total + L - 1) // L, total.like(0))
                with b.loop(0, used) as page:
                    block = table.load(sequence * W + page).to(I64)
                    wrong.add(b.select((block >= 0) & (block < blocks), block.like(0), block.like(1)))
                with b.when(wrong.value.ne(0)):
                    status.store(sequence + 1)
                with b.when(wrong.value.eq(0)), b.loop(first, end) as token:
                    position = past + token - first
                    own = table.load(sequence * W + position // L).to(I64) * L + position % L
                    slot = b.buffer(5, kinds[3]).load(token).to(I64) if len(kinds) > 3 else own
                    with b.when(slot >= blocks * L):
                        status.store(sequence + 1)
                    slot = b.select(slot < blocks * L, slot, slot.like(-1))
                    for place, word in zip((_SEQUENCE, _POSITION, _SLOT, _KEYS), (sequence, position, slot, total), strict=True):
                        numbers.store(word, token * NUMBERS + place)


def write_pages(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers the cache as it was, as it will be. Parameters: elements of a block; a task is a block."""
    with module.kernel(symbol) as b:
        size, old, new = b.param(0), b.buffer(0, kind), b.buffer(1, kind)
        with b.when(old.ne(new)):
            for i, span in b.vectors(b.begin * size, b.end * size, kind):
                new.store(old.load(i, span), i, span)


def write_new_rows(module: Module, symbol: str, rotation: Rotation, kind: Type = F32, *, has_slots: bool) -> None:
    """Write the kernel `symbol`: buffers rows, cosines and sines [positions][half], numbers of tokens, the cache or the result.

    Parameters: heads, D, half, how many elements of a head lie before those that are rotated, from one token of the rows to the
    next. A task is a token; it goes to its slot, or to its own place where `has_slots` is False. The result is of `kind`.
    """
    with module.kernel(symbol) as b:
        heads, D, half, before, from_token = (b.param(place) for place in range(5))
        numbers = b.buffer(3, I64)
        with b.loop(b.begin, b.end) as token:
            position, slot = (numbers.load(token * NUMBERS + place) for place in (_POSITION, _SLOT))
            place = slot if has_slots else token
            with b.when((position >= 0) & (place >= 0)), b.loop(0, heads) as head:
                source = b.buffer(0, F32).at(token * from_token + head * D)
                result = b.buffer(4, kind).at((place * heads + head) * D)
                for i, span in b.vectors(0, before, F32):
                    number = source.load(i, span)
                    result.store(to_narrow(b, number, kind) if kind.is_narrow else number, i, span)
                write_row(b, source.at(before), result.at(before), position, D - before, half, rotation, (1, 2))


_Q, _K, _V, _Y, _PARTS, _NUMBERS, _TABLE, _SINKS = range(8)
"""The buffers of the last kernel, the sinks (N) only where there are."""
_LENGTH, _WIDTH = 0, 1
"""Its parameters behind those of `RowAttentionParams`: L and W."""


def write_paged(module: Module, symbol: str, shape: AttentionShape, table: Type, kind: Type = F32) -> None:
    """Write the kernel `symbol`: buffers queries, keys, values, result, sums, numbers of tokens, table [B][W], sinks.

    Parameters are those of `RowAttentionParams`, where strides of batches are those of tokens, then of the scale, L and W. A task
    is a head of a token. Keys and values are of `kind`, the others float32.
    """
    scores = write_scores(module, f"{symbol}_scores", shape, kind)
    values = write_values(module, f"{symbol}_values", 1, kind)
    with module.kernel(symbol) as b:
        M, group, Dv = (row_param(b, name) for name in ("M", "group", "Dv"))
        room = b.stack(F32, PIECE, align=64)
        heads, numbers = M * group, b.buffer(_NUMBERS, I64)
        with b.loop(b.begin, b.end) as task:
            token, head = task // heads, task % heads
            sequence, position, _, total = (numbers.load(token * NUMBERS + place) for place in range(NUMBERS))
            high = b.min(position + 1, total) if shape.is_causal else total
            low = b.max(position + 1 - row_param(b, "window"), 0)
            y = b.buffer(_Y, F32).at(token * row_param(b, "y_batch") + head * row_param(b, "y_head"))
            for d, span in b.vectors(0, Dv, F32):
                y.store(0.0, d, span)
            greatest, sum_ = b.variable(b.const(F32, -math.inf)), b.variable(b.const(F32, 0.0))
            part = b.buffer(_PARTS, F32).at(task * (Dv + STATISTICS))
            q = b.buffer(_Q, F32).at(token * row_param(b, "q_batch") + head * row_param(b, "q_head"))
            L, W = (further_param(b, place) for place in (_LENGTH, _WIDTH))
            with b.loop(low // L, (high + L - 1) // L) as page:
                block = b.buffer(_TABLE, table).load(sequence * W + page).to(I64)
                k, v = (
                    b.buffer(buffer, kind).at(block * row_param(b, f"{name}_batch") + head // group * row_param(b, f"{name}_head"))
                    for buffer, name in ((_K, "k"), (_V, "v"))
                )
                first = page * L
                with b.loop(b.max(low - first, 0), b.min(high - first, L), PIECE) as begin:
                    end = b.min(b.min(high - first, L), begin + PIECE)
                    b.call_part(scores, q, k, q, room, part.at(Dv), begin, end, begin, end)
                    b.call_part(values, v, room, part, begin, end)
                    top = b.max(greatest.value, part.load(Dv + GREATEST))
                    finite = b.select(top.eq(-math.inf), 0.0, top)
                    old = exp_of_difference(b, greatest.value, finite)
                    new = exp_of_difference(b, part.load(Dv + GREATEST), finite)
                    sum_.set(b.fma(sum_.value, old, new * part.load(Dv + SUM)))
                    greatest.set(top)
                    for d, span in b.vectors(0, Dv, F32):
                        factors = (old, new) if span.lanes == 1 else (old.splat(span.lanes), new.splat(span.lanes))
                        y.store(b.fma(y.load(d, span), factors[0], part.load(d, span) * factors[1]), d, span)
            whole = sum_.value
            if shape.has_sink:
                whole = sum_with_sink(b, whole, greatest.value, b.buffer(_SINKS, F32).load(head))
            inverse = inverse_of(b, whole)
            for d, span in b.vectors(0, Dv, F32):
                y.store(y.load(d, span) * inverse, d, span)
