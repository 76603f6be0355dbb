"""The sums of one tile of a convolution of 8-bit integers, in registers, and what is stored of them."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.types import I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import least
from sardonyx.codegen.kernels.conv import ConvEpilogue, ConvTiling
from sardonyx.codegen.kernels.conv_rows import result_of
from sardonyx.codegen.kernels.narrowing import narrow_together
from sardonyx.codegen.kernels.tiles import is_long

__all__ = ["DotTile"]

_OUTPUT = 2
"""The buffer of the results."""


class DotTile:
    """The accumulators of one tile, and its elements in the output."""

    def __init__(
        self,
        b: Kernel,
        shape: ConvTiling,
        table: Pointer,
        vectors: int,
        height: int,
        column: Register,
        n: Register,
        remaining: Register,
        begins: Sequence[Register],
    ) -> None:
        self._b, self._lanes, self._table = b, shape.lanes, table
        self._vectors, self._height, self._column, self._n, self._remaining = vectors, height, column, n, remaining
        left = least(b, remaining - (vectors - 1) * shape.lanes, b.const(I64, shape.lanes))
        self._spans = [Span(shape.lanes)] * (vectors - 1) + [Span(shape.lanes, b.tail_mask(left, shape.lanes))]
        self.sums = [b.variable(begin) for begin in begins]

    def finish(self, output: Type, epilogue: ConvEpilogue | None) -> None:
        """Store what the epilogue makes of the sums, under a mask; where masks are not free, without one where all is there."""
        b, lanes = self._b, self._lanes
        store = self._in_a_loop if epilogue is not None and is_long(b.target, epilogue, I32) else self._one_by_one
        result = b.buffer(_OUTPUT, output)
        if b.target.has_masks:
            store(result, epilogue, self._spans)
            return
        whole = [Span(lanes)] * self._vectors
        b.branch(
            self._remaining >= self._vectors * lanes,
            lambda: store(result, epilogue, whole),
            lambda: store(result, epilogue, self._spans),
        )

    def _one_by_one(self, result: Pointer, epilogue: ConvEpilogue | None, spans: Sequence[Span]) -> None:
        for i in range(self._height):
            self._store_row(result, epilogue, spans, i, [total.value for total in self.sums[i * len(spans) :][: len(spans)]])

    def store_row(self, result: Pointer, epilogue: ConvEpilogue | None, i: Register, sums: Sequence[Register]) -> None:
        """Store what the epilogue makes of the sums of a row; masks are free where there are matrix tiles."""
        self._store_row(result, epilogue, self._spans, i, sums)

    def _in_a_loop(self, result: Pointer, epilogue: ConvEpilogue | None, spans: Sequence[Span]) -> None:
        b, lanes = self._b, self._lanes
        kept = b.stack(I32, lanes * len(self.sums), align=64)
        for number, total in enumerate(self.sums):
            kept.store(total.value, number * lanes, lanes)
        with b.loop(0, self._height) as i:
            row = kept.at(i * (lanes * len(spans)))
            self._store_row(result, epilogue, spans, i, [row.load(j * lanes, lanes) for j in range(len(spans))])

    def _store_row(
        self, result: Pointer, epilogue: ConvEpilogue | None, spans: Sequence[Span], i: Register | int, sums: Sequence[Register]
    ) -> None:
        b, lanes, start = self._b, self._lanes, result_of(self._table, i) + self._n
        positions = [(start + j * lanes, self._column + j * lanes, span) for j, span in enumerate(spans)]
        is_whole = all(span.mask is None for span in spans)
        packed = narrow_together(b, epilogue, sums, positions) if b.target.has_masks or is_whole else None
        if packed is not None:
            result.store(packed, start, Span(packed.type.lanes, None if is_whole else self._mask(packed.type.lanes)))
            return
        for total, (place, channel, span) in zip(sums, positions, strict=True):
            result.store(total if epilogue is None else epilogue(b, total, place, channel, span), place, span)

    def _mask(self, lanes: int) -> Register:
        """Return which of the columns of a whole row are there."""
        columns = self._b.const(I64, self._vectors * self._lanes)
        return self._b.tail_mask(least(self._b, self._remaining, columns), lanes)
