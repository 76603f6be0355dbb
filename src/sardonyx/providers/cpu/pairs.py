"""Operands of products in pairs of bfloat16: where the session asks for less precision, and the processor multiplies those fast."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.bfloat_dots import has_fast_dot2
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.pairs import PAIR_BLOCK, write_pairs
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["as_pairs", "multiplies_pairs"]


def multiplies_pairs(low: Lowering, *lengths: int) -> bool:
    """Return whether products are computed of pairs, of which rows of these lengths are made whole."""
    return low.precision is Precision.MEDIUM and has_fast_dot2(low.target) and not any(length % 2 for length in lengths)


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
