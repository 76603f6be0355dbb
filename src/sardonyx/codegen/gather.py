"""Take rows of an array by index: result[o, j, :] = data[o, indices[j], :].

A task is a block of j for all of one outer index. An index counts from the end where it is negative; one outside the axis writes
nothing and is reported in the status word as its place among the indices, plus 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.codegen.builder import Function
from sardonyx.codegen.module import Module
from sardonyx.codegen.types import I64, Type
from sardonyx.codegen.values import Pointer, Value

__all__ = ["GatherParams", "write_gather"]

DATA, INDICES, RESULT, STATUS = range(4)
"""The buffers of the kernel."""


@dataclass(frozen=True, slots=True)
class GatherParams:
    """The integer parameters of the kernel, in their order."""

    axis: int
    """How long the axis is that indices count along."""
    count: int
    """How many indices there are."""
    inner: int
    """Elements of one row."""
    outer: int
    """How many times the axis is gathered from."""
    block: int
    """Indices in one task."""

    def words(self) -> list[int]:
        """The parameters as the kernel reads them."""
        return [self.axis, self.count, self.inner, self.block]

    def tasks(self) -> int:
        """How many tasks it is."""
        return self.outer * -(-self.count // self.block)


def write_gather(module: Module, symbol: str, element: Type, index: Type) -> None:
    """Write the kernel `symbol` for data of type `element` and indices of type `index`: I32 or I64."""
    with module.kernel(symbol) as b:
        axis, count, inner, block = (b.param(place) for place in range(4))
        data, indices, result = b.buffer(DATA, element), b.buffer(INDICES, index), b.buffer(RESULT, element)
        blocks = (count + block - 1) // block
        with b.loop(b.begin, b.end) as task:
            outer, first = task // blocks, task % blocks * block
            with b.loop(first, b.min(first + block, count)) as j:
                given = indices.load(j).to(I64)
                row = b.select(given < 0, given + axis, given)
                b.branch(
                    (row >= 0) & (row < axis),
                    lambda: _copy(b, result.at((outer * count + j) * inner), data.at((outer * axis + row) * inner), inner),
                    lambda: b.buffer(STATUS, I64).store(j + 1),
                )


def _copy(b: Function, result: Pointer, source: Pointer, length: Value) -> None:
    for i, span in b.vectors(0, length, source.element):
        result.store(source.load(i, span), i, span)
