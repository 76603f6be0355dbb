"""Set an array into a larger one, or a part of it into another frame.

    result   0 ... begin ......... begin + length ... out          along each dimension
    source         skip .......... skip + length ... size

Between begin and begin + length the result is the source from `skip` on. Elsewhere it is a constant, or an element of that part of
the source again: the nearest one (edge), or the one found by turning back at the ends (reflect) or by going round (wrap).
Elements are moved as integers of their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["MODES", "PadDim", "PadParams", "write_pad"]

SOURCE, NUMBER, RESULT = range(3)
"""The buffers of the kernel; the second holds the constant, and is read in that mode only."""


@dataclass(frozen=True, slots=True)
class PadDim:
    """One dimension. The kernel relies on begin + length <= out and skip + length <= size, with no number below 0."""

    out: int
    """Its length in the result."""
    begin: int
    """Where in the result the source begins, `out` where none of it is there."""
    length: int
    """How much of the source there is."""
    skip: int
    """How much of the source is left out before."""
    size: int
    """Its length in the source."""

    @staticmethod
    def of(size: int, before: int, after: int) -> PadDim:
        """Return a dimension that grows by `before` and `after`, which may be negative; `after` may cut away what `before` adds."""
        out = max(size + before + after, 0)
        skip = min(max(-before, 0), size)
        length = max(size - skip - max(-after, 0), 0)
        return PadDim(out, min(max(before, 0), out), length, skip, size)

    @property
    def is_whole(self) -> bool:
        """Whether the result is the source."""
        return self.out == self.size == self.length

    def times(self, count: int) -> PadDim:
        """Return the dimension with `count` elements in place of each."""
        return PadDim(self.out * count, self.begin * count, self.length * count, self.skip * count, self.size * count)


@dataclass(frozen=True, slots=True)
class PadParams:
    """The integer parameters of the kernel."""

    outer: tuple[PadDim, ...]
    """All dimensions but the last."""
    inner: PadDim
    """The last one: a row."""
    block: int
    """Rows in one task."""

    @staticmethod
    def over(dims: Sequence[PadDim], mode: str, grain: int) -> PadParams:
        """Return the parameters for these dimensions; whole ones are taken together with the one before, where the mode allows."""
        merged: list[PadDim] = [PadDim(1, 0, 1, 0, 1)]
        for dim in dims:
            last = merged[-1]
            if dim.is_whole and (mode == "constant" or last.is_whole):
                merged[-1] = last.times(dim.out)
            else:
                merged.append(dim)
        *outer, inner = merged
        return PadParams(tuple(outer), inner, max(grain // max(inner.out, 1), 1))

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        outer = self.outer or (PadDim(1, 0, 1, 0, 1),)
        words = [self._rows, self.block, self.inner.out, self.inner.begin, self.inner.length, self.inner.skip, len(outer)]
        stride = self.inner.size
        dims: list[list[int]] = []
        for dim in reversed(outer):
            dims.append([dim.out, dim.begin, dim.length, dim.skip, stride])
            stride *= dim.size
        return [*words, *(word for dim in dims for word in dim)]

    def tasks(self) -> int:
        """Return how many tasks it is; none if the result is empty."""
        return -(-self._rows // self.block) if self.inner.out else 0

    @property
    def _rows(self) -> int:
        return math.prod(dim.out for dim in self.outer)


_ROWS, _BLOCK, _OUT, _BEGIN, _LENGTH, _SKIP, _RANK, _DIMS = range(8)


def _edge(b: Function, place: Register, length: Register) -> Register:
    return b.max(b.min(place, length - 1), 0)


def _reflect(b: Function, place: Register, length: Register) -> Register:
    """Reflect an index once, or, where that is not enough, as often as it takes, which needs a division."""
    last = length - 1
    found = b.variable(b.select(place < 0, -place, b.select(place > last, last * 2 - place, place)))
    with b.when((found.value < 0) | (found.value > last)):
        period = b.max(last * 2, 1)
        folded = _wrap(b, place, period)
        found.set(b.min(folded, b.max(period - folded, 0)))
    return found.value


def _wrap(b: Function, place: Register, length: Register) -> Register:
    rest = place % length
    return b.select(rest < 0, rest + length, rest)


MODES: Mapping[str, Callable[[Function, Register, Register], Register] | None] = {
    "constant": None,
    "edge": _edge,
    "reflect": _reflect,
    "wrap": _wrap,
}
"""Mode -> which of `length` elements stands at a place before, in or behind them; None for no element."""


def write_pad(module: Module, symbol: str, element: Type, mode: str) -> None:
    """Write the kernel `symbol` for elements of the size of `element`. In all modes but "constant" no `length` is 0."""
    with module.kernel(symbol) as b:
        rows, block, out = b.param(_ROWS), b.param(_BLOCK), b.param(_OUT)
        source, result = b.buffer(SOURCE, element), b.buffer(RESULT, element)
        first, last, together = b.begin * block, b.min(b.end * block, rows), b.param(_DIMS)
        with b.loop(first // together, (last + together - 1) // together) as line:
            around, is_there = _source_line(b, line, MODES[mode])
            begin = line * together
            with b.loop(b.max(begin, first), b.min(begin + together, last)) as row:
                offset, inside = _step(b, row - begin, b.const(I64, _DIMS), MODES[mode])
                target, start = result.at(row * out), source.at(around + offset + b.param(_SKIP))
                if mode == "constant":
                    _write_constant_row(b, target, start, inside & is_there)
                else:
                    _write_row(b, target, start, MODES[mode])


_Find: TypeAlias = "Callable[[Function, Register, Register], Register] | None"


def _source_line(b: Kernel, line: Register, find: _Find) -> tuple[Register, Register]:
    """Return where the rows of the source begin that stand in a line of rows of the result, and whether there are any."""
    rest, offset, inside = b.variable(line), b.variable(b.const(I64, 0)), b.variable(b.const(BOOL, True))
    with b.loop(1, b.param(_RANK)) as number:
        first = number * 5 + _DIMS
        out = b.param_at(first)
        step, is_there = _step(b, rest.value % out, first, find)
        rest.set(rest.value // out)
        inside.set(inside.value & is_there)
        offset.add(step)
    return offset.value, inside.value


def _step(b: Kernel, index: Register, first: Register, find: _Find) -> tuple[Register, Register]:
    """Return how far into the source an index of a dimension leads, whose words begin with `first`, and whether it is there."""
    begin, length, skip, stride = (b.param_at(first + word) for word in range(1, 5))
    place = index - begin
    inside = (place >= 0) & (place < length)
    return ((place if find is None else find(b, place, length)) + skip) * stride, inside


def _write_constant_row(b: Kernel, target: Pointer, start: Pointer, inside: Register) -> None:
    begin, out = b.select(inside, b.param(_BEGIN), 0), b.param(_OUT)
    end = b.select(inside, begin + b.param(_LENGTH), 0)
    number = b.buffer(NUMBER, target.element).load()
    for first, last in ((b.const(I64, 0), begin), (end, out)):
        for i, span in b.vectors(first, last, target.element):
            target.store(number, i, span)
    copy_elements(b, target.at(begin), start, end - begin)


def _write_row(b: Kernel, target: Pointer, start: Pointer, find: _Find) -> None:
    begin, length, out = b.param(_BEGIN), b.param(_LENGTH), b.param(_OUT)
    if find is None:
        raise ValueError("a row of no elements is a constant one")
    for first, last in ((b.const(I64, 0), begin), (begin + length, out)):
        with b.loop(first, last) as i:
            target.store(start.load(find(b, i - begin, length)), i)
    copy_elements(b, target.at(begin), start, length)
