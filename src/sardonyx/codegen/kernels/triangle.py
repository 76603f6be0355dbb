"""Keep one triangle of matrices and put zeros in the other.

Element (i, j) is kept where j >= i + k (upper), or where j <= i + k (lower). Matrices of short rows are taken as one line of
elements, under a table of which elements of a matrix are kept.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = ["write_triangle"]

DATA, DIAGONAL, RESULT = range(3)
"""The buffers of the kernel: the matrices, k as int64, and the result, which may be the memory of the matrices."""


_SHORT_ROW, _SMALL_MATRIX = 32, 1024
"""Elements of a row, and of a matrix, that are taken under a table; where there are several times as many in all."""
_TABLES = 8


def write_triangle(module: Module, symbol: str, element: Type, *, upper: bool) -> None:
    """Write the kernel `symbol`; parameters: rows of all matrices, rows of one, columns, and rows in one task."""
    with module.kernel(symbol) as b:
        rows, height, width, block = (b.param(place) for place in range(4))
        data, result = b.buffer(DATA, element), b.buffer(RESULT, element)
        k = b.max(b.min(b.buffer(DIAGONAL, I64).load(), width + 1), -height - 1)
        size = height * width
        is_small = (width <= _SHORT_ROW) & (size > 0) & (size <= _SMALL_MATRIX) & (rows * width >= size * _TABLES)
        with b.when(is_small):
            _write_small(b, (data, result), (height, width, k), (b.begin * block, b.min(b.end * block, rows)), upper=upper)
        first_task = b.select(is_small, b.end, b.begin)
        with b.loop(first_task, b.end) as task, b.loop(task * block, b.min((task + 1) * block, rows)) as row:
            border = b.max(b.min(row % height + (k if upper else k + 1), width), 0)
            source, target = data.at(row * width), result.at(row * width)
            nothing = b.const(I64, 0)
            first, last = (border, width) if upper else (nothing, border)
            copy_elements(b, target.at(first), source.at(first), last - first)
            _clear(b, target, *((nothing, border) if upper else (border, width)))


def _write_small(
    b: Kernel,
    memory: tuple[Pointer, Pointer],
    matrix: tuple[Register, Register, Register],
    rows: tuple[Register, Register],
    *,
    upper: bool,
) -> None:
    """Take rows of small matrices as a line: a vector may hold several of both."""
    (data, result), (height, width, k) = memory, matrix
    element, size = data.element, height * width
    lanes = b.lanes(element)
    table = b.stack(element, _SMALL_MATRIX + lanes)
    with b.loop(0, height) as i, b.loop(0, width) as j:
        is_kept = (j >= i + k) if upper else (j <= i + k)
        table.store(b.select(is_kept, b.const(element, -1), b.const(element, 0)), i * width + j)
    with b.loop(size, size + lanes) as i:
        table.store(table.load(i - size), i)
    place, step = b.variable(rows[0] % height * width), b.const(I64, lanes) % size
    for i, span in b.vectors(rows[0] * width, rows[1] * width, element):
        result.store(data.load(i, span) & table.load(place.value, span.lanes), i, span)
        further = place.value + (step if span.lanes > 1 else 1)
        place.set(b.select(further >= size, further - size, further))


def _clear(b: Function, target: Pointer, first: Register, last: Register) -> None:
    for i, span in b.vectors(first, last, target.element):
        target.store(0, i, span)
