"""How tiles cover a matrix C[M, N]: whole panels first, then tiles of falling width and height, the last columns under a mask."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from sardonyx.codegen.emit.bfloat_dots import dot2
from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.folds import in_turns
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "Ahead",
    "Cell",
    "Range",
    "Tiling",
    "cover_columns",
    "cover_rows",
    "finish_in_a_loop",
    "has_many_registers",
    "is_long",
    "multiply",
    "tile_spans",
    "tiling",
    "waits_in_memory",
]

Range = tuple[Register, Register]
"""First index, and the one after the last."""

Cell = tuple[Callable[[], Register], Callable[[Register], None]]
"""What makes a vector of C of the sums that wait there, and what stores it."""

_LONG = 40
"""Instructions of an epilogue that are not worth writing once for each accumulator."""

_LONG_CHAIN = 12
"""Instructions of an epilogue that wait for one another, of which a processor with few registers sees too few vectors at a time."""

_SIDE_BY_SIDE = 6
"""Vectors whose instructions are written in turns."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a target covers C: the number of vectors in a panel, and which tiles there are for a given width."""

    lanes: int
    """Elements of one vector."""
    tiles: tuple[tuple[int, tuple[int, ...]], ...]
    """(vectors, (rows, rows, …)), widest and tallest first; vectors halve from a panel to 1, rows end with 1."""

    @property
    def panel(self) -> int:
        """Columns of one panel of B."""
        return self.tiles[0][0] * self.lanes

    @property
    def name(self) -> str:
        """Rows and columns of the largest tile, as in 6x64."""
        return f"{self.tiles[0][1][0]}x{self.panel}"


