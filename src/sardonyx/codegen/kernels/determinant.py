"""Determinants of matrices, by elimination with the greatest element of each column as its pivot; ONNX Det.

Computed in float64 and rounded once. NaN makes the determinant NaN. A task eliminates some columns of one matrix, so that a run can
end in the middle of a large one; as many matrices are worked on side by side as tasks may run at a time:

    task    0 1 2 3 | 4 5 6 7 | 8 9 …        of 4 together, 2 tasks for each matrix
    matrix  0 1 2 3 | 0 1 2 3 | 4 5 …
    columns first   | last    | first
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F64, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = ["write_determinant"]


def write_determinant(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers x, y and, for each matrix that is worked on, its copy in float64 and one element more.

    Parameters: rows of a matrix, how many tasks run at a time, tasks of a matrix, columns of a task, how many matrices.
    """
    with module.kernel(symbol) as b:
        size, together, parts, columns, count = (b.param(place) for place in range(5))
        area = size * size
        with b.loop(b.begin, b.end) as task:
            slot, group = task % together, task // together
            part, matrix = group % parts, group // parts * together + slot
            with b.when(matrix < count):
                work, x = b.buffer(2, F64).at(slot * (area + 1)), b.buffer(0, kind).at(matrix * area)
                with b.when(part.eq(0)):
                    for i, span in b.vectors(0, area, F64):
                        work.store(x.load(i, span).to(F64), i, span)
                    work.store(b.const(F64, 1.0), area)
                found = b.variable(work.load(area))
                with b.loop(part * columns, b.min((part + 1) * columns, size)) as k:
                    found.set(found.value * _eliminate(b, work, k, size))
                work.store(found.value, area)
                with b.when((part + 1).eq(parts)):
                    b.buffer(1, kind).store(found.value.to(kind), matrix)


def _eliminate(b: Kernel, work: Pointer, k: Register, size: Register) -> Register:
    """Make column k zero below its pivot; return the pivot."""
    _move_pivot(b, work, k, size)
    pivot = work.load(k * size + k)
    with b.when(pivot.ne(0.0)), b.loop(k + 1, size) as i:
        row, above = work.at(i * size), work.at(k * size)
        factor = row.load(k) / pivot
        for j, span in b.vectors(k + 1, size, F64):
            row.store(b.fma(above.load(j, span), -factor.splat(span.lanes), row.load(j, span)), j, span)
    return pivot


def _move_pivot(b: Kernel, work: Pointer, k: Register, size: Register) -> None:
    """Put the row with the greatest element of column k, from row k on, at row k; the sign goes with it."""
    best, place = b.variable(b.abs(work.load(k * size + k))), b.variable(k + b.const(I64, 0))
    with b.loop(k + 1, size) as i:
        other = b.abs(work.load(i * size + k))
        with b.when((other > best.value) | b.is_nan(other)):
            best.set(other)
            place.set(i)
    with b.when(place.value.ne(k)):
        row, other_row = work.at(k * size), work.at(place.value * size)
        for j, span in b.vectors(k, size, F64):
            element = row.load(j, span)
            row.store(-other_row.load(j, span), j, span)
            other_row.store(element, j, span)
