"""Keys and values of attention as pairs of bfloat16, rounded once for all queries, where less precision is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.attention.pairs import PairParams, write_key_pairs, write_value_pairs
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node
from sardonyx.providers.cpu.kernels.attention_few import Rows
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.strided import dense_strides

__all__ = ["PairedHeads", "as_attention_pairs"]


@dataclasses.dataclass(frozen=True, slots=True)
class PairedHeads:
    """How many heads of keys and values there are, and how large they are."""

    batch: Dim
    count: int
    keys: Dim
    """Those of former runs among them."""
    sizes: tuple[int, int]
    """Of a key, and of a value."""


@dataclasses.dataclass(frozen=True, slots=True)
class AttentionPairsKernel:
    """Keys or values as words of two bfloat16."""

    of_values: bool
    """Whether words hold the same element of two values, not two elements of a key."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"attention_{'value' if self.of_values else 'key'}_pairs_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        (write_value_pairs if self.of_values else write_key_pairs)(module, symbol)


def as_attention_pairs(
    low: Lowering, node: Node, operands: Sequence[Rows], heads: PairedHeads, unless: Callable[[Sizes], bool]
) -> list[Rows]:
    """Return queries, keys and values with the latter two in pairs; no copy is made where a run does `unless`."""
    queries, *rest = operands
    return [queries, *(_paired(low, node, rows, heads, place, unless) for place, rows in enumerate(rest))]


def _paired(low: Lowering, node: Node, given: Rows, heads: PairedHeads, place: int, unless: Callable[[Sizes], bool]) -> Rows:
    source, strides = given
    size = heads.sizes[place]
    rows, width = (-(-heads.keys // 2), size) if place else (heads.keys, -(-size // 2))
    words = low.temporary(DataType.UINT32, (heads.batch, heads.count, rows, width))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        batch, head, row = (sizes(stride) for stride in strides)
        params = PairParams(heads.count, sizes(rows), sizes(heads.keys), size, (batch, head, row))
        return params.words(), params.tasks(sizes(heads.batch))

    low.move("Round", low.kernel(AttentionPairsKernel(bool(place))), [source, words], plan, node, unless=unless)
    batch, head, row, _ = dense_strides(words.shape)
    return words, (batch, head, row)
