"""How tiles cover a matrix C[M, N]: whole panels first, then tiles of falling width and height, the last columns under a mask."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

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
    "TileEnds",
    "Tiling",
    "cover_columns",
    "cover_rows",
    "finish_in_a_loop",
    "has_many_registers",
    "is_long",
    "multiply",
    "store_first",
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


def cover_columns(
    b: Function, shape: Tiling, columns: Range, *, panels_end_early: bool = False
) -> Iterator[tuple[int, tuple[int, ...], Range]]:
    """Yield ranges of columns for tiles of falling width: whole panels, then tiles that may end within their last vector.

    Where `panels_end_early`, a panel's tile may be one of those.
    """
    first, end = columns
    for vectors, heights in shape.tiles:
        width = vectors * shape.lanes
        if vectors == 1:
            last = end
        elif width == shape.panel and panels_end_early:
            last = b.min(first + (end - first + (shape.lanes - 1)) // width * width, end)
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


def store_first(b: Function, cells: Sequence[tuple[Pointer, Register]], count: Register) -> None:
    """Store the first `count` lanes of vectors, fewer than all, by halves: where masks are not free, a store under one is slow."""
    done, parts = b.variable(count.like(0)), [value for _, value in cells]
    width = parts[0].type.lanes // 2
    while width:
        rest = [b.variable(part.shuffle(range(width))) for part in parts]
        with b.when((count & width).ne(0)):
            for (place, _), part, other in zip(cells, parts, rest, strict=True):
                place.store(other.value, done.value, width)
                other.set(part.shuffle(range(width, 2 * width)))
            done.set(done.value + width)
        parts, width = [other.value for other in rest], width // 2


class TileEnds:
    """How the rows of a tile touch C, of which a row's last vector may have fewer columns than lanes."""

    def __init__(self, b: Function, lanes: int, vectors: int, remaining: Register | None, *, is_panel: bool = False) -> None:
        """Choose the ways to touch C.

        Args:
            b: the function to write into.
            lanes: elements of a vector.
            vectors: vectors of a row.
            remaining: columns of C from the tile's first on; None where they are enough for any tile.
            is_panel: whether a tile under masks that are free has whole vectors only.
        """
        self._b, self._lanes, self._whole = b, lanes, [Span(lanes)] * vectors
        self._cut, self._last = self._whole, None
        if remaining is None or (is_panel and b.target.has_masks):
            return
        last = remaining - (vectors - 1) * lanes
        self._cut = [*self._whole[1:], Span(lanes, b.tail_mask(b.min(last, lanes), lanes))]
        self._last = None if b.target.has_masks else last

    def each_way(self, write: Callable[[list[Span]], None]) -> None:
        """Write under masks; where they are not free, also without, for where all columns are there."""
        if self._last is None:
            write(self._cut)
        else:
            self._b.branch(self._last >= self._lanes, lambda: write(self._whole), lambda: write(self._cut))

    def store(self, cells: Iterable[tuple[Pointer, Register]], spans: Sequence[Span]) -> None:
        """Store row after row of vectors, as many in each as there are `spans`: each as soon as it is made."""
        cut = []
        for (start, value), span in zip(cells, itertools.cycle(spans), strict=False):
            if self._last is None or span.mask is None:
                start.store(value, 0, span)
            else:
                cut.append((start, value))
        if self._last is not None and cut:
            store_first(self._b, cut, self._last)


def is_long(target: Target, epilogue: Callable[..., Register], sums: Type = F32, most: int = _LONG) -> bool:
    """Return whether an epilogue of `sums` writes more than `most` instructions, found by writing it to nowhere."""
    b = Kernel(target, "nowhere")
    lanes = target.lanes(sums.bits)
    epilogue(b, b.const(sums.vector(lanes), 0), b.begin, b.begin, Span(lanes))
    return len(b.lines) > most


def waits_in_memory(target: Target, epilogue: Callable[..., Register], sums: Type = F32) -> bool:
    """Return whether sums are put down before a loop applies the epilogue to them."""
    return is_long(target, epilogue, sums, _LONG if has_many_registers(target) else _LONG_CHAIN)


def finish_in_a_loop(b: Function, height: int | Register, vectors: int, row: Callable[[Register], Sequence[Cell]]) -> None:
    """Finish the rows of a tile, whose sums are put down: where registers are few, several rows at a time, in turns.

    Args:
        b: the function to write into.
        height: the rows of the tile; a number where registers are few.
        vectors: the cells of a row.
        row: returns the cells of a row of the tile.
    """
    if has_many_registers(b.target) or not isinstance(height, int):
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
    rows_ahead: Ahead | None = None,
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
        rows_ahead: of A, to fetch in the meantime.
    """
    lanes, vectors = sums[0].type.lanes, len(sums) // len(rows)
    sources = [panel, *beside]
    with b.loop(0, depth) as k:
        if ahead is not None:
            for address in (ahead.address, *ahead.others):
                for line in range(ahead.lines):
                    b.prefetch(address.at(k * ahead.stride + line * lanes), locality=2)
        if rows_ahead is not None:
            b.prefetch(rows_ahead.address.at(k * rows_ahead.stride))
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
