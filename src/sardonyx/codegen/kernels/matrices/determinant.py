"""Determinants of matrices, by elimination with the greatest element of each column as its pivot; ONNX Det.

Computed in float64 and rounded once. NaN makes the determinant NaN.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.matrices.elimination import elimination_tasks, exchange_rows, greatest_row

__all__ = ["write_determinant"]


def write_determinant(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers x, y and memory for copies; parameters as of `elimination_tasks`."""
    with module.kernel(symbol) as b, elimination_tasks(b, kind, start=1.0) as task:
        found = b.variable(task.kept.load())
        with b.loop(task.first, task.last) as k:
            found.set(found.value * _eliminate(b, task.copy, k, task.size))
        task.kept.store(found.value)
        with b.when(task.is_last):
            b.buffer(1, kind).store(found.value.to(kind), task.matrix)


def _eliminate(b: Kernel, copy: Pointer, k: Register, size: Register) -> Register:
    """Make column k zero below its pivot; return the pivot. The sign goes with rows that change places."""
    exchange_rows(b, copy, k, greatest_row(b, copy, k, size), size, first=k, turns=True)
    pivot = copy.load(k * size + k)
    with b.when(pivot.ne(0.0)), b.loop(k + 1, size) as i:
        row, above = copy.at(i * size), copy.at(k * size)
        factor = row.load(k) / pivot
        for j, span in b.vectors(k + 1, size, F64):
            row.store(b.fma(above.load(j, span), -factor.splat(span.lanes), row.load(j, span)), j, span)
    return pivot