@functools.cache
def tiling(target: Target, kind: Type = F32, columns: int | None = None) -> Tiling:
    """Return the tiles that fit the registers: accumulators, one row of the panel and one broadcast.

    Args:
        target: the machine.
        kind: the type of elements.
        columns: of B, where panels need not be wider; None where there are many.
    """
    shape = _tiling(target, target.lanes(kind.bits))
    vectors = shape.tiles[0][0] if columns is None else -(-columns // shape.lanes)
    widest = next(index for index, (width, _) in reversed([*enumerate(shape.tiles)]) if width >= vectors or not index)
    return Tiling(shape.lanes, shape.tiles[widest:])


def _tiling(target: Target, lanes: int) -> Tiling:
    if has_many_registers(target):
        return Tiling(lanes, ((4, (6, 4, 2, 1)), (2, (8, 4, 1)), (1, (8, 4, 1))))
    if target.has_fma:
        return Tiling(lanes, ((2, (6, 4, 2, 1)), (1, (6, 3, 1))))
    return Tiling(lanes, ((2, (4, 2, 1)), (1, (4, 1))))


def cover_columns(b: Function, shape: Tiling, columns: Range) -> Iterator[tuple[int, tuple[int, ...], Range]]:
    """Yield ranges of columns for tiles of falling width: whole panels, then tiles that may end within their last vector."""
    first, end = columns
    for vectors, heights in shape.tiles:
        width = vectors * shape.lanes
        if vectors == 1:
            last = end
        elif width == shape.panel:
            last = first + (end - first) // width * width
        else:
            last = b.select((end - first) > width - shape.lanes, first + width, first)
        yield vectors, heights, (first, last)
        first = last


def cover_rows(heights: Sequence[int], rows: Range) -> Iterator[tuple[int, Range]]:
    """Yield ranges of rows for tiles of falling height."""
    first, end = rows
    for height in heights:
        last = first + (end - first) // height * height
        yield height, (first, last)
        first = last


def tile_spans(b: Function, shape: Tiling, vectors: int, remaining: Register) -> list[Span]:
    """Return how the vectors of a tile touch C: whole, but for the last one of a tile that may be at the end."""
    whole = Span(shape.lanes)
    if vectors * shape.lanes == shape.panel and vectors > 1:
        return [whole] * vectors
    rest = remaining - (vectors - 1) * shape.lanes
    return [whole] * (vectors - 1) + [Span(shape.lanes, b.tail_mask(b.min(rest, shape.lanes), shape.lanes))]


def is_long(target: Target, epilogue: Callable[..., Register], sums: Type = F32, most: int = _LONG) -> bool:
    """Return whether an epilogue of `sums` writes more than `most` instructions, found by writing it to nowhere."""
    b = Kernel(target, "nowhere")
    lanes = target.lanes(sums.bits)
    epilogue(b, b.const(sums.vector(lanes), 0), b.begin, b.begin, Span(lanes))
    return len(b.lines) > most


def waits_in_memory(target: Target, epilogue: Callable[..., Register], sums: Type = F32) -> bool:
    """Return whether sums are put down before a loop applies the epilogue to them."""
    return is_long(target, epilogue, sums, _LONG if has_many_registers(target) else _LONG_CHAIN)


def finish_in_a_loop(b: Function, height: int, vectors: int, row: Callable[[Register], Sequence[Cell]]) -> None:
    """Finish the rows of a tile, whose sums are put down: where registers are few, several rows at a time, in turns.

    Args:
        b: the function to write into.
        height: the rows of the tile.
        vectors: the cells of a row.
        row: returns the cells of a row of the tile.
    """
    if has_many_registers(b.target):
        with b.loop(0, height) as i:
            for make, store in row(i):
                store(make())
        return
    unit = next(unit for unit in range(max(_SIDE_BY_SIDE // vectors, 1), 0, -1) if height % unit == 0)
    with b.loop(0, height, unit) as i:
        cells = [cell for number in range(unit) for cell in row(i + number)]
        for value, (_, store) in zip(in_turns(b, [make for make, _ in cells]), cells, strict=True):
            store(value)


@dataclass(frozen=True, slots=True)
class Ahead:
    """Memory to bring nearer while a tile is computed: the next panel is read at the speed of the cache behind."""

    address: Pointer
    """Where it begins; need not be valid."""
    stride: Register
    """Elements to go on at each step."""
    lines: int = 1
    """Vectors to fetch at each step."""
    others: tuple[Pointer, ...] = ()
    """Where other panels begin, of which as much is fetched."""


def multiply(
    b: Function,
    rows: Sequence[Pointer],
    panel: Pointer,
    width: int,
    depth: Register,
    sums: Sequence[Variable],
    ahead: Ahead | None = None,
    *,
    pairs: bool = False,
    beside: Sequence[Pointer] = (),
) -> None:
    """Add `depth` steps of K to the sums of one tile: sums[i, j] += rows[i][k] * panel[k, j].

    Args:
        b: the function to write into.
        rows: the address of each row of A, at the first k.
        panel: the address of the panel's first row.
        width: elements from one row of the panel to the next.
        depth: how many steps.
        sums: the accumulators, row by row.
        ahead: what to fetch in the meantime.
        pairs: whether elements are two bfloat16 each, and a step of K is a dot product of them.
        beside: the addresses of the first rows of panels whose sums follow those of `panel` in each row.
    """
    lanes, vectors = sums[0].type.lanes, len(sums) // len(rows)
    sources = [panel, *beside]
    with b.loop(0, depth) as k:
        if ahead is not None:
            for address in (ahead.address, *ahead.others):
                for line in range(ahead.lines):
                    b.prefetch(address.at(k * ahead.stride + line * lanes), locality=2)
        columns = [source.load(k * width + j * lanes, lanes) for source in sources for j in range(vectors // len(sources))]
        for i, row in enumerate(rows):
            factor = row.load(k).splat(lanes)
            for j, column in enumerate(columns):
                total = sums[i * vectors + j]
                if factor.type.is_integer:
                    total.set(total.value + factor * column)
                else:
                    total.set(dot2(b, total.value, factor, column) if pairs else b.fma(factor, column, total.value))


def has_many_registers(target: Target) -> bool:
    """Return whether there are registers for tiles of four vectors a row."""
    return target.registers >= 32
