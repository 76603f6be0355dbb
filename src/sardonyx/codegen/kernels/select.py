"""Find elements by what they are, and take what conditions choose; how many there are is known only afterwards.

    write_found      COUNTS[t] = how many elements of block t are not 0
    write_nonzero    result[d, j] = coordinate d of the j-th element that is not 0, in row-major order
    write_taken      result[o, j, :] = data[o, places[j], :]

The result is dense: its rows are as long as elements were found, which the second stores in LENGTH and the third reads there.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I32, I64, U16, Kind, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.ranking import each_lane

__all__ = ["found_block", "write_found", "write_nonzero", "write_taken"]

X, COUNTS, RESULT, LENGTH = range(4)
"""The buffers of `write_nonzero`, and the first two those of `write_found`."""
DATA, PLACES, COUNT, TAKEN = range(4)
"""The buffers of `write_taken`."""

_BLOCK, _MOST_BLOCKS = 1 << 16, 1 << 12


def found_block(count: int) -> int:
    """Return how many of `count` elements a block has."""
    return max(_BLOCK, -(-count // _MOST_BLOCKS))


def write_found(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`; a task is a block. Parameters: elements, those of a block."""
    with module.kernel(symbol) as b:
        x, counts, block = b.buffer(X, kind), b.buffer(COUNTS, I64), b.param(1)
        with b.loop(b.begin, b.end) as task:
            first = task * block
            counts.store(_count(b, x.at(first), b.min(block, b.param(0) - first)), task)


def write_nonzero(module: Module, symbol: str, kind: Type, rank: int) -> None:
    """Write the kernel `symbol`; a task is a block, of which there is at least one.

    Parameters: elements, those of a block, blocks, elements of a row, then for each dimension but the last size and rows in one.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        kind: the type of the elements; NaN is not 0.
        rank: how many dimensions there are, at least 1.
    """
    with module.kernel(symbol) as b:
        elements, block, blocks, inner = (b.param(place) for place in range(4))
        x, result, counts = b.buffer(X, kind), b.buffer(RESULT, I64), b.buffer(COUNTS, I64)
        total = _sum(b, counts, blocks)
        with b.when(b.begin.eq(0)):
            b.buffer(LENGTH, I64).store(total)
        last = result.at(total * (rank - 1))
        with b.loop(b.begin, b.end) as task:
            start, found = task * block, b.variable(_sum(b, counts, task))
            stop = b.min(start + block, elements)
            with b.loop(start // inner, (stop + inner - 1) // inner) as row:
                first = b.variable(found.value).value
                source, begin = x.at(row * inner), b.max(start - row * inner, 0)
                for i, span in b.vectors(begin, b.min(stop - row * inner, inner), I32):
                    with each_lane(b, _is_set(b, source.load(i, span), span)) as lane:
                        last.store(i + lane, found.value)
                        found.add(1)
                for axis in range(rank - 1):
                    size, stride = b.param(4 + 2 * axis), b.param(5 + 2 * axis)
                    with b.when(found.value > first):
                        coordinate = row // stride % size
                        for j, span in b.vectors(first, found.value, I64):
                            result.at(total * axis).store(coordinate, j, span)


def _sum(b: Function, counts: Pointer, length: Register) -> Register:
    total = b.variable(length.like(0))
    with b.loop(0, length) as i:
        total.add(counts.load(i))
    return total.value


def write_taken(module: Module, symbol: str, element: Type, *, single: bool) -> None:
    """Write the kernel `symbol`; a task is a block of places of one o.

    Parameters: places on the axis, elements of what one takes, places of a block, blocks of the most places that there may be.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: an integer of the size of the elements.
        single: whether a place takes one element.
    """
    with module.kernel(symbol) as b:
        axis, inner, block, blocks = b.param(0), b.const(I64, 1) if single else b.param(1), b.param(2), b.param(3)
        places, count = b.buffer(PLACES, I64), b.buffer(COUNT, I64).load()
        with b.loop(b.begin, b.end) as task:
            outer, first = task // blocks, task % blocks * block
            data, result = b.buffer(DATA, element).at(outer * axis * inner), b.buffer(TAKEN, element).at(outer * count * inner)
            with b.loop(first, b.min(first + block, count)) as j:
                target, source = result.at(j * inner), data.at(places.load(j) * inner)
                if single:
                    target.store(source.load())
                else:
                    copy_elements(b, target, source, inner)


def _count(b: Kernel, x: Pointer, count: Register) -> Register:
    """Return how many of the elements are not 0."""
    lanes = b.lanes(I32)
    totals = b.variable(b.const(I64.vector(lanes), 0))
    rest = b.variable(b.const(I64, 0))
    for i, span in b.vectors(0, count, I32):
        mask = _is_set(b, x.load(i, span), span)
        if span.lanes == lanes:
            totals.add(mask.to(I64))
        else:
            rest.add(mask.to(I64))
    return (b.sum_lanes(totals.value) if lanes > 1 else totals.value) + rest.value


def _is_set(b: Function, x: Register, span: Span) -> Register:
    if x.type.kind is Kind.BOOL:
        return _masked(x, span)
    if x.type.is_narrow:
        return _masked((x.bits_as(U16) & 0x7FFF).ne(0), span)
    return _masked(x.ne(0.0 if x.type.is_float else 0), span)


def _masked(mask: Register, span: Span) -> Register:
    return mask if span.mask is None else mask & span.mask
