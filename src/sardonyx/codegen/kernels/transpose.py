"""Transpose planes: result[o, j, i] = source[o, i, j], whose last index is dense on both sides.

    source   i ──►  row_stride          result   j ──►  column_stride
             j ──►  1                            i ──►  1

Elements are moved, not computed with: they are integers of their size. A plane is cut into blocks that fit the first cache, a block
into square tiles that fit the registers: a tile is loaded row by row, transposed by shuffles, and stored row by row. What is left
at the edges is moved under masks where masks are free; elsewhere the last tile begins before the end of those before it, and
planes that are narrower than a tile are cut into tiles of half its side, a quarter of it and so on:

    7 rows, 9 columns, side 4      [0 … 3] [4 … 7]       in each direction
                                         [5 … 8]

There, tiles that share lines of the cache are moved one after another where rows lie a power of two apart: such rows share sets
of the cache, which hold only a few of their lines.

Where a plane has only a few rows or columns, which lie side by side, tiles would be mostly empty: `write_interleave` and
`write_deinterleave` move whole vectors instead, for a number of streams that is baked in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["PlaneParams", "rearranged", "tile_side", "transpose_tile", "write_deinterleave", "write_interleave", "write_transpose"]

SOURCE, RESULT = range(2)
"""The buffers of the kernels."""

_ROWS, _COLUMNS, _ROW_STRIDE, _COLUMN_STRIDE, _BLOCK_ROWS, _BLOCK_COLUMNS, _BLOCK_OUTER, _OUTER, _RANK, _DIMS = range(10)
_LANE_BITS = 128
"""Shuffles within this width are fast on every processor."""
_LINE_BITS = 512
"""A line of the cache."""
_SHARED_SETS_BITS = 8 * 512
"""Of rows that lie a multiple of it apart, a first cache of 64 sets and 8 ways holds no line each for a whole block."""


@dataclass(frozen=True, slots=True)
class PlaneParams:
    """The integer parameters of the kernels. Strides count elements."""

    rows: int
    """How many i there are."""
    columns: int
    """How many j there are."""
    row_stride: int
    """From one i to the next in the source."""
    column_stride: int
    """From one j to the next in the result."""
    outer: tuple[tuple[int, int, int], ...]
    """For each dimension around the plane, outermost first: its size, its stride in the source, and in the result."""
    block_rows: int
    """Rows in one task."""
    block_columns: int
    """Columns in one task."""
    block_outer: int
    """Planes in one task."""

    @staticmethod
    def blocked(
        rows: int,
        columns: int,
        row_stride: int,
        column_stride: int,
        outer: Sequence[tuple[int, int, int]],
        *,
        side: int = 128,
        grain: int = 1 << 14,
    ) -> PlaneParams:
        """Return blocks of about `side` rows and columns, or, where planes are small, several planes.

        The planes then have about `grain` elements.
        """
        block_rows, block_columns = max(min(rows, side), 1), max(min(columns, side), 1)
        whole = block_rows >= rows and block_columns >= columns
        block_outer = max(grain // max(rows * columns, 1), 1) if whole else 1
        return PlaneParams(rows, columns, row_stride, column_stride, tuple(outer), block_rows, block_columns, block_outer)

    def words(self) -> list[int]:
        """Return the parameters as the kernels read them."""
        head = [self.rows, self.columns, self.row_stride, self.column_stride, self.block_rows, self.block_columns, self.block_outer]
        return [*head, self._planes, len(self.outer), *(word for dim in self.outer for word in dim)]

    def tasks(self) -> int:
        """Return how many tasks it is; none if there is no element."""
        blocks = -(-self.rows // self.block_rows) * -(-self.columns // self.block_columns)
        return blocks * -(-self._planes // self.block_outer)

    @property
    def _planes(self) -> int:
        return math.prod(size for size, _, _ in self.outer)


def write_transpose(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol` for elements of type `element`, an integer of their size.

    Tiles of whole registers of 64 bytes would mostly be stored across two cache lines where rows of the result do not begin at
    lines; there tiles of half their side are moved.
    """
    side = tile_side(module.target, element)
    with module.kernel(symbol) as b:
        for source, result, block in _blocks(b, element):
            plane = _Plane(b, source, result, b.param(_ROW_STRIDE), b.param(_COLUMN_STRIDE))
            if not b.target.has_masks:
                _move_overlapping(plane, block, side, _LINE_BITS // element.bits)
            elif side * element.bits < _LINE_BITS:
                _move_block(plane, block, side)
            else:
                begins_at_lines = (plane.column_stride % (_LINE_BITS // element.bits)).eq(0)
                whole, half = partial(_move_block, plane, block, side), partial(_move_block, plane, block, side // 2)
                b.branch(begins_at_lines, whole, half)


def _move_block(plane: _Plane, block: _Block, side: int) -> None:
    whole_rows = block.row + ((block.last_row - block.row) & -side)
    whole_columns = block.column + ((block.last_column - block.column) & -side)
    with plane.b.loop(block.column, whole_columns, side) as j, plane.b.loop(block.row, whole_rows, side) as i:
        _move_tile(plane, i, j, side)
    _move_edge(plane, block.row, whole_rows, whole_columns, block.last_column, side)
    _move_edge(plane, whole_rows, block.last_row, block.column, block.last_column, side)


def _move_overlapping(plane: _Plane, block: _Block, side: int, group: int) -> None:
    """Move a block by tiles of `side`, or of fewer where it is narrower; as many next to each other as have `group` elements."""
    b = plane.b
    if side == 1:
        with b.loop(block.column, block.last_column) as j, b.loop(block.row, block.last_row) as i:
            plane.result.store(plane.source.load(i * plane.row_stride + j), j * plane.column_stride + i)
        return
    last_i, last_j = block.last_row - side, block.last_column - side
    end_i = block.row + ((block.last_row - block.row) & -side)
    end_j = block.column + ((block.last_column - block.column) & -side)

    def across() -> None:
        with (
            b.loop(block.column, end_j, group) as first,
            b.loop(block.row, end_i, side) as i,
            b.loop(first, b.min(first + group, end_j), side) as j,
        ):
            _move_tile(plane, i, j, side)

    def down() -> None:
        with b.loop(block.column, end_j, side) as j, b.loop(block.row, end_i, side) as i:
            _move_tile(plane, i, j, side)

    def tiles() -> None:
        b.branch((plane.row_stride % (_SHARED_SETS_BITS // plane.source.element.bits)).eq(0), across, down)
        with b.when(end_j < block.last_column), b.loop(block.row, end_i, side) as i:
            _move_tile(plane, i, last_j, side)
        with b.when(end_i < block.last_row), b.loop(block.column, block.last_column, side) as j:
            _move_tile(plane, last_i, b.min(j, last_j), side)

    fits = (last_i >= block.row) & (last_j >= block.column)
    b.branch(fits, tiles, partial(_move_overlapping, plane, block, side // 2, group))


def write_interleave(module: Module, symbol: str, element: Type, streams: int) -> None:
    """Write the kernel `symbol` for planes of `streams` rows whose columns lie side by side in the result: column_stride = rows."""
    lanes = tile_side(module.target, element)
    places = [(e % streams, e // streams) for e in range(streams * lanes)]
    with module.kernel(symbol) as b:
        stride = b.param(_ROW_STRIDE)
        for source, result, block in _blocks(b, element):

            def copy(at: Register, span: Span, parts: Sequence[Span], source: Pointer = source, result: Pointer = result) -> None:
                given = [source.load(at + stride * stream, span) for stream in range(streams)]
                for part, (place, made) in zip(parts, rearranged(given, places, lanes), strict=True):
                    result.store(made, at * streams + place, part)

            _move_streams(b, block.column, block.last_column, streams, lanes, copy)


def write_deinterleave(module: Module, symbol: str, element: Type, streams: int) -> None:
    """Write the kernel `symbol` for planes of `streams` columns whose rows lie side by side in the source: row_stride = columns."""
    lanes = tile_side(module.target, element)
    places = [divmod(lane * streams + stream, lanes) for stream in range(streams) for lane in range(lanes)]
    with module.kernel(symbol) as b:
        stride = b.param(_COLUMN_STRIDE)
        for source, result, block in _blocks(b, element):

            def copy(at: Register, span: Span, parts: Sequence[Span], source: Pointer = source, result: Pointer = result) -> None:
                given = [source.load(at * streams + number * span.lanes, part) for number, part in enumerate(parts)]
                for stream, (_, made) in enumerate(rearranged(given, places, lanes)):
                    result.store(made, at + stride * stream, span)

            _move_streams(b, block.row, block.last_row, streams, lanes, copy)


def tile_side(target: Target, element: Type) -> int:
    """Return rows and columns of a tile: as many as a register has elements, or a narrower one where elements are."""
    return target.lanes(element.bits) if element.bits >= 32 else _LANE_BITS // element.bits


def transpose_tile(rows: Sequence[Register]) -> list[Register]:
    """Transpose a square of as many vectors as each has lanes, by log2(lanes) rounds of shuffles of pairs."""
    side, width = len(rows), rows[0].type.bits
    values = list(rows)
    columns = [list(range(side)) for _ in rows]
    for distance, low, high in _rounds(side, min(side, _LANE_BITS // width)):
        for one in (number for number in range(side) if not number & distance):
            two = one | distance
            left, right, both = values[one], values[two], columns[one] + columns[two]
            values[one], values[two] = left.shuffle(low, right), left.shuffle(high, right)
            columns[one], columns[two] = [both[lane] for lane in low], [both[lane] for lane in high]
    return [value for _, value in sorted(zip((column[0] for column in columns), values, strict=True), key=lambda pair: pair[0])]


def _rounds(side: int, chunk: int) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield which vectors meet in each round, by their distance, and what the two become.

    First neighbours are interleaved within chunks, by one element, by two and so on; then chunks are sorted into even and odd ones.
    """
    distance = 1
    while distance < chunk:
        low = [
            start + piece + lane + vector
            for start in range(0, side, chunk)
            for piece in range(0, chunk // 2, distance)
            for vector in (0, side)
            for lane in range(distance)
        ]
        yield distance, low, [lane + chunk // 2 for lane in low]
        distance *= 2
    while distance < side:
        low = [vector + start + lane for vector in (0, side) for start in range(0, side, 2 * chunk) for lane in range(chunk)]
        yield distance, low, [lane + chunk for lane in low]
        distance *= 2


@dataclass(frozen=True, slots=True)
class _Block:
    row: Register
    last_row: Register
    column: Register
    last_column: Register


@dataclass(frozen=True, slots=True)
class _Plane:
    b: Kernel
    source: Pointer
    result: Pointer
    row_stride: Register
    column_stride: Register


def _blocks(b: Kernel, element: Type) -> Iterator[tuple[Pointer, Pointer, _Block]]:
    """Walk the blocks of the tasks, with the plane that each lies in."""
    rows, columns = b.param(_ROWS), b.param(_COLUMNS)
    height, width, depth, planes = b.param(_BLOCK_ROWS), b.param(_BLOCK_COLUMNS), b.param(_BLOCK_OUTER), b.param(_OUTER)
    across, down = (columns + width - 1) // width, (rows + height - 1) // height
    with b.loop(b.begin, b.end) as task:
        column, row, group = task % across * width, task // across % down * height, task // across // down * depth
        block = _Block(row, b.min(row + height, rows), column, b.min(column + width, columns))
        with b.loop(group, b.min(group + depth, planes)) as plane:
            source_offset, result_offset = _offsets(b, plane)
            yield b.buffer(SOURCE, element).at(source_offset), b.buffer(RESULT, element).at(result_offset), block


def _offsets(b: Kernel, index: Register) -> tuple[Register, Register]:
    rest, source, result = b.variable(index), b.variable(b.const(I64, 0)), b.variable(b.const(I64, 0))
    rank = b.param(_RANK)
    with b.loop(0, rank) as step:
        place = (rank - 1 - step) * 3 + _DIMS
        size = b.param_at(place)
        position = rest.value % size
        rest.set(rest.value // size)
        source.add(position * b.param_at(place + 1))
        result.add(position * b.param_at(place + 2))
    return source.value, result.value


def _move_tile(plane: _Plane, i: Register, j: Register, side: int) -> None:
    rows = [plane.source.load((i + step) * plane.row_stride + j, side) for step in range(side)]
    for step, column in enumerate(transpose_tile(rows)):
        plane.result.store(column, (j + step) * plane.column_stride + i, side)


def _move_edge(plane: _Plane, row: Register, last_row: Register, column: Register, last_column: Register, side: int) -> None:
    b = plane.b
    with b.loop(column, last_column, side) as j, b.loop(row, last_row, side) as i:
        _move_masked_tile(plane, i, j, b.min(last_row - i, side), b.min(last_column - j, side), side)


def _move_masked_tile(plane: _Plane, i: Register, j: Register, height: Register, width: Register, side: int) -> None:
    """Move a part of a tile: rows past the last are the last again, and columns past the last are not stored."""
    b = plane.b
    across, down = Span(side, b.tail_mask(width, side)), Span(side, b.tail_mask(height, side))
    rows = [plane.source.load((i + b.min(b.const(I64, step), height - 1)) * plane.row_stride + j, across) for step in range(side)]
    for step, column in enumerate(transpose_tile(rows)):
        with b.when(width > step):
            plane.result.store(column, (j + step) * plane.column_stride + i, down)


def _move_streams(
    b: Function, begin: Register, end: Register, streams: int, lanes: int, copy: Callable[[Register, Span, Sequence[Span]], None]
) -> None:
    """Write `copy(at, span of one stream, spans of the vectors on the dense side)` for all places of [begin, end)."""
    whole = begin + ((end - begin) & -lanes)
    with b.loop(begin, whole, lanes) as at:
        copy(at, Span(lanes), [Span(lanes)] * streams)
    if not b.target.has_masks:
        with b.loop(whole, end) as at:
            copy(at, Span(1), [Span(1)] * streams)
        return
    with b.when(whole < end):
        left = (end - whole) * streams
        counts = [b.min(b.max(left - part * lanes, 0), lanes) for part in range(streams)]
        copy(whole, Span(lanes, b.tail_mask(end - whole, lanes)), [Span(lanes, b.tail_mask(count, lanes)) for count in counts])


def rearranged(given: Sequence[Register], places: Sequence[tuple[int, int]], lanes: int) -> Iterator[tuple[int, Register]]:
    """Yield vectors of the elements at `places`, each a vector's number and a lane, with where each begins among them."""
    if given[0].type.lanes == 1:
        yield from enumerate(given)
        return
    for first in range(0, len(places), lanes):
        wanted = places[first : first + lanes]
        made = given[0].shuffle([lane if number == 0 else lanes + lane if number == 1 else 0 for number, lane in wanted], given[1])
        for later, vector in enumerate(given[2:], 2):
            if any(number == later for number, _ in wanted):
                made = made.shuffle([lanes + lane if number == later else own for own, (number, lane) in enumerate(wanted)], vector)
        yield first, made
