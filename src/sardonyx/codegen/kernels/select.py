"""Find elements by what they are, and take what conditions choose; how many there are is known only afterwards.

    write_nonzero    result[d, j] = coordinate d of the j-th element that is not 0, in row-major order
    write_chosen     result[j] = place of the j-th condition that holds
    write_taken      result[o, j, :] = data[o, places[j], :]

The result is dense: its rows are as long as elements were found, which the first two store in LENGTH and the third reads there.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, I32, I64, U16, Kind, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.ranking import each_lane

__all__ = ["write_chosen", "write_nonzero", "write_taken"]

X, RESULT, LENGTH = range(3)
"""The buffers of `write_nonzero` and `write_chosen`."""
DATA, PLACES, COUNT, TAKEN = range(4)
"""The buffers of `write_taken`."""


def write_nonzero(module: Module, symbol: str, kind: Type, rank: int) -> None:
    """Write the kernel `symbol`, one task; parameters: rows, elements of one, then for each other dimension size and rows in one.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        kind: the type of the elements; NaN is not 0.
        rank: how many dimensions there are, at least 1.
    """
    with module.kernel(symbol) as b:
        rows, inner = b.param(0), b.param(1)
        x, result = b.buffer(X, kind), b.buffer(RESULT, I64)
        with b.loop(b.begin, b.end):
            total = _count(b, x, rows * inner)
            b.buffer(LENGTH, I64).store(total)
            last, found = result.at(total * (rank - 1)), b.variable(b.const(I64, 0))
            with b.loop(0, rows) as row:
                first = b.variable(found.value).value
                source = x.at(row * inner)
                for i, span in b.vectors(0, inner, I32):
                    with each_lane(b, _is_set(b, source.load(i, span), span)) as lane:
                        last.store(i + lane, found.value)
                        found.add(1)
                for axis in range(rank - 1):
                    size, stride = b.param(2 + 2 * axis), b.param(3 + 2 * axis)
                    with b.when(found.value > first):
                        coordinate = row // stride % size
                        for j, span in b.vectors(first, found.value, I64):
                            result.at(total * axis).store(coordinate, j, span)


def write_chosen(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, one task; parameter: how many conditions there are."""
    with module.kernel(symbol) as b:
        conditions, result, found = b.buffer(X, BOOL), b.buffer(RESULT, I64), b.variable(b.const(I64, 0))
        with b.loop(b.begin, b.end):
            for i, span in b.vectors(0, b.param(0), I32):
                with each_lane(b, _masked(conditions.load(i, span), span)) as lane:
                    result.store(i + lane, found.value)
                    found.add(1)
        b.buffer(LENGTH, I64).store(found.value)


def write_taken(module: Module, symbol: str, element: Type, *, single: bool) -> None:
    """Write the kernel `symbol`; parameters: places on the axis, elements of what one takes. A task is one o.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: an integer of the size of the elements.
        single: whether a place takes one element.
    """
    with module.kernel(symbol) as b:
        axis, inner = b.param(0), b.const(I64, 1) if single else b.param(1)
        places, count = b.buffer(PLACES, I64), b.buffer(COUNT, I64).load()
        with b.loop(b.begin, b.end) as outer:
            data, result = b.buffer(DATA, element).at(outer * axis * inner), b.buffer(TAKEN, element).at(outer * count * inner)
            with b.loop(0, count) as j:
                _copy(b, result.at(j * inner), data.at(places.load(j) * inner), inner, single=single)


def _copy(b: Function, result: Pointer, source: Pointer, length: Register, *, single: bool) -> None:
    if single:
        result.store(source.load())
        return
    for i, span in b.vectors(0, length, source.element):
        result.store(source.load(i, span), i, span)


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
