"""Convolution of 8-bit integers over channels-last data: the implicit product of `conv` made of dot products of four bytes.

    for each run (a tap, or taps that lie side by side):       weights: [group][panel][run][depth / 4][panel width][4]
        pointers of the tile's rows at this run                a row that falls into the padding reads zero points instead
        sums[i, j] += dot(row[i][4k … 4k + 3], panel[k, j])    the last bytes of a run are filled up with zeros

Sums are those of the bytes as they are, exact in int32 (they wrap around). With zero points zx of the input and zw of the weights,

    sum (x - zx)(w - zw)  =  sum x w  -  zx sum w  +  K zx zw  -  zw sum x
                                         └── OFFSETS, one for each column ──┘    └── FACTORS times the sum of a row

Dot products take unsigned bytes on one side and signed ones on the other. The input is taken as it is; the weights are stored with
the other sign, 128 more or less, and so are their zero points. Where these are all 0 no sums of rows are needed.

A tile goes through the whole inner dimension: nothing but results is written. Rows, runs and parameters are those of `conv`.

Where the processor multiplies pairs of 16 bits instead (`quantized.pairs`), rows are widened to these, as many as fit, before the
panels are gone through; rows too long for that are widened as they are multiplied.

Where the processor has matrix tiles, 16 rows and a panel are multiplied in those: 64 bytes of each row at a time are copied side by
side, zeros behind the last of a run, and four tiles of the panel are read for four products.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.dots import dot4, dot_pairs, has_dot4, has_pairs
from sardonyx.codegen.emit.matrix_tiles import TILE, Tiles, configured_tiles, has_byte_tiles, tile_dot
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import I8, I16, I32, I64, PTR, U8, U32, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import blocks, least
from sardonyx.codegen.kernels.conv import (
    ConvEpilogue,
    ConvTiling,
    axes_of,
    conv_tiling,
    cover_rows,
    read_params,
    steps_of,
    task_of,
)
from sardonyx.codegen.kernels.conv_rows import BLOCK_ROWS, MOST_ROWS, Rows, fill_table, row_table
from sardonyx.codegen.kernels.quantized.dot_tile import DotTile
from sardonyx.codegen.kernels.quantized.pairs import multiply_pairs
from sardonyx.codegen.kernels.quantized.wide_rows import (
    WIDE_ELEMENTS,
    last_bytes,
    rows_at_once,
    wide_pitch,
    write_wide_row_sum,
    write_widen,
)
from sardonyx.codegen.kernels.tiles import Ahead
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "FIRST_OPERAND",
    "DotConvCode",
    "dot_tiling",
    "dot_widths",
    "fold_lanes",
    "write_dot_conv",
]

INPUT, FILTERS, OUTPUT, BORDER, OFFSETS, FACTORS, FIRST_OPERAND = range(7)
"""The buffers of the kernel; those from FIRST_OPERAND on belong to the epilogue.

BORDER holds `depth` zero points of the input, read in the padding; OFFSETS and FACTORS are int32, as `offset_places` says.
"""


@dataclass(frozen=True, slots=True)
class DotConvCode:
    """What the code of the kernel depends on, besides its epilogue."""

    rank: int
    """How many spatial axes."""
    widths: tuple[int, ...]
    """The tiles of columns that it is written for, as `dot_widths` gives them."""
    padded: bool
    """Whether rows may fall into the padding."""
    signed: bool
    """Whether the input is int8; uint8 else."""
    rest: int
    """Elements of a run after the last four: its depth modulo 4."""
    factors: int
    """FACTORS: 0 where there are none, 1 for one that all columns share, 2 for one for each column."""
    widens: bool = False
    """Whether rows are widened before they are multiplied: `quantized.wide_rows.widens_rows`."""

    @property
    def name(self) -> str:
        """The kernel's name without target and epilogue."""
        flags = f"{'_padded' * self.padded}{'_factor' * (self.factors == 1)}{'_factors' * (self.factors == 2)}{'_w' * self.widens}"
        return f"conv{self.rank}d_{'s8u8' if self.signed else 'u8s8'}_{'_'.join(map(str, self.widths))}_r{self.rest}{flags}"


