"""Copy channels-last images into larger ones with a border, for kernels that would ask at every tap whether it is there.

One row of the result, the elements along the last spatial axis with their channels, is one task:

    0 0 0 │ a row of the input │ 0 0        a row above, below, before or behind the input is all border

The border is zeros, or a number that the kernel reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, F32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["BorderParams", "write_border"]


@dataclass(frozen=True, slots=True)
class BorderParams:
    """The parameters of the kernel. Sizes are those of the spatial axes, outermost first; along each the border may differ."""

    images: int
    channels: int
    sizes: Sequence[int]
    begins: Sequence[int]
    """Elements of border before the first element of each axis."""
    results: Sequence[int]
    """Elements of the result along each axis: at least begin + size."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them: a row, counted in numbers, then the axes around it."""
        row = [axis[-1] * self.channels for axis in (self.sizes, self.begins, self.results)]
        around = zip(self.sizes[:-1], self.begins[:-1], self.results[:-1], strict=True)
        return row + [word for axis in around for word in axis]

    def tasks(self) -> int:
        """Return how many tasks the copy is."""
        return self.images * math.prod(self.results[:-1])


def write_border(module: Module, symbol: str, rank: int, element: Type = F32, *, reads_border: bool = False) -> None:
    """Write the kernel `symbol` for `rank` spatial axes; buffers are the input and the result, params as in BorderParams.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        rank: the number of spatial axes.
        element: the type of the elements.
        reads_border: whether the element of the border is that of a buffer between these two; it is 0 else.
    """
    with module.kernel(symbol) as b:
        border = b.buffer(1, element).load() if reads_border else b.const(element, 0)
        width, begin, result = b.param(0), b.param(1), b.param(2)
        axes = [(b.param(3 + 3 * axis), b.param(4 + 3 * axis), b.param(5 + 3 * axis)) for axis in range(rank - 1)]
        with b.loop(b.begin, b.end) as task:
            row, inside = _row_of(b, axes, task)
            target = b.buffer(1 + reads_border, element).at(task * result)
            source = b.buffer(0, element).at(row * width)
            after = begin + width

            def copy(target: Pointer = target, source: Pointer = source, after: Register = after) -> None:
                _fill(b, target, border, b.const(I64, 0), begin)
                for i, span in b.vectors(0, width, element):
                    target.store(source.load(i, span), i + begin, span)
                _fill(b, target, border, after, result)

            def clear(target: Pointer = target) -> None:
                _fill(b, target, border, b.const(I64, 0), result)

            b.branch(inside, copy, clear)


def _row_of(b: Function, axes: Sequence[tuple[Register, Register, Register]], task: Register) -> tuple[Register, Register]:
    """Return the row of the input that a row of the result shows, and whether there is one."""
    inside = b.const(BOOL, True)
    rest, row, reach = task, b.const(I64, 0), b.const(I64, 1)
    for size, begin, result in reversed(axes):
        place = rest % result - begin
        rest = rest // result
        inside = inside & (place >= 0) & (place < size)
        row, reach = row + place * reach, reach * size
    return row + rest * reach, inside


def _fill(b: Function, target: Pointer, border: Register, first: Register, last: Register) -> None:
    for i, span in b.vectors(first, last, target.element):
        target.store(border, i, span)
