"""Expressions that fold rows: some folds one after another, and then every element.

    read:   m = max x
    fold:   e = e^(x - m)                       s = sum e
    write:  after(x or e, operands, m, s)

What the last fold computed of an element is stored, where the element is then needed no more.

A row stays in the first-level cache between the passes, unless it is long: memory is read once and written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sardonyx.codegen.emit.expr import ElementExpr, number
from sardonyx.codegen.emit.expr_llvm import write_expressions, write_invariants
from sardonyx.codegen.emit.folds import MAX, MIN, SUM, Fold
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.row_expr import RowFold, read_back
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.lines import (
    FIRST_FREE,
    Along,
    ExtraOperand,
    Operands,
    ReducedStrip,
    Strip,
    Term,
    VectorPosition,
    strips,
    write_lines,
)
from sardonyx.codegen.kernels.short_lines import GatheredStrip, mapped_rows

__all__ = ["write_rows"]

X, Y, _FIRST_OPERAND = range(3)

_FOLDS: Mapping[str, Fold] = {"row_max": MAX, "row_mean": SUM, "row_min": MIN, "row_sum": SUM}
"""Way -> how two are made one."""


def write_rows(
    module: Module,
    symbol: str,
    *,
    folds: Sequence[RowFold],
    after: ElementExpr,
    extra_operands: Sequence[ExtraOperand],
    source: Type = F32,
) -> None:
    """Write the kernel `symbol`: buffers X, Y (which may be X) and those beside; parameters as `lines` says, of rows of one line.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        folds: what is folded, in order: of one type of floats, of argument 0 (the element of X in that type), the extra operands
            (from argument 1 on) and, behind these, the folds before it.
        after: what is stored, float32, of the same and of all folds.
        extra_operands: the extra operands.
        source: the type of the elements of X.
    """
    with module.kernel(symbol) as b:
        writer = _Writer(b, folds, after, extra_operands, source)
        if extra_operands:
            for strip in strips(b, Along.ROWS, writer.kind):
                writer.write(strip)
            return
        for each in mapped_rows(b, writer.kind):
            if isinstance(each, GatheredStrip):
                writer.write_gathered(each)
            else:
                writer.write(each)


class _Writer:
    """The kernel, and what it computes."""

    def __init__(
        self, b: Kernel, folds: Sequence[RowFold], after: ElementExpr, extra_operands: Sequence[ExtraOperand], source: Type
    ) -> None:
        self.b, self.folds, self.after, self.kind = b, folds, after, folds[0].expr.type
        self.x, self.y = b.buffer(X, source), b.buffer(Y, after.type)
        self.operands = Operands(b, extra_operands, first_buffer=_FIRST_OPERAND, first_param=FIRST_FREE)
        self.of_stored = read_back(after, folds[-1].expr) if after.type == self.kind else None

    def element(self, place: VectorPosition) -> Register:
        """Return the elements at a place."""
        return self.x.load(place.offset, place.span).to(self.kind)

    def stored(self, place: VectorPosition) -> Register:
        """Return what the last fold stored at a place."""
        return self.y.load(place.offset, place.span)

    def fold(self, strip: ReducedStrip, element: Term, keeps: Pointer | None) -> list[list[Register]]:
        """Fold one after another; terms of the last one are stored in `keeps` where given."""
        found: list[list[Register]] = []
        for fold in self.folds:
            term = _term(self.operands, fold.expr, element, list(found), keeps if fold is self.folds[-1] else None)
            totals = strip.fold(_FOLDS[fold.way], term, chains=1)
            found.append([total / strip.count.to(self.kind) for total in totals] if fold.way == "row_mean" else totals)
        return found

    def write(self, strip: Strip) -> None:
        """Fold the rows of a strip, and write them."""
        if self.of_stored is None:
            found = self.fold(strip, self.element, None)
            write_lines(strip, self.y, self.after, self.operands, self.element, found)
        else:
            found = self.fold(strip, self.element, self.y)
            write_lines(strip, self.y, self.of_stored, self.operands, self.stored, found)

    def write_gathered(self, strip: GatheredStrip) -> None:
        """Fold short rows, one to a lane; then write them, several to a vector. What is of a row alone is computed in between."""
        b = self.b
        found = self.fold(strip, lambda place: strip.load(self.x, place).to(self.kind), None)
        parts = [write_invariants(b, [self.after], [None, *row], strip.lanes) for row in zip(*found, strict=True)]
        needed = _needed(self.after, parts[0])
        values = [[value for part in parts if (value := part[index]) is not None] for index in needed]
        constants = [value if value is not None and value.is_constant else None for value in parts[0]]
        for place, spread in strip.spread(values):
            known = list(constants)
            for index, value in zip(needed, spread, strict=True):
                known[index] = value
            arguments = [self.element(place), *(values[0].like(0) for values in found)]
            self.y.store(write_expressions(b, [self.after], arguments, known)[0], place.offset, place.span)


def _needed(expr: ElementExpr, values: Sequence[Register | None]) -> list[int]:
    """Return which known steps of an expression the others read, but for constants; the result where it is known itself."""
    steps, results = number([expr])
    read = {operand for step, value in zip(steps, values, strict=True) if value is None for operand in step.operands}
    return sorted(index for index in read | set(results) if (value := values[index]) is not None and not value.is_constant)


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
