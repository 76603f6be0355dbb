"""Keep one triangle of matrices and put zeros in the other.

Element (i, j) is kept where j >= i + k (upper), or where j <= i + k (lower).
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = ["write_triangle"]

DATA, DIAGONAL, RESULT = range(3)
"""The buffers of the kernel: the matrices, k as int64, and the result, which may be the memory of the matrices."""


def write_triangle(module: Module, symbol: str, element: Type, *, upper: bool) -> None:
    """Write the kernel `symbol`; parameters: rows of all matrices, rows of one, columns, and rows in one task."""
    with module.kernel(symbol) as b:
        rows, height, width, block = (b.param(place) for place in range(4))
        data, result = b.buffer(DATA, element), b.buffer(RESULT, element)
        k = b.max(b.min(b.buffer(DIAGONAL, I64).load(), width + 1), -height - 1)
        with b.loop(b.begin, b.end) as task, b.loop(task * block, b.min((task + 1) * block, rows)) as row:
            border = b.max(b.min(row % height + (k if upper else k + 1), width), 0)
            source, target = data.at(row * width), result.at(row * width)
            nothing = b.const(I64, 0)
            first, last = (border, width) if upper else (nothing, border)
            copy_elements(b, target.at(first), source.at(first), last - first)
            _clear(b, target, *((nothing, border) if upper else (border, width)))


def _clear(b: Function, target: Pointer, first: Register, last: Register) -> None:
    for i, span in b.vectors(first, last, target.element):
        target.store(0, i, span)
