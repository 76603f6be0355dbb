"""Operands of attention in pairs of bfloat16, as dot products of pairs read them.

keys      (B, M, T, D)   ->   words (B, M, T, D / 2), of two elements of a key each; behind an odd D is a zero
values    (B, M, T, Dv)  ->   words (B, M, T / 2, Dv), of the same element of two keys; behind an odd T are zeros
"""

from __future__ import annotations

from collections.abc import Iterator

from sardonyx.codegen.emit.bfloat_dots import to_factor
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, U16, U32
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["PairParams", "pair_of_rows", "pairs_of_row", "write_key_pairs", "write_value_pairs"]

_ROWS = 32
"""Rows of a task."""

_PARAMS = ("heads", "rows", "keys", "size", "stride_batch", "stride_head", "stride")


@dataclass(frozen=True, slots=True)
class PairParams:
    """The integer parameters of both kernels."""

    heads: int
    """M."""
    rows: int
    """Rows that are made: T, or pairs of them."""
    keys: int
    """T."""
    size: int
    """D or Dv."""
    strides: tuple[int, int, int]
    """Elements from one batch, head and key to the next."""

    def words(self) -> list[int]:
        """Return the parameters as the kernels read them."""
        return [self.heads, self.rows, self.keys, self.size, *self.strides]

    def tasks(self, batch: int) -> int:
        """Return how many tasks there are."""
        return batch * self.heads * -(-self.rows // _ROWS)


def pairs_of_row(b: Kernel, row: Pointer, first: Register, end: Register, scale: Register | None = None) -> Register:
    """Return two vectors of float32 from `first` on as one of words; behind `end` are zeros."""
    lanes = b.lanes(F32)
    halves = []
    for place in (first, first + lanes):
        span = Span(lanes, b.tail_mask(b.max(b.min(end - place, lanes), 0), lanes))
        values = row.load(place, span)
        halves.append(to_factor(b, values if scale is None else values * scale).bits_as(U16.vector(lanes)))
    return halves[0].shuffle(range(2 * lanes), halves[1]).bits_as(F32.vector(lanes))


def pair_of_rows(b: Kernel, low: Register, high: Register) -> Register:
    """Return words of the elements of two vectors of float32."""
    first, second = (to_factor(b, part).bits_as(U16.vector(part.type.lanes)).to(U32) for part in (low, high))
    return (first | (second << 16)).bits_as(F32.vector(low.type.lanes))


def write_key_pairs(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers keys (float32), words; parameters as in PairParams."""
    with module.kernel(symbol) as b:
        lanes, size, stride = b.lanes(F32), _param(b, "size"), _param(b, "stride")
        width = (size + 1) // 2
        for source, result, rows in _blocks(b, width):
            with b.loop(*rows) as row, b.loop(0, width, lanes) as d:
                span = Span(lanes, b.tail_mask(b.min(width - d, lanes), lanes))
                result.store(pairs_of_row(b, source.at(row * stride), d * 2, size), row * width + d, span)


def write_value_pairs(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers values (float32), words; parameters as in PairParams."""
    with module.kernel(symbol) as b:
        keys, size, stride = (_param(b, name) for name in ("keys", "size", "stride"))
        for source, result, rows in _blocks(b, size):
            with b.loop(*rows) as row:
                low, has_other = source.at(row * 2 * stride), row * 2 + 1 < keys
                high = low.at(b.select(has_other, stride, 0))
                for d, span in b.vectors(0, size, F32):
                    other = high.load(d, span)
                    two = low.load(d, span), b.select(has_other, other, other.like(0.0))
                    result.store(pair_of_rows(b, *two), row * size + d, span)


def _param(b: Kernel, name: str) -> Register:
    return b.param(_PARAMS.index(name))


def _blocks(b: Kernel, width: Register) -> Iterator[tuple[Pointer, Pointer, tuple[Register, Register]]]:
    """Walk the tasks: where the head of each begins, where its rows of `width` words go, and which rows it makes."""
    heads, rows = _param(b, "heads"), _param(b, "rows")
    pieces = (rows + (_ROWS - 1)) // _ROWS
    with b.loop(b.begin, b.end) as task:
        head, first = task // pieces, task % pieces * _ROWS
        source = b.buffer(0, F32).at(head // heads * _param(b, "stride_batch") + head % heads * _param(b, "stride_head"))
        yield source, b.buffer(1, F32).at(head * rows * width), (first, b.min(first + _ROWS, rows))
