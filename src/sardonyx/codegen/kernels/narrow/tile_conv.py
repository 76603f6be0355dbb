"""Convolution of bfloat16 over channels-last data in matrix tiles, with float32 sums and an epilogue in the store.

    for each run (a tap, or taps that lie side by side), 16 words of it at a time:
        16 places: 64 bytes of each are copied side by side, zeros behind the last of a run      one tile of rows
        the panel of filters at this run                                                         four tiles, one after the other
        sums[16, 64] += rows x filters

Elements of input and filters are words of two bfloat16. Filters have whole tiles of words for each run, filled up with zeros. Rows,
runs and parameters are those of the implicit product (`conv`), whose blocks of runs and chains have no meaning here: sums stay in
tiles over the whole inner dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.matrix_tiles import TILE, Tiles, configured_tiles, tile_dot
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import BF16, F32, I64, PTR
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import blocks, least
from sardonyx.codegen.kernels.conv import (
    FILTERS,
    INPUT,
    OUTPUT,
    ZEROS,
    ConvEpilogue,
    axes_of,
    conv_tiling,
    read_params,
    steps_of,
    task_of,
)
from sardonyx.codegen.kernels.conv_rows import MOST_ROWS, Rows, fill_table, result_of, row_table

__all__ = ["write_tile_conv"]

_ROWS, _FIRST_FILTERS = 4, 6
"""The tile of rows, and the first of those of filters; those of sums come before them."""

_WORD_BYTES = 4


def write_tile_conv(
    module: Module, symbol: str, rank: int, *, padded: bool, epilogue: ConvEpilogue | None = None, widths: Sequence[int] = ()
) -> None:
    """Write the kernel `symbol`: buffers input, packed filters, output, zeros and those of the epilogue; params as in ConvParams.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        rank: the number of spatial axes.
        padded: whether rows may fall into padding.
        epilogue: what to store instead of the sums.
        widths: vectors of the panels that it will be given, as `widths_for` the columns; all, where they are not known.
    """
    shape = conv_tiling(module.target)
    parts = {
        vectors: _write_rows(module, f"{symbol}_{vectors}", rank, vectors, epilogue, padded=padded)
        for vectors in widths or shape.heights
    }
    with module.kernel(symbol) as b, configured_tiles(module, b):
        p, table = read_params(b), row_table(b, rank)
        length = p["runs"] * _whole_words(p["depth"])
        panels = blocks(p["columns"], b.const(I64, shape.panel))
        with b.loop(b.begin, b.end) as task:
            group, (top, bottom), (left, right) = task_of(b, task, shape.panel)
            fill_table(b, table, steps_of(p), axes_of(b, rank), top, bottom, group)
            filters = b.buffer(FILTERS, F32).at(group * panels * length * shape.panel)
            with b.loop(left, right, shape.panel) as n:
                vectors = least(b, blocks(right - n, b.const(I64, shape.lanes)), b.const(I64, shape.vectors))
                with b.switch(vectors) as switch:
                    for width, part in parts.items():
                        with switch.case(width), b.loop(0, bottom - top, TILE) as m:
                            count = least(b, bottom - top - m, b.const(I64, TILE))
                            b.call_part(part, table.at(m), filters.at(n * length), group, n, count)


def _whole_words(depth: Register) -> Register:
    """Return how many words of a run the filters have: whole tiles."""
    return (depth + (TILE - 1)) // TILE * TILE


def _write_rows(module: Module, symbol: str, rank: int, vectors: int, epilogue: ConvEpilogue | None, *, padded: bool) -> Kernel:
    """Write up to 16 places of the output and a panel of its channels."""
    shape, dot = conv_tiling(module.target), tile_dot(BF16, BF16)
    lanes, pitch = shape.lanes, shape.panel * _WORD_BYTES
    with module.part(symbol, Address(I64), Address(F32), I64, I64, I64) as b:
        table, panel = b.addresses
        group, n, count = b.arguments
        p, tiles, zeros = read_params(b), Tiles(b), b.buffer(ZEROS, F32) if padded else None
        halves = [
            Rows(b, table.at(first), MOST_ROWS, axes_of(b, rank), b.buffer(INPUT, F32), zeros)
            for first in range(0, TILE, MOST_ROWS)
        ]
        starts, copied = b.stack(I64, TILE, align=64), b.stack(F32, TILE * TILE, align=64)
        wide, narrow = b.const(I64, pitch), b.const(I64, TILE * _WORD_BYTES)
        for j in range(vectors):
            tiles.zero(j)
        with b.loop(0, p["runs"]) as run:
            for row, pointer in enumerate(pointer for rows in halves for pointer in rows.at(run, b.const(I64, 0))):
                starts.store(pointer.to(I64), row)
            with b.loop(0, p["depth"], TILE) as k:
                span = Span(TILE, b.tail_mask(b.min(p["depth"] - k, TILE), TILE))
                with b.loop(0, count) as i:
                    source = Pointer(b, starts.load(i).to(PTR).ref, F32)
                    copied.store(source.load(k, span), i * TILE, TILE)
                tiles.load(_ROWS, copied, narrow)
                here = panel.at((run * _whole_words(p["depth"]) + k) * shape.panel)
                for j in range(vectors):
                    tiles.load(_FIRST_FILTERS + j % 2, here.at(j * TILE), wide)
                    tiles.multiply(dot, j, _ROWS, _FIRST_FILTERS + j % 2)
        sums = b.stack(F32, TILE * shape.panel, align=64)
        for j in range(vectors):
            tiles.store(j, sums.at(j * TILE), wide)
        left = least(b, p["columns"] - n - (vectors - 1) * lanes, b.const(I64, lanes))
        spans = [Span(lanes)] * (vectors - 1) + [Span(lanes, b.tail_mask(left, lanes))]
        output, channel = b.buffer(OUTPUT, F32), group * p["columns"] + n
        with b.loop(0, count) as i:
            start = result_of(table, i) + n
            for j, span in enumerate(spans):
                total = sums.load(i * shape.panel + j * lanes, lanes)
                place = start + j * lanes
                output.store(total if epilogue is None else epilogue(b, total, place, channel + j * lanes, span), place, span)
    return b
