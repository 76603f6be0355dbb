"""Copy elements that lie in no order of rows, dense in the result: every second one, backwards, a few of each row.

Where the elements of some inner dimensions lie, from the first one on, stands in a table, which is made once for a call. The
dimension around them is a line, of which several places go by the table at a time:

    x (…, 1000, 3) with the last axis backwards     table 2 1 0     line of 1000 places, 3 apart     2 1 0 5 4 3 8 7 6 …
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.gather import TABLE, row_offset, take_lines
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["PlacesParams", "write_places"]

SOURCE, RESULT = range(2)
"""The buffers of the kernel."""

_LINE, _STEP, _BLOCK, _INNER_RANK, _INNER = range(5)
MOST_INNER = 8
"""The most dimensions of a table."""
_RANK = _INNER + 2 * MOST_INNER
_MOST_PLACES = TABLE


@dataclass(frozen=True, slots=True)
class PlacesParams:
    """The integer parameters of the kernel."""

    line: int
    """Places of a line."""
    step: int
    """From one to the next in the source, in elements."""
    block: int
    """Places in one task."""
    inner: tuple[tuple[int, int], ...]
    """For each dimension of the table, innermost first: its size, and its stride in the source."""
    outer: tuple[tuple[int, int], ...]
    """The same of each dimension around the line, outermost first."""

    @staticmethod
    def of(dims: Sequence[tuple[int, int]], grain: int) -> PlacesParams:
        """Return the parameters for sizes and strides of all dimensions, outermost first, with tasks of about `grain` elements."""
        inner: list[tuple[int, int]] = []
        count, outer = 1, list(dims)
        while len(outer) > 1 and len(inner) < MOST_INNER and count * outer[-1][0] <= _MOST_PLACES:
            inner.append(outer.pop())
            count *= inner[-1][0]
        line, step = outer.pop()
        return PlacesParams(line, step, max(grain // max(count, 1), 1), tuple(inner), tuple(outer))

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        inner = [word for dim in self.inner for word in dim]
        outer = [word for dim in self.outer for word in dim]
        padding = [0] * (2 * MOST_INNER - len(inner))
        return [self.line, self.step, self.block, len(self.inner), *inner, *padding, len(self.outer), *outer]

    def tasks(self) -> int:
        """Return how many tasks it is; none if there is no element."""
        if not math.prod(size for size, _ in self.inner):
            return 0
        return math.prod(size for size, _ in self.outer) * -(-self.line // self.block)


def write_places(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol` for elements of type `element`, an integer of their size; parameters as in PlacesParams."""
    with module.kernel(symbol) as b:
        line, step, block = b.param(_LINE), b.param(_STEP), b.param(_BLOCK)
        table = b.stack(I64, TABLE)
        count = _fill(b, table)
        blocks = (line + block - 1) // block
        source, result = b.buffer(SOURCE, element), b.buffer(RESULT, element)
        with b.loop(b.begin, b.end) as task:
            row, first = task // blocks, task % blocks * block
            data = source.at(row_offset(b, row, _RANK) + first * step)
            target = result.at((row * line + first) * count)
            take_lines(b, data, target, table, (b.min(block, line - first), count, step))


def _fill(b: Kernel, table: Pointer) -> Register:
    """Fill the table, dimension by dimension from the innermost one on; return how many places it has."""
    table.store(0)
    count = b.variable(b.const(I64, 1))
    with b.loop(0, b.param(_INNER_RANK)) as dim:
        size, stride = b.param_at(dim * 2 + _INNER), b.param_at(dim * 2 + (_INNER + 1))
        filled = count.value
        with b.loop(filled, size * filled) as place:
            table.store(table.load(place - filled) + stride, place)
        count.set(filled * size)
    return count.value
