"""Keys and values as integers of 8 or 4 bits, each of which a scale makes a number: what a quantized cache of attention holds.

    I8    round(x / scale)                     U8    round(x / scale) + 8, two in a byte, the even element in the low half

    write_append_codes   past, new rows, scales, (past, total)   ->  the cache: rows of the past, then the new ones, then zeros
    write_scaled_rows    rows, scales                            ->  rows times scales
    write_wide_codes     rows of the cache                       ->  their integers in float32

Scales lie as [M][D]. What reads the cache does so without them: with a query times the scales of keys the products are those of the
numbers, and the result times the scales of values is that of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.narrow import from_narrow
from sardonyx.codegen.emit.saturate import round_clipped
from sardonyx.codegen.emit.types import F32, I8, I32, I64, U8, U32, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.attention.group_query import PAST, copy_former

__all__ = ["load_wide", "stored_elements", "stored_name", "write_append_codes", "write_scaled_rows", "write_wide_codes"]

_HALF_RANGE = 8
"""The code of 0 among those of 4 bits."""


def stored_name(kind: Type) -> str:
    """Return how keys and values are stored, in the names of kernels."""
    return {I8: "q8", U8: "q4"}.get(kind, kind.name)


def stored_elements(size: Register, kind: Type) -> Register:
    """Return how many elements of `kind` a row of `size` numbers takes."""
    return size // 2 if kind == U8 else size


def load_wide(b: Function, row: Pointer, place: Register, span: Span) -> Register:
    """Return numbers of a row from `place` on, which is even, in float32: of a float of 32 or 16 bits, or codes without a scale."""
    kind = row.element
    if kind == U8:
        half = Span(span.lanes // 2, None if span.mask is None else span.mask.shuffle(range(0, span.lanes, 2)))
        pairs = row.load(place // 2, half).to(U32)
        both = (pairs & 15).shuffle([lane // 2 + lane % 2 * half.lanes for lane in range(span.lanes)], pairs >> 4)
        return both.bits_as(I32).to(F32) - _HALF_RANGE
    loaded = row.load(place, span)
    if kind == I8:
        return loaded.to(I32).to(F32)
    return from_narrow(b, loaded) if kind.is_narrow else loaded


def write_append_codes(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers past [B][M][P][row], new rows, scales [M][D], (past, total), cache [B][M][C][row].

    A row is D of I8, or D / 2 of U8. Parameters: M, S, P, C, D, from one batch, head, row of the new rows to the next, and whether
    the past is copied and what follows the new rows is cleared, as in `write_append`. A task is a head of the cache.
    """
    with module.kernel(symbol) as b:
        M, S, P, C, D, from_batch, from_head, from_row, copies = (b.param(place) for place in range(9))
        row = stored_elements(D, kind)
        with b.loop(b.begin, b.end) as task:
            batch, head = task // M, task % M
            past = b.buffer(3, I64).load(batch * 2 + PAST)
            cache = b.buffer(4, kind).at(task * C * row)
            copy_former(b, b.buffer(0, kind).at(task * P * row), cache, (past * row, (past + S) * row, C * row), copies)
            source, scales = b.buffer(1, F32).at(batch * from_batch + head * from_head), b.buffer(2, F32).at(head * D)
            with b.loop(0, S) as new:
                _encode(b, source.at(new * from_row), scales, cache.at((past + new) * row), D)


def _encode(b: Kernel, source: Pointer, scales: Pointer, result: Pointer, D: Register) -> None:
    """Write the codes of D numbers."""
    limit = _HALF_RANGE if result.element == U8 else 128
    for i, span in _spans(b, D):
        quotient = source.load(i, span) / scales.load(i, span)
        zero, least, greatest = (b.const(kind.vector(span.lanes), number) for kind, number in _limits(limit))
        code = round_clipped(b, quotient, zero, least, greatest)
        if result.element == I8:
            result.store(code.to(I8), i, span)
            continue
        codes = (code + limit).bits_as(U32)
        low, high = (codes.shuffle(range(first, span.lanes, 2)) for first in (0, 1))
        half = Span(span.lanes // 2, None if span.mask is None else span.mask.shuffle(range(0, span.lanes, 2)))
        result.store((low | (high << 4)).to(U8), i // 2, half)


def _limits(limit: int) -> tuple[tuple[Type, int], tuple[Type, float], tuple[Type, float]]:
    return (I32, 0), (F32, -float(limit)), (F32, float(limit - 1))


def _spans(b: Kernel, end: Register) -> Iterator[tuple[Register, Span]]:
    """Walk [0, end) by vectors, the last one under a mask."""
    lanes = b.lanes(F32)
    whole = end & -lanes
    with b.loop(0, whole, lanes) as i:
        yield i, Span(lanes)
    with b.when(whole < end):
        yield whole, Span(lanes, b.tail_mask(end - whole, lanes))


def write_scaled_rows(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers rows, scales [M][D], result [rows][H][D].

    Parameters: H, H / M, D, rows of a batch, from one batch, head, row of the rows to the next. A task is all heads of a row.
    """
    with module.kernel(symbol) as b:
        H, group, D, S, from_batch, from_head, from_row = (b.param(place) for place in range(7))
        with b.loop(b.begin, b.end) as task, b.loop(0, H) as head:
            source = b.buffer(0, F32).at(task // S * from_batch + task % S * from_row + head * from_head)
            scales, result = b.buffer(1, F32).at(head // group * D), b.buffer(2, F32).at((task * H + head) * D)
            for i, span in b.vectors(0, D, F32):
                result.store(source.load(i, span) * scales.load(i, span), i, span)


def write_wide_codes(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers rows of codes, rows in float32. Parameters: D; a task is a row."""
    with module.kernel(symbol) as b:
        D = b.param(0)
        with b.loop(b.begin, b.end) as task:
            source, result = b.buffer(0, kind).at(task * stored_elements(D, kind)), b.buffer(1, F32).at(task * D)
            for i, span in _spans(b, D):
                result.store(load_wide(b, source, i, span), i, span)
