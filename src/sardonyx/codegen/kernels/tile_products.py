"""Sums of a product in matrix tiles: 32 rows of A times 32 columns of a panel at a time, by four tiles of sums.

                        panel: K words x 64 columns
                       ┌──┬──┬──┬──┐
                       │B0│B1│  │  │  16 words of K at a time
    A: 32 rows         └──┴──┴──┴──┘
     ┌──┐              ┌──┬──┐
     │A0│              │C0│C1│       four tile products for four tiles that are read
     │A1│              │C2│C3│
     └──┘              └──┴──┘

Words are four bytes or two bfloat16 that follow one another in K. Rows of A and panels have whole tiles of words: behind the last
K are zeros. Sums go to a block on the stack, from which a part of the kernel's own takes them; there they also wait for the next
block of a long K. Sums of an element are added in the same order wherever it is, so that all ways to cut C give equal bits.

Tiles have 16 rows of A. The last ones of a matrix begin 16 rows before its end, so that nothing behind it is read: some rows are
multiplied twice, and stored once. A matrix of fewer rows must have memory behind it that may be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sardonyx.codegen.emit.matrix_tiles import TILE, TileDot, Tiles
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import I32, I64
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.tiles import Range, Tiling, cover_columns
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["TILE_HEIGHT", "TILE_ROWS", "TileOperands", "TileSums", "sums_elements", "tile_words", "write_tile_sums"]

TILE_HEIGHT = 2 * TILE
"""Rows of C that are computed at a time."""

TILE_ROWS = 256
"""Most rows of a task: sums of a panel's columns for all of them fit the stack."""

_BLOCK_WORDS = 1024
"""Words of K that are gone through before the next rows: a panel's stay in the second-level cache, with those of A."""

_TILE_BYTES = TILE * 4
_LEFT, _RIGHT = 4, 6
"""The first tiles of A and of B; those of C come before them."""

Finish = Callable[[Pointer, Register, Register, Register, int], None]
"""`finish(sums, m, n, count, vectors)`: store `count` rows of C from row m and column n on; `sums` has rows of a panel's width."""


def tile_words(words: int) -> int:
    """Return how many words of K there are with the zeros behind them: whole tiles."""
    return -(-words // TILE) * TILE


def sums_elements(panel: int) -> int:
    """Return how many int32 or float32 the sums of a task take, for panels of so many columns."""
    return (TILE_ROWS + TILE) * panel


@dataclass(frozen=True, slots=True)
class TileOperands:
    """What a block of C is computed of."""

    left: Pointer
    """The first row of A, in bytes."""
    row_bytes: Register
    """From one row of A to the next."""
    M: Register
    """Rows of A."""
    panel: Callable[[Register], Pointer]
    """Gives the address of the first word of a column, in its panel."""
    words: Register
    """Of K, whole tiles."""
    sums: Pointer
    """Memory for `sums_elements` int32 or float32."""
    finish: Finish
    """Stores sums."""


@dataclass(frozen=True, slots=True)
class TileSums:
    """What computes sums: parts of a kernel."""

    shape: Tiling
    """Panels, and the vectors in which sums are stored."""
    parts: Mapping[tuple[int, int], Kernel]
    """(tiles of rows, tiles of columns) -> what adds a block of K to the sums."""

    def write_block(self, b: Kernel, given: TileOperands, rows: Range, columns: Range) -> None:
        """Write one block of C, with configured tiles: panel by panel, block by block of K, the rows within; TILE_ROWS at most."""
        for vectors, _, (left, right) in cover_columns(b, self.shape, columns):
            blocks = b.max(given.words, 1)
            with (
                b.loop(left, right, vectors * self.shape.lanes) as n,
                b.loop(0, blocks, _BLOCK_WORDS) as k,
                b.loop(*rows, TILE_HEIGHT) as m,
            ):
                self._write_rows(b, given, rows, (m, n, k), vectors)

    def _write_rows(
        self, b: Kernel, given: TileOperands, rows: Range, place: tuple[Register, Register, Register], vectors: int
    ) -> None:
        """Add a block of K to the sums of TILE_HEIGHT rows and, after the last one, store them."""
        (top, bottom), (m, n, k), width = rows, place, self.shape.panel
        heads = [m + i * TILE for i in range(2)]
        starts = [b.min(head, b.max(given.M - TILE, 0)) for head in heads]
        sums = [given.sums.at((head - top) * width) for head in heads]
        lefts = [given.left.at(start * given.row_bytes + k * 4).of(I32) for start in starts]
        depth, words = b.min(given.words - k, _BLOCK_WORDS), given.panel(n).at(k * width)

        def add(tiles: int) -> None:
            for j in range(0, vectors, 2):
                part = self.parts[tiles, min(vectors, 2)]
                b.call_part(part, *lefts, words.at(j * TILE), sums[0].at(j * TILE), given.row_bytes, depth, k)

        b.branch((bottom - m) > TILE, lambda: add(2), lambda: add(1))
        with b.when((k + _BLOCK_WORDS) >= given.words):
            for head, start, found in zip(heads, starts, sums, strict=True):
                with b.when(head < bottom):
                    given.finish(found.at((head - start) * width), head, n, b.min(bottom - head, TILE), vectors)


def write_tile_sums(module: Module, symbol: str, shape: Tiling, dot: TileDot) -> TileSums:
    """Write the parts that multiply tiles of A by those of panels.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        shape: panels of words, as wide as whole tiles.
        dot: what multiplies.
    """
    sizes = [(rows, columns) for rows in (2, 1) for columns in (2, 1)]
    return TileSums(shape, {size: _write_part(module, f"{symbol}_tiles{size[0]}x{size[1]}", shape, size, dot) for size in sizes})


def _write_part(module: Module, symbol: str, shape: Tiling, size: tuple[int, int], dot: TileDot) -> Kernel:
    """Write the sums of one block of K: added to those of the blocks before it."""
    pitch, totals = shape.panel * 4, [(i, j) for i in range(size[0]) for j in range(size[1])]
    with module.part(symbol, Address(I32), Address(I32), Address(I32), Address(I32), I64, I64, I64) as b:
        first_rows, second_rows, words, sums = b.addresses
        row_bytes, depth, k = b.arguments
        tiles, stride = Tiles(b), b.const(I64, pitch)
        places = [(2 * i + j, sums.at(i * TILE * shape.panel + j * TILE)) for i, j in totals]

        def go_on() -> None:
            for tile, place in places:
                tiles.load(tile, place, stride)

        def begin() -> None:
            for tile, _ in places:
                tiles.zero(tile)

        b.branch(k > 0, go_on, begin)
        with b.loop(0, depth, TILE) as step:
            for j in range(size[1]):
                tiles.load(_RIGHT + j, words.at(step * shape.panel + j * TILE), stride)
            for i, rows in enumerate((first_rows, second_rows)[: size[0]]):
                tiles.load(_LEFT + i, rows.at(step), row_bytes)
            for i, j in totals:
                tiles.multiply(dot, 2 * i + j, _LEFT + i, _RIGHT + j)
        for tile, place in places:
            tiles.store(tile, place, stride)
    return b
