"""Rows of a convolution of 8-bit integers, copied side by side and widened to 16 bits for products of pairs (`pairs`).

    row of the output    run 0: depth numbers, zeros up to a whole four | run 1 … | the last run

Whole rows are widened, as many as WIDE_ELEMENTS hold: each number is widened once for all columns, and a tile's loop goes through
all runs at once. Rows in the padding are copied from where zero points lie (`conv_rows.Rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sardonyx.codegen.emit.dots import dot_pairs, has_pairs
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import I16, I32, I64, U8, U16, U32, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.conv import read_params
from sardonyx.codegen.kernels.conv_rows import MOST_ROWS, Rows
from sardonyx.codegen.target import Target

__all__ = ["WIDE_ELEMENTS", "last_bytes", "rows_at_once", "wide_pitch", "widens_rows", "write_wide_row_sum", "write_widen"]

WIDE_ELEMENTS = 1 << 16
"""Numbers of 16 bits that a task keeps on its stack: 128 KiB."""


_SPACE = 32
"""Numbers between two rows: a cache line."""


def widens_rows(target: Target, depth: int, runs: int) -> bool:
    """Return whether the target multiplies pairs, and MOST_ROWS rows of so many runs fit when they are widened."""
    return has_pairs(target) and (runs * -(-depth // 4) * 4 + _SPACE) * MOST_ROWS <= WIDE_ELEMENTS


def wide_pitch(p: Mapping[str, Register]) -> Register:
    """Return how far widened rows lie apart: an odd number of cache lines where rows are a power of two, which would share sets."""
    return p["runs"] * ((p["depth"] + 3) // 4 * 4) + _SPACE


def rows_at_once(b: Kernel, pitch: Register, height: int) -> Register:
    """Return how many rows, `pitch` numbers each, are widened together: a multiple of a tile's `height`, at most MOST_ROWS."""
    return b.max(b.const(I64, WIDE_ELEMENTS) // pitch // height * height, height)


def last_bytes(row: Pointer, count: int) -> Register:
    """Return the last bytes of a run, at most three, as the first ones of four; nothing after them is read."""
    if count == 1:
        return row.load().to(U32)
    both = row.of(U16).load(align=1).to(U32)
    return both if count == 2 else both | (row.load(2).to(U32) << 16)


def write_widen(
    module: Module, symbol: str, height: int, element: Type, rest: int, rows_of: Callable[[Kernel, Pointer], Rows]
) -> Kernel:
    """Write what copies `height` rows: addresses of their places in the table and of the widened rows.

    Args:
        module: where to write.
        symbol: its name.
        height: how many rows.
        element: U8 or I8, the numbers.
        rest: elements of a run after the last four.
        rows_of: gives the rows at a place in the table.
    """
    with module.part(symbol, Address(I64), Address(I16)) as b:
        table, wide = b.addresses
        p, rows, lanes = read_params(b), rows_of(b, table), module.target.lanes(16)
        length, depth = (p["depth"] + 3) // 4 * 4, p["depth"]
        pitch = wide_pitch(p)
        with b.loop(0, p["runs"]) as run:
            pointers = rows.at(run, b.const(I64, 0))
            places = [wide.at(i * pitch + run * length) for i in range(height)]

            def copy(first: Register, end: Register, count: int, pointers: list[Pointer], places: list[Pointer]) -> None:
                with b.loop(first, end, count) as k:
                    for pointer, place in zip(pointers, places, strict=True):
                        place.store(pointer.load(k, count).to(I16), k, count)

            whole, fours = depth // lanes * lanes, depth // 4 * 4
            copy(b.const(I64, 0), whole, lanes, pointers, places)
            copy(whole, fours, 4, pointers, places)
            if rest:
                for pointer, place in zip(pointers, places, strict=True):
                    four = last_bytes(pointer.of(U8).at(fours), rest)
                    place.store(four.bits_as(element.vector(4)).to(I16), fours, 4)
    return b


def write_wide_row_sum(module: Module, symbol: str) -> Kernel:
    """Write what adds up the numbers of a widened row: its address, where the sum goes, and what it is multiplied by."""
    lanes = module.target.lanes(16)
    with module.part(symbol, Address(I16), Address(I32), I32) as b:
        wide, result = b.addresses
        (factor,) = b.arguments
        p = read_params(b)
        length = p["runs"] * ((p["depth"] + 3) // 4 * 4)
        whole = length // lanes * lanes
        total, rest = b.variable(b.const(I32.vector(lanes // 2), 0)), b.variable(b.const(I32.vector(4), 0))
        ones = b.const(I16.vector(lanes), 1).bits_as(total.value.type)
        with b.loop(0, whole, lanes) as k:
            total.set(dot_pairs(b, total.value, wide.load(k, lanes).bits_as(total.value.type), ones))
        with b.loop(whole, length, 4) as k:
            rest.add(wide.load(k, 4).to(I32))
        result.store((b.sum_lanes(total.value) + b.sum_lanes(rest.value)) * factor)
    return b
