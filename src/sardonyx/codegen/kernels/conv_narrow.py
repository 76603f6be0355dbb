"""Convolution into few output channels over NHWC data: vectors lie along the input's channels instead.

Where there are three output channels, vectors along them would be nearly empty. So each place and output channel has a vector of
partial sums, one for every lane of the input's channels, which are folded at the end:

    8 places x 3 output channels = 24 accumulators      sums[i, j] += row[i][k … k + lanes] * filters[j][k … k + lanes]

Rows, runs and padding are those of the implicit product, and so are the parameters. A lane's sum is one chain in the order of runs
and channels, and lanes are folded in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.codegen.emit.builder import Variable
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import blocks, least
from sardonyx.codegen.kernels.conv import ConvEpilogue, axes_of, cover_rows, read_params, steps_of
from sardonyx.codegen.kernels.conv_rows import MOST_ROWS, Rows, fill_table, result_of, row_table
from sardonyx.codegen.kernels.cuts import piece
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

__all__ = ["MOST_COLUMNS", "pack_narrow", "write_narrow_conv"]

INPUT, FILTERS, OUTPUT, ZEROS = range(4)
"""The first buffers of the kernel; those after them belong to the epilogue. ZEROS holds `depth` zeros, read in the padding."""

MOST_COLUMNS = 4
"""Most output channels that go this way."""


def pack_narrow(filters: Array) -> Array:
    """Return the filters (M, C, kernel…) as [M][kernel…][C]."""
    return np.ascontiguousarray(np.moveaxis(filters, 1, -1), np.float32)


def write_narrow_conv(module: Module, symbol: str, rank: int, columns: int, *, padded: bool, epilogue: ConvEpilogue | None) -> None:
    """Write the kernel `symbol` for `columns` output channels; buffers and params are those of the implicit product with one group.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        rank: the number of spatial axes.
        columns: output channels, at most MOST_COLUMNS.
        padded: whether rows may fall into padding.
        epilogue: what to store instead of the sums.
    """
    heights = _heights(module.target, columns)
    tiles = {height: _write_tile(module, f"{symbol}_{height}", rank, height, columns, padded, epilogue) for height in heights}
    with module.kernel(symbol) as b:
        p = read_params(b)
        table = row_table(b, rank)
        with b.loop(b.begin, b.end) as task:
            top, bottom = piece(b, task, p["pieces_rows"], p["rows"], p["unit_rows"])
            fill_table(b, table, steps_of(p), axes_of(b, rank), top, bottom, b.const(I64, 0))
            for height, (first, last) in cover_rows(heights, bottom - top):
                with b.loop(first, last, height) as m:
                    b.call_part(tiles[height], table.at(m))


def _heights(target: Target, columns: int) -> tuple[int, ...]:
    """Return the places of a tile, so that its accumulators and one vector of each filter fit the registers."""
    return max(min((target.registers - columns - 2) // columns, MOST_ROWS), 1), 1


def _write_tile(
    module: Module, symbol: str, rank: int, height: int, columns: int, padded: bool, epilogue: ConvEpilogue | None
) -> Kernel:
    """Write all output channels of some places."""
    lanes = module.target.lanes(32)
    with module.part(symbol, Address(I64)) as b:
        table = b.addresses[0]
        p = read_params(b)
        filters, depth = b.buffer(FILTERS, F32), p["depth"]
        rows = Rows(b, table, height, axes_of(b, rank), b.buffer(INPUT, F32), b.buffer(ZEROS, F32) if padded else None)
        sums = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in range(height * columns)]
        with b.loop(0, p["runs"]) as run:
            pointers = rows.at(run, b.const(I64, 0))
            weights = [filters.at((p["runs"] * column + run) * depth) for column in range(columns)]
            whole = depth & -lanes
            with b.loop(0, whole, lanes) as k:
                _add_products(b, pointers, weights, sums, k, Span(lanes))
            with b.when(whole < depth):
                _add_products(b, pointers, weights, sums, whole, Span(lanes, b.tail_mask(depth - whole, lanes)))
        _store(b, table, sums, columns, epilogue)
    return b


def _add_products(
    b: Kernel, rows: Sequence[Pointer], filters: Sequence[Pointer], sums: Sequence[Variable], k: Register, span: Span
) -> None:
    weights = [filter_.load(k, span) for filter_ in filters]
    for i, row in enumerate(rows):
        x = row.load(k, span)
        for j, weight in enumerate(weights):
            total = sums[i * len(filters) + j]
            total.set(b.fma(x, weight, total.value))


def _store(b: Kernel, table: Pointer, sums: Sequence[Variable], columns: int, epilogue: ConvEpilogue | None) -> None:
    """Fold the lanes of every sum, then store row by row."""
    lanes, output = sums[0].type.lanes, b.buffer(OUTPUT, F32)
    folded = b.stack(F32, len(sums) + lanes, align=64)
    for number, total in enumerate(sums):
        folded.store(b.sum_lanes(total.value), number)
    step = min(lanes, 1 << (columns - 1).bit_length())
    with b.loop(0, len(sums) // columns) as row, b.loop(0, blocks(b.const(I64, columns), b.const(I64, step)), 1) as part:
        column = part * step
        left = least(b, b.const(I64, columns) - column, b.const(I64, step))
        span = Span(step, b.tail_mask(left, step) if step > 1 else None)
        place = result_of(table, row) + column
        value = folded.load(row * columns + column, step)
        output.store(epilogue(b, value, place, column, span) if epilogue else value, place, span)
