"""Expressions that fold rows: some folds one after another, and then every element.

    read:   m = max x
    fold:   e = e^(x - m)                       s = sum e
    write:  after(x or e, operands, m, s)

What the last fold computed of an element is stored, where the element is then needed no more.

A row stays in the first-level cache between the passes, unless it is long: memory is read once and written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.folds import MAX, MIN, SUM, Fold
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.row_expr import RowFold, read_back
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.lines import FIRST_FREE, Along, ExtraOperand, Operands, VectorPosition, strips, write_lines

__all__ = ["write_rows"]

X, Y, _FIRST_OPERAND = range(3)

_FOLDS: Mapping[str, Fold] = {"row_max": MAX, "row_mean": SUM, "row_min": MIN, "row_sum": SUM}
"""Way -> how two are made one."""


def write_rows(
    module: Module, symbol: str, *, folds: Sequence[RowFold], after: ElementExpr, extra_operands: Sequence[ExtraOperand]
) -> None:
    """Write the kernel `symbol`: buffers X, Y (which may be X) and those beside; parameters as `lines` says, of rows of one line.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        folds: what is folded, in order: float32, of argument 0 (the element of X), the extra operands (from argument 1 on) and,
            behind these, the folds before it.
        after: what is stored, float32, of the same and of all folds.
        extra_operands: the extra operands.
    """
    with module.kernel(symbol) as b:
        x, y = b.buffer(X, F32), b.buffer(Y, F32)
        operands = Operands(b, extra_operands, first_buffer=_FIRST_OPERAND, first_param=FIRST_FREE)

        def element(place: VectorPosition) -> Register:
            return x.load(place.offset, place.span)

        def stored(place: VectorPosition) -> Register:
            return y.load(place.offset, place.span)

        of_stored = read_back(after, folds[-1].expr)
        for strip in strips(b, Along.ROWS):
            found: list[list[Register]] = []
            for fold in folds:
                keeps = y if of_stored is not None and fold is folds[-1] else None
                totals = strip.fold(_FOLDS[fold.way], _term(operands, fold.expr, element, list(found), keeps), chains=1)
                found.append([total / strip.count.to(F32) for total in totals] if fold.way == "row_mean" else totals)
            if of_stored is None:
                write_lines(strip, y, after, operands, element, found)
            else:
                write_lines(strip, y, of_stored, operands, stored, found)


def _term(
    operands: Operands,
    expr: ElementExpr,
    element: Callable[[VectorPosition], Register],
    found: Sequence[Sequence[Register]],
    keeps: Pointer | None,
) -> Callable[[VectorPosition], Register]:
    """Return what computes `expr` at a place, and stores it in `keeps` where there is one."""

    def term(place: VectorPosition) -> Register:
        (value,) = operands.apply(expr, operands.at([place.line]), [place], element, found)
        if keeps is not None:
            keeps.store(value, place.offset, place.span)
        return value

    return term
