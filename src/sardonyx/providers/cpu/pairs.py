"""Operands of products in pairs of bfloat16: where the session asks for less precision, and the processor multiplies those fast.

Vectors multiply pairs of even rows as they are; matrix tiles want rows that are whole tiles, which a copy fills up with zeros.
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.bfloat_dots import has_fast_dot2
from sardonyx.codegen.emit.matrix_tiles import TILE, has_pair_tiles
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.narrow.pairs import PAIR_BLOCK, PARTS, write_pair_rows, write_pairs, write_part_rows
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.precision import BFLOAT16, PARTED, Precision
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["as_pair_rows", "as_pairs", "convolves_tiles", "multiplies_pairs", "multiplies_tiles", "parts_of", "tiles_precision"]

_TILE_ELEMENTS = 2 * TILE
"""bfloat16 of a row of a tile."""


def multiplies_pairs(low: Lowering, *lengths: int) -> bool:
    """Return whether products are computed of pairs, of which rows of these lengths are made whole."""
    return low.precision is Precision.MEDIUM and has_fast_dot2(low.target) and not any(length % 2 for length in lengths)


def multiplies_tiles(low: Lowering) -> bool:
    """Return whether products with constants are computed in matrix tiles of bfloat16, of rows of any length."""
    return low.precision is not Precision.HIGHEST and has_pair_tiles(low.target)


def convolves_tiles(low: Lowering, *lengths: int) -> bool:
    """Return whether convolutions are computed in matrix tiles of bfloat16, of runs of these lengths."""
    return multiplies_tiles(low) and parts_of(low) == 1 and not any(length % 2 for length in lengths)


def parts_of(low: Lowering) -> int:
    """Return how many parts rows have that are multiplied in matrix tiles: 1, or PARTS where more precision is asked for."""
    return 1 if low.precision is Precision.MEDIUM else PARTS


def tiles_precision(low: Lowering) -> str:
    """Return what operands are multiplied in, in matrix tiles, as reports say it."""
    return BFLOAT16 if parts_of(low) == 1 else PARTED


@dataclasses.dataclass(frozen=True, slots=True)
class PairsKernel:
    """Elements of float32 rounded to bfloat16."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"pairs_bf16_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_pairs(module, symbol)


def as_pairs(low: Lowering, node: Node, data: Buffer) -> Buffer:
    """Return elements rounded to bfloat16, a copy that all products of the same elements share."""
    key = ("pairs", data)
    if key not in low.shared:
        low.shared[key] = low.temporary(DataType.BFLOAT16, data.shape)

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            count = sizes.product(data.shape)
            return [count], -(-count // PAIR_BLOCK)

        low.move("Round", low.kernel(PairsKernel()), [data, low.shared[key]], plan, node)
    return low.shared[key]


@dataclasses.dataclass(frozen=True, slots=True)
class PairRowsKernel:
    """Rows of float32 rounded to bfloat16, with zeros behind them."""

    parts: int = 1
    """Of each row."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"{'pair' if self.parts == 1 else 'part'}_rows_bf16_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        (write_pair_rows if self.parts == 1 else write_part_rows)(module, symbol)


def as_pair_rows(low: Lowering, node: Node, data: Buffer) -> Buffer:
    """Return rows rounded to bfloat16, whole tiles long, in parts or not: a copy that all products of the same rows share.

    Behind the last row is memory for those that a tile reads besides.
    """
    key = ("pair rows", data)
    if key not in low.shared:
        K, rows = data.shape[-1], product(data.shape[:-1])
        length = -(-K // _TILE_ELEMENTS) * _TILE_ELEMENTS
        low.shared[key] = low.temporary(DataType.BFLOAT16, (rows + (TILE - 1), length * parts_of(low)))

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            return [sizes(K), sizes(length)], sizes(rows)

        low.move("Round", low.kernel(PairRowsKernel(parts_of(low))), [data, low.shared[key]], plan, node)
    return low.shared[key]