def dot_tiling(target: Target) -> ConvTiling:
    """Return the tiles that fit the registers of `target`; dot products that are made of others need more registers."""
    if has_dot4(target) or has_pairs(target):
        return conv_tiling(target)
    lanes = target.lanes(32)
    if target.registers >= 32:
        return ConvTiling(lanes, {2: (6, 4, 1), 1: (8, 4, 1)})
    return ConvTiling(lanes, {2: (3, 1), 1: (4, 1)})


def dot_widths(target: Target, columns: int) -> tuple[int, ...]:
    """Return the widths, in vectors, of the tiles that cover so many columns: those of whole panels, and of what is left."""
    shape = dot_tiling(target)
    rest = -(-(columns % shape.panel) // shape.lanes)
    return tuple(width for width in shape.heights if width == rest or (width == shape.vectors and columns >= shape.panel))


def write_dot_conv(module: Module, symbol: str, code: DotConvCode, output: Type, epilogue: ConvEpilogue | None = None) -> None:
    """Write the kernel `symbol`: buffers as above, params as in ConvParams, of `dot_tiling`.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        code: what it depends on.
        output: the type of what is stored.
        epilogue: what to store instead of the sums, which are int32.
    """
    shape = dot_tiling(module.target)
    has_tiles, write_tile = has_byte_tiles(module.target), _write_wide_tile if code.widens else _write_tile
    parts = _Parts(
        {
            (vectors, height): write_tile(module, f"{symbol}_{height}x{vectors}", code, vectors, height, output, epilogue)
            for vectors in code.widths
            for height in shape.heights[vectors]
            if not has_tiles
        },
        {
            vectors: _write_matrix_tile(module, f"{symbol}_tiles{vectors}", code, vectors, output, epilogue)
            for vectors in code.widths
            if has_tiles
        },
        {
            height: _write_row_sums(module, f"{symbol}_rows{height}", code, height)
            for height in _SUM_HEIGHTS
            if code.factors and not code.widens
        },
        {height: _write_widen(module, f"{symbol}_widen{height}", code, height) for height in _SUM_HEIGHTS if code.widens},
        write_wide_row_sum(module, f"{symbol}_sum") if code.factors and code.widens else None,
        code.factors == 1,
    )
    with module.kernel(symbol) as b, configured_tiles(module, b) if has_tiles else contextlib.nullcontext():
        p, axes = read_params(b), axes_of(b, code.rank)
        table, sums = row_table(b, code.rank), b.stack(I32, BLOCK_ROWS + MOST_ROWS, align=64)
        wide = b.stack(I16, WIDE_ELEMENTS, align=64) if code.widens else None
        with b.loop(b.begin, b.end) as task:
            group, (top, bottom), (left, right) = task_of(b, task, shape.panel)
            rows = bottom - top
            fill_table(b, table, steps_of(p), axes, top, bottom, group)
            for height, part in parts.row_sums.items():
                with b.loop(*_rows_for(height, rows), height) as m:
                    b.call_part(part, table.at(m), sums.at(m))
            write_block = _write_matrix_block if has_tiles else _write_wide_block if code.widens else _write_block
            write_block(b, shape, parts, _Block(table, sums, group, rows, left, right, wide))


_SUM_HEIGHTS = (MOST_ROWS, 1)
"""Rows that are summed at a time."""


def _rows_for(height: int, rows: Register) -> tuple[Register, Register]:
    """Return which of the rows go so many at a time, first the highest of _SUM_HEIGHTS."""
    whole = rows // MOST_ROWS * MOST_ROWS
    return (rows.like(0), whole) if height == MOST_ROWS else (whole, rows)


@dataclass(frozen=True, slots=True)
class _Parts:
    tiles: Mapping[tuple[int, int], Kernel]
    """(vectors, height) -> what computes one tile in registers."""
    matrix_tiles: Mapping[int, Kernel]
    """Vectors -> what computes 16 rows in matrix tiles, where there are such."""
    row_sums: Mapping[int, Kernel]
    """Height -> what adds up rows of the input."""
    widen: Mapping[int, Kernel]
    """Height -> what widens rows of the input."""
    wide_sum: Kernel | None
    """What adds up a widened row."""
    has_factor: bool
    """Whether it is multiplied by one number that all columns share."""


@dataclass(frozen=True, slots=True)
class _Block:
    """What one task covers."""

    table: Pointer
    sums: Pointer
    group: Register
    rows: Register
    left: Register
    right: Register
    wide: Pointer | None
    """Memory for widened rows; then the rows themselves."""


def _quads(p: Mapping[str, Register]) -> Register:
    """Return how many vectors of four rows a run has in a panel."""
    return (p["depth"] + 3) // 4


def _write_matrix_block(b: Kernel, shape: ConvTiling, parts: _Parts, block: _Block) -> None:
    """Write one block of the output in matrix tiles: panel by panel, 16 rows at a time."""
    p = read_params(b)
    length = p["runs"] * _quads(p) * 4
    columns = blocks(p["columns"], b.const(I64, shape.panel)) * shape.panel
    first = b.buffer(FILTERS, U8).at(block.group * columns * length)
    with b.loop(block.left, block.right, shape.panel) as n:
        vectors = least(b, blocks(block.right - n, b.const(I64, shape.lanes)), b.const(I64, shape.vectors))
        with b.switch(vectors) as switch:
            for width, part in parts.matrix_tiles.items():
                with switch.case(width), b.loop(0, block.rows, TILE) as m:
                    place, count = block.group * columns + n, b.min(block.rows - m, TILE)
                    addresses = (block.table.at(m), block.sums.at(m), first.at(n * length))
                    b.call_part(part, *addresses, block.group, n, place, count)


def _write_wide_block(b: Kernel, shape: ConvTiling, parts: _Parts, block: _Block) -> None:
    """Write one block of the output in registers, some rows at a time, which are widened first."""
    p = read_params(b)
    pitch, wide = wide_pitch(p), block.wide
    assert wide is not None
    most = rows_at_once(b, pitch, shape.heights[shape.vectors][0])
    with b.loop(0, block.rows, most) as first:
        rows = b.min(block.rows - first, most)
        for height, part in parts.widen.items():
            with b.loop(*_rows_for(height, rows), height) as m:
                b.call_part(part, block.table.at(first + m), wide.at(m * pitch))
        if parts.wide_sum is not None:
            factor = b.buffer(FACTORS, I32).load() if parts.has_factor else b.const(I32, 1)
            with b.loop(0, rows) as m:
                b.call_part(parts.wide_sum, wide.at(m * pitch), block.sums.at(m), factor)
        _write_block(b, shape, parts, _Block(block.table.at(first), block.sums, block.group, rows, block.left, block.right, wide))


def _write_block(b: Kernel, shape: ConvTiling, parts: _Parts, block: _Block) -> None:
    """Write one block of the output in registers: panel by panel, the rows within."""
    p, tiles = read_params(b), parts.tiles
    length = p["runs"] * _quads(p) * 4
    columns = blocks(p["columns"], b.const(I64, shape.panel)) * shape.panel
    first = b.buffer(FILTERS, U8).at(block.group * columns * length)
    with b.loop(block.left, block.right, shape.panel) as n:
        vectors = least(b, blocks(block.right - n, b.const(I64, shape.lanes)), b.const(I64, shape.vectors))
        with b.switch(vectors) as switch:
            for width in dict.fromkeys(width for width, _ in tiles):
                with switch.case(width):
                    for height, (top, bottom) in cover_rows(shape.heights[width], block.rows):
                        share = _share(b, shape.panel * 4, height, bottom - top)
                        with b.loop(top, bottom, height) as m:
                            place, panel = block.group * columns + n, first.at(n * length)
                            ahead = panel.at(length * shape.panel + (m - top) // height * share * p["runs"] * _quads(p))
                            addresses = [block.table.at(m), block.sums.at(m), panel, ahead]
                            addresses += [] if block.wide is None else [block.wide.at(m * wide_pitch(p))]
                            b.call_part(tiles[width, height], *addresses, block.group, n, place, share)


def _share(b: Kernel, row_bytes: int, height: int, rows: Register) -> Register:
    """Return how many bytes of the next panel a tile fetches at each step, so that all tiles together fetch it."""
    tiles = b.max((rows + (height - 1)) // height, 1)
    return (tiles + (row_bytes - 1)) // tiles


def _write_row_sums(module: Module, symbol: str, code: DotConvCode, height: int) -> Kernel:
    """Add up some rows of the input, over all their taps; with one factor, times that."""
    with module.part(symbol, Address(I64), Address(I32)) as b:
        table, result = b.addresses
        p, rows = read_params(b), _rows(b, table, height, code)
        lanes = module.target.lanes(32)
        vectors = [b.variable(b.const(I32.vector(lanes), 0)) for _ in range(height)]
        singles = [b.variable(b.const(I32, 0)) for _ in range(height)]
        with b.loop(0, p["runs"]) as run:
            pointers = rows.at(run, b.const(I64, 0))
            for k, span in b.vectors(0, p["depth"], U8):
                for pointer, vector, single in zip(pointers, vectors, singles, strict=True):
                    _add_bytes(b, pointer.load(k, span), vector, single, signed=code.signed)
        totals, place = fold_lanes(b, [vector.value for vector in vectors]), 0
        for total in totals:
            count = total.type.lanes
            if not b.target.has_masks:
                for lane in range(count):
                    total = (
                        total.with_lane(lane, total.lane(lane) + singles[place + lane].value)
                        if count > 1
                        else total + singles[place].value
                    )
            result.store(total * b.buffer(FACTORS, I32).load() if code.factors == 1 else total, place, count)
            place += count
    return b


def fold_lanes(b: Function, vectors: Sequence[Register]) -> list[Register]:
    """Return the sums of the lanes of some vectors, a power of two, in their order, as few vectors as they fit."""
    lanes = vectors[0].type.lanes
    found, each = list(vectors), lanes
    while each > 1:
        rows, half = [row * each for row in range(lanes // each)], each // 2
        pairs = list(zip(found[::2], found[1::2], strict=True)) if len(found) > 1 else [(found[0], None)]
        starts = rows + [lanes + row for row in rows] if len(found) > 1 else rows
        low, high = ([start + first + lane for start in starts for lane in range(half)] for first in (0, half))
        found = [left.shuffle(low, right) + left.shuffle(high, right) for left, right in pairs]
        each, lanes = half, found[0].type.lanes
    return found


def _add_bytes(b: Function, x: Register, vector: Variable, single: Variable, *, signed: bool) -> None:
    if x.type.lanes == 1:
        single.add(x.to(I32))
        return
    ones = vector.value.like(0x01010101)
    quads = x.bits_as(U32.vector(vector.type.lanes))
    vector.set(dot4(b, vector.value, ones, quads) if signed else dot4(b, vector.value, quads, ones))


def _rows(b: Kernel, table: Pointer, height: int, code: DotConvCode) -> Rows:
    element = I8 if code.signed else U8
    border = b.buffer(BORDER, element) if code.padded else None
    return Rows(b, table, height, axes_of(b, code.rank), b.buffer(INPUT, element), border)


def _write_widen(module: Module, symbol: str, code: DotConvCode, height: int) -> Kernel:
    element = I8 if code.signed else U8
    return write_widen(module, symbol, height, element, code.rest, lambda b, table: _rows(b, table, height, code))


def _write_tile(
    module: Module, symbol: str, code: DotConvCode, vectors: int, height: int, output: Type, epilogue: ConvEpilogue | None
) -> Kernel:
    """Write one tile of the output, over the whole inner dimension."""
    shape = dot_tiling(module.target)
    fetches = (vectors, height) == (shape.vectors, shape.heights[shape.vectors][0])
    with module.part(symbol, Address(I64), Address(I32), Address(U8), Address(U8), I64, I64, I64, I64) as b:
        table, row_sums, panel, ahead = b.addresses
        group, n, place, share = b.arguments
        p, rows = read_params(b), _rows(b, table, height, code)
        begins = _begin(b, code, row_sums, place, vectors, height, shape.lanes)
        tile = DotTile(b, shape, table, vectors, height, group * p["columns"] + n, n, p["columns"] - n, begins)
        quads, whole, step = _quads(p), p["depth"] // 4, 4 * shape.panel
        with b.loop(0, p["runs"]) as run:
            pointers = [row.of(U8) for row in rows.at(run, b.const(I64, 0))]
            begin, near = panel.at(run * quads * step), ahead.at(run * quads * share)
            with b.loop(0, whole) as k:
                if fetches:
                    b.prefetch(near.at(k * share), locality=2)
                factors = [row.of(U32).load(k, align=1) for row in pointers]
                _add_products(b, factors, begin.at(k * step), tile.sums, signed=code.signed)
            if code.rest:
                factors = [last_bytes(row.at(whole * 4), code.rest) for row in pointers]
                _add_products(b, factors, begin.at(whole * step), tile.sums, signed=code.signed)
        tile.finish(output, epilogue)
    return b


def _write_wide_tile(
    module: Module, symbol: str, code: DotConvCode, vectors: int, height: int, output: Type, epilogue: ConvEpilogue | None
) -> Kernel:
    """Write one tile of the output, of widened rows."""
    shape = dot_tiling(module.target)
    fetches = (vectors, height) == (shape.vectors, shape.heights[shape.vectors][0])
    with module.part(symbol, Address(I64), Address(I32), Address(U8), Address(U8), Address(I16), I64, I64, I64, I64) as b:
        table, row_sums, panel, ahead, wide = b.addresses
        group, n, place, share = b.arguments
        p = read_params(b)
        begins = _begin(b, code, row_sums, place, vectors, height, shape.lanes)
        tile = DotTile(b, shape, table, vectors, height, group * p["columns"] + n, n, p["columns"] - n, begins)
        groups, near = p["runs"] * _quads(p), Ahead(ahead, share) if fetches else None
        rows, right = [wide.at(i * wide_pitch(p)) for i in range(height)], U8 if code.signed else I8
        multiply_pairs(b, rows, panel.of(I32), shape.panel, groups, tile.sums, right=right, ahead=near)
        tile.finish(output, epilogue)
    return b


_LEFT, _RIGHT = 4, 6
"""The tiles of rows and of the panel; those of sums come before them."""

_TILE_BYTES = 4 * TILE


def _write_matrix_tile(
    module: Module, symbol: str, code: DotConvCode, vectors: int, output: Type, epilogue: ConvEpilogue | None
) -> Kernel:
    """Write up to 16 rows of the output, over the whole inner dimension, in matrix tiles."""
    shape = dot_tiling(module.target)
    dot = tile_dot(I8, U8) if code.signed else tile_dot(U8, I8)
    with module.part(symbol, Address(I64), Address(I32), Address(U8), I64, I64, I64, I64) as b:
        table, row_sums, panel = b.addresses
        group, n, place, count = b.arguments
        p, tiles, step = read_params(b), Tiles(b), 4 * shape.panel
        halves = [_rows(b, table.at(first), MOST_ROWS, code) for first in range(0, TILE, MOST_ROWS)]
        starts, copied = b.stack(I64, TILE, align=64), b.stack(U8, TILE * _TILE_BYTES, align=64)
        wide, narrow = b.const(I64, step), b.const(I64, _TILE_BYTES)
        for j in range(vectors):
            tiles.zero(j)
        with b.loop(0, p["runs"]) as run:
            pointers = [pointer for rows in halves for pointer in rows.at(run, b.const(I64, 0))]
            for row, pointer in enumerate(pointers):
                starts.store(pointer.to(I64), row)
            with b.loop(0, p["depth"], _TILE_BYTES) as k:
                span = Span(_TILE_BYTES, b.tail_mask(b.min(p["depth"] - k, _TILE_BYTES), _TILE_BYTES))
                with b.loop(0, count) as i:
                    source = Pointer(b, starts.load(i).to(PTR).ref, U8)
                    copied.store(source.load(k, span), i * _TILE_BYTES, _TILE_BYTES)
                tiles.load(_LEFT, copied, narrow)
                here = panel.at((run * _quads(p) + k // 4) * step)
                for j in range(vectors):
                    tiles.load(_RIGHT + j % 2, here.at(j * _TILE_BYTES), wide)
                    tiles.multiply(dot, j, _LEFT, _RIGHT + j % 2)
        sums = b.stack(I32, TILE * shape.panel, align=64)
        for j in range(vectors):
            tiles.store(j, sums.at(j * TILE), wide)
        tile = DotTile(b, shape, table, vectors, 0, group * p["columns"] + n, n, p["columns"] - n, [])
        with b.loop(0, count) as i:
            begins = _begin(b, code, row_sums.at(i), place, vectors, 1, shape.lanes)
            totals = [sums.load(i * shape.panel + j * shape.lanes, shape.lanes) + begin for j, begin in enumerate(begins)]
            tile.store_row(b.buffer(OUTPUT, output), epilogue, i, totals)
    return b


def _begin(
    b: Kernel, code: DotConvCode, row_sums: Pointer, place: Register, vectors: int, height: int, lanes: int
) -> list[Register]:
    """Return with what the sums of a tile begin: the correction for zero points, and the bias."""
    offsets = [b.buffer(OFFSETS, I32).load(place + j * lanes, lanes) for j in range(vectors)]
    if not code.factors:
        return offsets * height
    sums = [row_sums.load(i).splat(lanes) for i in range(height)]
    if code.factors == 1:
        return [offset + total for total in sums for offset in offsets]
    factors = [b.buffer(FACTORS, I32).load(place + j * lanes, lanes) for j in range(vectors)]
    return [offset + total * factor for total in sums for offset, factor in zip(offsets, factors, strict=True)]


def _add_products(b: Function, factors: Sequence[Register], panel: Pointer, sums: Sequence[Variable], *, signed: bool) -> None:
    """Add the dot products of four bytes of each row with one vector of a panel's row after the other."""
    lanes, vectors = sums[0].type.lanes, len(sums) // len(factors)
    if has_pairs(b.target):
        _add_pairs(b, factors, panel, sums, signed=signed)
        return
    columns = [panel.of(U32).load(j * lanes, lanes) for j in range(vectors)]
    for i, factor in enumerate(factors):
        row = factor.splat(lanes)
        for total, column in zip(sums[i * vectors : (i + 1) * vectors], columns, strict=True):
            total.set(dot4(b, total.value, column, row) if signed else dot4(b, total.value, row, column))


def _add_pairs(b: Function, factors: Sequence[Register], panel: Pointer, sums: Sequence[Variable], *, signed: bool) -> None:
    """Do the same with a vector whose words are cut, and factors that are widened here."""
    lanes, vectors = sums[0].type.lanes, len(sums) // len(factors)
    left, right = (I8, U8) if signed else (U8, I8)
    pairs = [factor.bits_as(left.vector(4)).to(I16).bits_as(I32.vector(2)) for factor in factors]
    for half in range(2):
        places = [(4 * j + 2 * half) * lanes for j in range(vectors)]
        columns = [panel.of(right).load(place, 2 * lanes).to(I16).bits_as(I32.vector(lanes)) for place in places]
        for i, pair in enumerate(pairs):
            row = pair.lane(half).splat(lanes)
            for total, column in zip(sums[i * vectors : (i + 1) * vectors], columns, strict=True):
                total.set(dot_pairs(b, total.value, row, column))
