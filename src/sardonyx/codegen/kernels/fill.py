"""Arrays that follow from a few numbers: stored, filled, counted."""

from __future__ import annotations

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type

__all__ = ["TASK_ELEMENTS", "write_count", "write_eye", "write_fill", "write_store"]

TASK_ELEMENTS = 1 << 14
"""Elements of one task of `write_fill` and `write_count`, whose only parameter is how many elements there are."""


def write_store(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol`: its buffer gets the numbers among its parameters, which are their count and then they."""
    with module.kernel(symbol) as b:
        result = b.buffer(0, element)
        with b.loop(b.begin, b.end), b.loop(0, b.param(0)) as place:
            result.store(b.param_at(place + 1).to(element), place)


def write_fill(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol`: every element of the second buffer is the one of the first."""
    with module.kernel(symbol) as b:
        number, result, count = b.buffer(0, element).load(), b.buffer(1, element), b.param(0)
        with b.loop(b.begin, b.end) as task:
            for place, span in b.vectors(task * TASK_ELEMENTS, b.min((task + 1) * TASK_ELEMENTS, count), element):
                result.store(number, place, span)


def write_eye(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol`: the second buffer is a matrix with the element of the first on a diagonal, and zeros.

    Parameters: rows, columns, the number of the diagonal, which lies in the matrix or beside it, and rows in one task.
    """
    with module.kernel(symbol) as b:
        one, result = b.buffer(0, element).load(), b.buffer(1, element)
        rows, columns, diagonal, block = (b.param(place) for place in range(4))
        with b.loop(b.begin, b.end) as task:
            first, last = task * block, b.min((task + 1) * block, rows)
            for place, span in b.vectors(first * columns, last * columns, element):
                result.store(0, place, span)
            with b.loop(b.max(first, -diagonal), b.min(last, columns - diagonal)) as row:
                result.store(one, row * columns + row + diagonal)


def write_count(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol`: start and delta are in its first buffers, and the third gets i * delta + start at i.

    Floats are rounded after the product and after the sum.
    """
    with module.kernel(symbol) as b:
        start, delta, result, count = b.buffer(0, element).load(), b.buffer(1, element).load(), b.buffer(2, element), b.param(0)
        with b.loop(b.begin, b.end) as task:
            first, last = task * TASK_ELEMENTS, b.min((task + 1) * TASK_ELEMENTS, count)
            for place, span in b.vectors(first, last, element if element.bits >= 32 else F32):
                number = (b.iota(place.type, span.lanes) + place).to(element)
                result.store(number * delta + start, place, span)
