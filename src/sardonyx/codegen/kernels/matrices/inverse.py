"""Inverses of matrices, by Gauss-Jordan elimination in place, with the greatest element of each column as its pivot.

Computed in float64 and rounded once. NaN stays in its matrix. Where a pivot is 0 the matrix is singular, which is reported.
Source: com.microsoft Inverse.

    rows k and p change places             p has the greatest element of column k, from row k on
    row k  ->  row k / pivot               with 1 / pivot at k
    row i  ->  row i - factor x row k      with -factor / pivot at k
    at the end columns k and p change places, last pair first
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F64, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.matrices.elimination import elimination_tasks, exchange_rows, greatest_row

__all__ = ["write_inverse"]

_ROWS = 4
"""Rows that are changed at once, with one read of the pivot's."""


def write_inverse(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers x, y, memory for copies, and the status; parameters as of `elimination_tasks`.

    Behind its copy a matrix has the number of a row for each row, a row, and whether it is singular.
    """
    with module.kernel(symbol) as b, elimination_tasks(b, kind, rows=2, start=0.0) as task:
        copy, size = task.copy, task.size
        with b.loop(task.first, task.last) as k:
            _eliminate(b, copy, k, size, task.kept)
        with b.when(task.is_last):
            _restore_columns(b, copy, size)
            y = b.buffer(1, kind).at(task.matrix * (size * size))
            for i, span in b.vectors(0, size * size, F64):
                y.store(copy.load(i, span).to(kind), i, span)
            with b.when(task.kept.load().ne(0.0)):
                b.buffer(3, I64).store(task.matrix + 1)


def _eliminate(b: Kernel, work: Pointer, k: Register, size: Register, singular: Pointer) -> None:
    """Make column k that of the unit matrix, and keep in its place what this did to the unit matrix."""
    place = greatest_row(b, work, k, size)
    work.store(place.to(F64), size * size + k)
    exchange_rows(b, work, k, place, size)
    row, saved, pivot = work.at(k * size), work.at(size * (size + 1)), work.load(k * size + k)
    with b.when(pivot.eq(0.0)):
        singular.store(1.0)
    for j, span in b.vectors(0, size, F64):
        saved.store(row.load(j, span) / pivot.splat(span.lanes), j, span)
    saved.store(1.0 / pivot, k)
    whole = size & -_ROWS
    for first, last, count in ((size.like(0), whole, _ROWS), (whole, size, 1)):
        with b.loop(first, last, count) as i:
            _subtract(b, [work.at((i + more) * size) for more in range(count)], saved, k, size)
    for j, span in b.vectors(0, size, F64):
        row.store(saved.load(j, span), j, span)


def _subtract(b: Kernel, rows: Sequence[Pointer], saved: Pointer, k: Register, size: Register) -> None:
    """Take multiples of the pivot's row off some rows."""
    factors = [row.load(k) for row in rows]
    for j, span in b.vectors(0, size, F64):
        subtracted = saved.load(j, span)
        for row, factor in zip(rows, factors, strict=True):
            row.store(b.fma(subtracted, -factor.splat(span.lanes), row.load(j, span)), j, span)
    for row, factor in zip(rows, factors, strict=True):
        row.store(-factor * saved.load(k), k)


def _restore_columns(b: Kernel, work: Pointer, size: Register) -> None:
    """Let the columns of each pair of rows that changed places do the same, last pair first."""
    with b.loop(0, size) as done:
        k = size - 1 - done
        place = work.load(size * size + k).to(I64)
        with b.when(place.ne(k)), b.loop(0, size) as i:
            row = work.at(i * size)
            element = row.load(k)
            row.store(row.load(place), k)
            row.store(element, place)
