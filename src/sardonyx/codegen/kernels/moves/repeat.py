"""Repeat short rows: result[row, time, i] = source[row, i], dense in the result.

A row that is shorter than a register is stored by whole registers all the same, from the first time to the last: what lies behind
it is overwritten by the next one. Rows that are repeated many times are first written side by side into one register.

    row a b c       a b c ? ? ? ? ?
                          a b c ? ? ? ? ?         at the end of a task element by element, or under a mask
                                a b c …
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["RepeatParams", "write_repeat"]

SOURCE, RESULT = range(2)
"""The buffers of the kernel."""

_INNER, _TIMES, _ROWS, _BLOCK_ROWS, _BLOCK_TIMES, _RANK, _DIMS = range(7)
_MANY_TIMES = 64
"""From so many times on a register is filled with rows side by side."""


@dataclass(frozen=True, slots=True)
class RepeatParams:
    """The integer parameters of the kernel."""

    inner: int
    """Elements of a row, dense on both sides."""
    times: int
    """How often each is repeated."""
    outer: tuple[tuple[int, int], ...]
    """For each dimension of rows, outermost first: its size, and its stride in the source."""
    block_rows: int
    """Rows in one task."""
    block_times: int
    """Times of a row in one task."""

    @staticmethod
    def blocked(inner: int, times: int, outer: Sequence[tuple[int, int]], *, grain: int) -> RepeatParams:
        """Return the parameters with tasks of about `grain` elements."""
        whole = inner * times <= grain
        block_rows = max(grain // max(inner * times, 1), 1) if whole else 1
        return RepeatParams(inner, times, tuple(outer), block_rows, max(times if whole else grain // max(inner, 1), 1))

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        head = [self.inner, self.times, self._rows, self.block_rows, self.block_times, len(self.outer)]
        return [*head, *(word for dim in self.outer for word in dim)]

    def tasks(self) -> int:
        """Return how many tasks it is; none if there is no element."""
        return -(-self._rows // self.block_rows) * -(-self.times // self.block_times) if self.inner else 0

    @property
    def _rows(self) -> int:
        rows = 1
        for size, _ in self.outer:
            rows *= size
        return rows


def write_repeat(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol` for elements of type `element`, an integer of their size; parameters as in RepeatParams."""
    with module.kernel(symbol) as b:
        inner, times = b.param(_INNER), b.param(_TIMES)
        block_rows, block_times, lanes = b.param(_BLOCK_ROWS), b.param(_BLOCK_TIMES), b.lanes(element)
        across = (times + block_times - 1) // block_times
        buffer = b.stack(element, 2 * lanes, align=64)
        with b.loop(b.begin, b.end) as task:
            first_row, first_time = task // across * block_rows, task % across * block_times
            last_row = b.min(first_row + block_rows, b.param(_ROWS))
            count = b.min(times - first_time, block_times)
            with b.loop(first_row, last_row) as row:
                source, target = _source_row(b, element, row), b.buffer(RESULT, element).at((row * times + first_time) * inner)
                rows_behind = (last_row - 1 - row) * (times * inner)
                _repeat_row(b, source, target, buffer, (inner, count), rows_behind)


def _source_row(b: Kernel, element: Type, row: Register) -> Pointer:
    """Return where a row of the source begins."""
    offset, rest = b.variable(row.like(0)), b.variable(row)
    with b.loop(0, b.param(_RANK)) as number:
        place = (b.param(_RANK) - 1 - number) * 2 + _DIMS
        size = b.param_at(place)
        offset.add(rest.value % size * b.param_at(place + 1))
        rest.set(rest.value // size)
    return b.buffer(SOURCE, element).at(offset.value)


def _repeat_row(
    b: Kernel, source: Pointer, target: Pointer, buffer: Pointer, size: tuple[Register, Register], behind: Register
) -> None:
    """Store a row of some elements some times; so many elements behind them belong to the task too, and are stored later."""
    lanes, (inner, count) = b.lanes(source.element), size

    def long() -> None:
        with b.loop(0, count) as time:
            copy_elements(b, target.at(time * inner), source, inner)

    def short() -> None:
        copy_elements(b, buffer, source, inner)
        several, room = b.variable(inner.like(1)), inner * count + behind
        with b.when(count >= _MANY_TIMES):
            several.set(inner.like(lanes) // inner)
            with b.loop(inner, several.value * inner) as i:
                buffer.store(buffer.load(i - inner), i)
        step = several.value
        safe = b.max(b.min((room - lanes) // (step * inner) + 1, count // step), 0)
        safe = b.select(room >= lanes, safe, 0)
        vector = _vector_of(b, source, buffer, inner, step)
        with b.loop(0, safe) as turn:
            target.store(vector, turn * (step * inner), lanes)
        with b.loop(safe * step, count) as time:
            copy_elements(b, target.at(time * inner), source, inner)

    b.branch(inner >= lanes, long, short)


def _vector_of(b: Kernel, source: Pointer, buffer: Pointer, inner: Register, step: Register) -> Register:
    """Return a row, or several side by side, in one register."""
    lanes = b.lanes(source.element)
    if not b.target.has_masks:
        return buffer.load(0, lanes)
    found = b.variable(source.load(0, Span(lanes, b.tail_mask(inner, lanes))))
    with b.when(step > 1):
        found.set(buffer.load(0, lanes))
    return found.value
