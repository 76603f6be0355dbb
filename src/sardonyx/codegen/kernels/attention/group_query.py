"""What GroupQueryAttention does around attention: lengths of sequences, rotated rows, the cache, and which keys a query sees.

    write_lengths    lengths of sequences           ->  (past, total) for each batch, checked
    write_ends       ends of keys                   ->  the same of the standard's Attention
    write_append     past, new rows, (past, total)  ->  the cache: rows of the past, then the new ones, then zeros
    write_rotate     rows, (past, total)            ->  rows, rotated by the angles of their positions
    write_seen       (past, total)                  ->  0 where a query sees a key, -inf elsewhere, in panels of queries

A row s of a batch stands at position past + s. The angles of a position are rows of two tables.
"""

from __future__ import annotations

import enum
import math

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.narrow import to_narrow
from sardonyx.codegen.emit.types import F32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span

__all__ = [
    "PAST",
    "Rotation",
    "copy_former",
    "write_append",
    "write_ends",
    "write_lengths",
    "write_rotate",
    "write_row",
    "write_seen",
]

PAST, TOTAL = 0, 1
"""The two numbers of a batch."""


class Rotation(enum.Enum):
    """Which elements of a row are a pair."""

    NONE = "plain"
    """None: rows are copied."""
    HALVES = "halves"
    """Element i of the first half and of the second."""
    NEIGHBOURS = "neighbours"
    """Elements 2 i and 2 i + 1."""


def write_lengths(module: Module, symbol: str, kinds: tuple[Type, Type]) -> None:
    """Write the kernel `symbol`: buffers lengths - 1 [B], the longest length [1], (past, total) [B][2], the status word.

    Parameters: B, new rows S, rows of the past P, of the cache C, positions that there are angles for, how many keys a bias is for,
    which must be the longest length, or -1 without a bias. A length that does not fit these is reported, and both of its numbers
    are 0 then. Where the longest is S, it is a first run, and there is no past.
    """
    with module.kernel(symbol) as b:
        B, S, P, C, positions, biased = (b.param(place) for place in range(6))
        longest = b.buffer(1, kinds[1]).load().to(I64)
        with b.loop(b.begin, b.end), b.loop(0, B) as batch:
            total = b.buffer(0, kinds[0]).load(batch).to(I64) + 1
            past = b.select(longest.eq(S), b.const(I64, 0), total - S)
            end = past + S
            fits = (total > 0) & (total <= longest) & (longest >= S) & (past >= 0) & (past <= P) & (end <= C) & (end <= positions)
            fits = fits & ((biased < 0) | biased.eq(longest))
            pair = b.buffer(2, I64).at(batch * 2)
            pair.store(b.select(fits, past, past.like(0)), PAST)
            pair.store(b.select(fits, total, total.like(0)), TOTAL)
            with b.when(fits.eq(False)):
                b.buffer(3, I64).store(batch + 1)


def write_ends(module: Module, symbol: str, kind: Type | None = None) -> None:
    """Write the kernel `symbol`: buffers the number of keys of each batch [B], (past, total) [B][2], the status word.

    Parameters: B, queries S, keys T, what `past` is. Where it is less than 0 the last query stands at the last key. Without a
    `kind` all batches have T keys. A number that is no number of keys is reported, and both are 0 then.
    """
    with module.kernel(symbol) as b:
        B, S, T, known = (b.param(place) for place in range(4))
        with b.loop(b.begin, b.end), b.loop(0, B) as batch:
            total = T if kind is None else b.buffer(0, kind).load(batch).to(I64)
            fits = (total >= 0) & (total <= T)
            past = b.select(known < 0, total - S, known)
            pair = b.buffer(1, I64).at(batch * 2)
            pair.store(b.select(fits, past, past.like(0)), PAST)
            pair.store(b.select(fits, total, total.like(0)), TOTAL)
            with b.when(fits.eq(False)):
                b.buffer(2, I64).store(batch + 1)


def write_append(module: Module, symbol: str, rotation: Rotation, kind: Type = F32) -> None:
    """Write the kernel `symbol`: buffers past [B][M][P][D], new rows, cosines and sines [positions][half], (past, total), cache.

    Past and cache are of `kind`, float32 or a float of 16 bits, the others float32.

    Parameters: M, S, P, C, D, half, from one batch, head, row of the new rows to the next, and whether the past is copied and what
    follows the new rows is cleared, which is not done where the past is the cache itself. A task is a head of the cache
    [B][M][C][D].
    """
    with module.kernel(symbol) as b:
        M, S, P, C, D, half, from_batch, from_head, from_row, copies = (b.param(place) for place in range(10))
        with b.loop(b.begin, b.end) as task:
            batch, head = task // M, task % M
            past = b.buffer(4, I64).load(batch * 2 + PAST)
            cache, old = b.buffer(5, kind).at(task * C * D), b.buffer(0, kind).at(task * P * D)
            copy_former(b, old, cache, (past * D, (past + S) * D, C * D), copies)
            source = b.buffer(1, F32).at(batch * from_batch + head * from_head)
            with b.loop(0, S) as row:
                write_row(b, source.at(row * from_row), cache.at((past + row) * D), past + row, D, half, rotation)


