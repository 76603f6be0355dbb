"""Write parts of an array by index, with every index checked before it is used.

    write_scatter             result[i0, i1, …, :] op= updates[j, :]     for the tuple (i0, i1, …) = indices[j, :]
    write_scatter_elements    result[…, j] with the place on one axis replaced by indices[…, j]  op=  updates[…, j]

The result holds the data before. Updates are written in order, by tasks that follow one another: where places recur, the last one
stays, or all are combined in their order. An index counts from the end where it is negative; one outside its axis writes nothing,
and is reported in the status word as its place among the indices, plus 1.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.gather import checked_index, row_offset, tuple_offset

__all__ = ["REDUCTIONS", "write_scatter", "write_scatter_elements"]

INDICES, UPDATES, RESULT, STATUS = range(4)
"""The buffers of the kernels."""

REDUCTIONS: dict[str, Callable[[ElementExpr, ElementExpr], ElementExpr] | None] = {
    "none": None,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": lambda old, new: OPERATORS["max"](old, new),
    "min": lambda old, new: OPERATORS["min"](old, new),
}
"""Name -> what becomes of the old element and the update; None for the update itself."""


def write_scatter(module: Module, symbol: str, element: Type, index: Type, depth: int, reduction: str) -> None:
    """Write the kernel `symbol`; a task is a block of tuples.

    Parameters: how many tuples, the elements of one update, tuples of a block, and (length, stride) of each axis.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: the type of the elements; without a reduction an integer of their size will do.
        index: the type of the indices: I32 or I64.
        depth: how many numbers a tuple has.
        reduction: a name in REDUCTIONS.
    """
    with module.kernel(symbol) as b:
        count, inner, block = (b.param(place) for place in range(3))
        indices, updates, result = b.buffer(INDICES, index), b.buffer(UPDATES, element), b.buffer(RESULT, element)
        with b.loop(b.begin, b.end) as task, b.loop(task * block, b.min((task + 1) * block, count)) as j:
            offset, valid = tuple_offset(b, indices, j, depth, 3)
            with b.when(valid):
                target, source = result.at(offset), updates.at(j * inner)
                for i, span in b.vectors(0, inner, element):
                    _update(b, target, i, source.load(i, span), span, reduction)
            with b.when(~valid):
                b.buffer(STATUS, I64).store(j * depth + 1)


def write_scatter_elements(module: Module, symbol: str, element: Type, index: Type, reduction: str) -> None:
    """Write the kernel `symbol`; a task is a block of updates. Parameters as in GatherElementsParams, `block` counting updates."""
    with module.kernel(symbol) as b:
        inner, inner_stride, axis, axis_stride, rows, block = (b.param(place) for place in range(6))
        indices, updates, result = b.buffer(INDICES, index), b.buffer(UPDATES, element), b.buffer(RESULT, element)
        with b.loop(b.begin, b.end) as task:
            first, last = task * block, b.min((task + 1) * block, rows * inner)
            with b.loop(first // inner, (last + inner - 1) // inner) as row:
                base = result.at(row_offset(b, row, 6))
                with b.loop(b.max(first, row * inner), b.min(last, (row + 1) * inner)) as j:
                    position, valid = checked_index(b, indices.load(j), axis)
                    with b.when(valid):
                        place = (j - row * inner) * inner_stride + position * axis_stride
                        _update(b, base, place, updates.load(j), Span(1), reduction)
                    with b.when(~valid):
                        b.buffer(STATUS, I64).store(j + 1)


def _update(b: Kernel, target: Pointer, place: Register, update: Register, span: Span, reduction: str) -> None:
    combine = REDUCTIONS[reduction]
    if combine is not None:
        kind = target.element
        combined = combine(argument(0, kind), argument(1, kind))
        update = write_expressions(b, [combined], [target.load(place, span), update])[0]
    target.store(update, place, span)
