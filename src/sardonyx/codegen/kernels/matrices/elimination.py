"""What eliminations of columns share: copies of matrices in float64, tasks of some columns, and the rows that change places.

A task eliminates some columns of one matrix, so that a run can end in the middle of a large one; as many matrices are worked on
side by side as tasks may run at a time:

    task    0 1 2 3 | 4 5 6 7 | 8 9 …        of 4 together, 2 tasks for each matrix
    matrix  0 1 2 3 | 0 1 2 3 | 4 5 …
    columns first   | last    | first
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.types import F64, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["Elimination", "elimination_tasks", "exchange_rows", "greatest_row"]


@dataclass(frozen=True, slots=True)
class Elimination:
    """One task."""

    matrix: Register
    """The number of the matrix."""
    size: Register
    """Its rows."""
    copy: Pointer
    """Its elements in float64, and the memory behind them."""
    kept: Pointer
    """A number that goes from one task of a matrix to the next."""
    first: Register
    """The first column of the task."""
    last: Register
    """The column after its last."""
    is_last: Register
    """Whether it is the last task of the matrix."""


@contextmanager
def elimination_tasks(b: Kernel, kind: Type, *, rows: int = 0, start: float) -> Iterator[Elimination]:
    """Loop over the tasks of a kernel: buffers x of `kind`, another one, and memory for copies.

    Parameters: rows of a matrix, how many tasks run at a time, tasks of a matrix, columns of a task, how many matrices.

    Args:
        b: the kernel.
        kind: the type of elements.
        rows: how many more rows the memory of a matrix has; behind them it has one number.
        start: that number at first.
    """
    size, together, parts, columns, count = (b.param(place) for place in range(5))
    area, held = size * size, size * (size + rows)
    with b.loop(b.begin, b.end) as task:
        slot, group = task % together, task // together
        part, matrix = group % parts, group // parts * together + slot
        with b.when(matrix < count):
            copy, x = b.buffer(2, F64).at(slot * (held + 1)), b.buffer(0, kind).at(matrix * area)
            kept = copy.at(held)
            with b.when(part.eq(0)):
                for i, span in b.vectors(0, area, F64):
                    copy.store(x.load(i, span).to(F64), i, span)
                kept.store(start)
            first, last = part * columns, b.min((part + 1) * columns, size)
            yield Elimination(matrix, size, copy, kept, first, last, (part + 1).eq(parts))


def greatest_row(b: Kernel, copy: Pointer, k: Register, size: Register) -> Register:
    """Return the row with the greatest element of column k, from row k on; NaN is greater than all."""
    best, place = b.variable(b.abs(copy.load(k * size + k))), b.variable(k + b.const(I64, 0))
    with b.loop(k + 1, size) as i:
        other = b.abs(copy.load(i * size + k))
        with b.when((other > best.value) | b.is_nan(other)):
            best.set(other)
            place.set(i)
    return place.value


def exchange_rows(
    b: Kernel, copy: Pointer, k: Register, other: Register, size: Register, *, first: Register | int = 0, turns: bool = False
) -> None:
    """Let rows k and `other` change places from column `first` on; where it `turns`, what comes to row k changes its sign."""
    with b.when(other.ne(k)):
        row, other_row = copy.at(k * size), copy.at(other * size)
        for j, span in b.vectors(first, size, F64):
            element, found = row.load(j, span), other_row.load(j, span)
            row.store(-found if turns else found, j, span)
            other_row.store(element, j, span)