def copy_former(b: Kernel, old: Pointer, cache: Pointer, ends: tuple[Register, Register, Register], copies: Register) -> None:
    """Copy rows of the past into the cache, and clear it behind the new ones, unless they lie there or it is not to be done.

    `ends` are where the past ends, the new rows, and the cache, in elements.
    """
    past, new, end = ends
    with b.when(copies.ne(0) & old.ne(cache)):
        for i, span in b.vectors(0, past, cache.element):
            cache.store(old.load(i, span), i, span)
        for i, span in b.vectors(new, end, cache.element):
            cache.store(0.0, i, span)


def write_rotate(module: Module, symbol: str, rotation: Rotation) -> None:
    """Write the kernel `symbol`: buffers none, rows, cosines and sines [positions][half], (past, total), result [B][S][H][D].

    Parameters: H, S, 0, 0, D, half, and from one batch, head, row of the rows to the next. A task is all heads of a row.
    """
    with module.kernel(symbol) as b:
        H, S, _, _, D, half, from_batch, from_head, from_row = (b.param(place) for place in range(9))
        with b.loop(b.begin, b.end) as task:
            batch, row = task // S, task % S
            position = b.buffer(4, I64).load(batch * 2 + PAST) + row
            source, result = b.buffer(1, F32).at(batch * from_batch + row * from_row), b.buffer(5, F32).at(task * H * D)
            with b.loop(0, H) as head:
                write_row(b, source.at(head * from_head), result.at(head * D), position, D, half, rotation)


def write_row(
    b: Kernel,
    source: Pointer,
    result: Pointer,
    position: Register,
    D: Register,
    half: Register,
    rotation: Rotation,
    tables: tuple[int, int] = (2, 3),
) -> None:
    """Write D elements, the first 2 x half of them rotated by the row at `position` of two buffers, cosines and sines."""
    if rotation is Rotation.NONE:
        _copy(b, source, result, b.const(I64, 0), D)
        return
    cosines, sines = (b.buffer(index, F32).at(position * half) for index in tables)
    for i, span in b.vectors(0, half, F32, lanes=None if rotation is Rotation.HALVES else 1):
        left, right = (i, i + half) if rotation is Rotation.HALVES else (i * 2, i * 2 + 1)
        x, y, c, s = source.load(left, span), source.load(right, span), cosines.load(i, span), sines.load(i, span)
        _store(b, x * c - y * s, result, left, span)
        _store(b, y * c + x * s, result, right, span)
    _copy(b, source, result, half * 2, D)


def _copy(b: Function, source: Pointer, result: Pointer, begin: Register, end: Register) -> None:
    for i, span in b.vectors(begin, end, F32):
        _store(b, source.load(i, span), result, i, span)


def _store(b: Function, value: Register, result: Pointer, place: Register, span: Span) -> None:
    """Store float32 numbers as the type of the result."""
    result.store(to_narrow(b, value, result.element) if result.element.is_narrow else value, place, span)


def write_seen(module: Module, symbol: str, width: int, *, has_mask: bool = False) -> None:
    """Write the kernel `symbol`: buffers (past, total), panels of a mask if there is one, panels [B][H][S / width][T][width].

    A key that a query sees gets 0, or the number of the mask. Parameters: S, T, the window (keys that a query sees, itself among
    them), H, from one batch and one head of the mask to the next, 0 where they share one, and how many later keys a query sees. A
    task is a panel of `width` queries.
    """
    lanes = min(module.target.lanes(32), width)
    with module.kernel(symbol) as b:
        S, T, window, H, from_batch, from_head, ahead = (b.param(place) for place in range(7))
        panels = (S + (width - 1)) // width
        with b.loop(b.begin, b.end) as task:
            place, number = task // panels, task % panels
            batch, head = place // H, place % H
            past, total = (b.buffer(0, I64).load(batch * 2 + index) for index in (PAST, TOTAL))
            first = past + number * width + ahead
            mask = b.buffer(1, F32).at(batch * from_batch + head * from_head + number * T * width)
            panel = b.buffer(1 + has_mask, F32).at(task * T * width)
            with b.loop(0, T) as key:
                for j in range(0, width, lanes):
                    position = b.iota(I64, lanes) + (first + j).splat(lanes)
                    at = key.splat(lanes)
                    sees = (at <= position) & (at > position - window.splat(lanes)) & (at < total.splat(lanes))
                    hidden = b.const(F32.vector(lanes), -math.inf)
                    shown = mask.load(key * width + j, lanes) if has_mask else hidden.like(0.0)
                    panel.store(b.select(sees, shown, hidden), key * width + j, lanes)
