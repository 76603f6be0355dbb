"""How tiles cover a matrix C[M, N]: whole panels first, then tiles of falling width and height, the last columns under a mask."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["Range", "Tiling", "cover_columns", "cover_rows", "tile_spans", "tiling"]

Range = tuple[Register, Register]
"""First index, and the one after the last."""


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
    if target.registers >= 32:
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
