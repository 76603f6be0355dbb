"""Determinants of matrices, by elimination with the greatest element of each column as its pivot; ONNX Det.

Computed in float64 and rounded once; one task is one matrix. NaN makes the determinant NaN.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F64, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = ["write_determinant"]


def write_determinant(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers x, y and a matrix of float64 for each task that runs at a time.

    Parameters: rows of a matrix, and how many tasks run at a time.
    """
    with module.kernel(symbol) as b:
        size = b.param(0)
        area = size * size
        with b.loop(b.begin, b.end) as task:
            work, x = b.buffer(2, F64).at(task % b.param(1) * area), b.buffer(0, kind).at(task * area)
            for i, span in b.vectors(0, area, F64):
                work.store(x.load(i, span).to(F64), i, span)
            found = b.variable(b.const(F64, 1.0))
            with b.loop(0, size) as k:
                _move_pivot(b, work, k, size)
                pivot = work.load(k * size + k)
                found.set(found.value * pivot)
                with b.when(pivot.ne(0.0)), b.loop(k + 1, size) as i:
                    row, above = work.at(i * size), work.at(k * size)
                    factor = row.load(k) / pivot
                    for j, span in b.vectors(k + 1, size, F64):
                        row.store(b.fma(above.load(j, span), -factor.splat(span.lanes), row.load(j, span)), j, span)
            b.buffer(1, kind).store(found.value.to(kind), task)


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
