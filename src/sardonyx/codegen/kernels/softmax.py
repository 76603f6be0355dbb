"""Softmax and its logarithm, along rows or columns, with expressions where elements are read and written.

    read:   t = before(x, operands)         m = max t
    fold:   e = exp(t - m)                  s = sum e
    write:  after(e / s, operands)

A row stays in the first-level cache between the three passes: memory is read once and written once.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.expr import Expr
from sardonyx.codegen.emit.folds import MAX, SUM, Fold
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.values import Pointer, Value
from sardonyx.codegen.kernels.lines import FIRST_FREE, Along, Beside, Operands, Place, Strip, strips, write_lines

__all__ = ["exp_of_difference", "write_softmax"]

X, Y, _FIRST_OPERAND = range(3)

_GREATEST = Fold("max", MAX.neutral, lambda b, found, value: b.max(found, value))
"""The greatest, in one instruction; NaN may get lost, which the exponential of the element itself brings back."""


def write_softmax(
    module: Module, symbol: str, along: Along, *, log: bool, before: Expr, after: Expr, besides: Sequence[Beside]
) -> None:
    """Write the kernel `symbol`: buffers X, Y (which may be X) and those beside; parameters as `lines` says.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        along: what is normalized: rows, of one line each, or columns.
        log: whether to take the logarithm.
        before: what is normalized, of argument 0 (the element of X) and the tensors beside (from argument 1 on).
        after: what is stored, of argument 0 (the normalized element) and the tensors beside.
        besides: the tensors beside.
    """
    with module.kernel(symbol) as b:
        x, y = b.buffer(X, F32), b.buffer(Y, F32)
        operands = Operands(b, besides, first_buffer=_FIRST_OPERAND, first_param=FIRST_FREE)
        for strip in strips(b, along):
            source, greatest = _read(b, strip, x, y, before, operands)
            _fold_and_write(b, strip, (source, y), greatest, after, operands, log=log)


def _read(b: Kernel, strip: Strip, x: Pointer, y: Pointer, before: Expr, operands: Operands) -> tuple[Pointer, list[Value]]:
    """Where the elements to normalize are, and the greatest of each fold."""
    if before.primitive == "argument":
        return x, strip.fold(_GREATEST, lambda place: x.load(place.offset, place.span))

    def term(place: Place) -> Value:
        (value,) = operands.apply(before, operands.at([place.line]), [place], lambda at: x.load(at.offset, at.span))
        y.store(value, place.offset, place.span)
        return value

    return y, strip.fold(_GREATEST, term)


def _fold_and_write(
    b: Kernel,
    strip: Strip,
    buffers: tuple[Pointer, Pointer],
    greatest: Sequence[Value],
    after: Expr,
    operands: Operands,
    *,
    log: bool,
) -> None:
    source, y = buffers

    def term(place: Place) -> Value:
        value = exp_of_difference(b, source.load(place.offset, place.span), greatest[place.number])
        if not log:
            y.store(value, place.offset, place.span)
        return value

    sums = strip.fold(SUM, term, chains=1)
    factors = [mathlib.log(b, total) if log else 1.0 / total for total in sums]

    def element(place: Place) -> Value:
        if log:
            return source.load(place.offset, place.span) - greatest[place.number] - factors[place.number]
        return y.load(place.offset, place.span) * factors[place.number]

    write_lines(strip, y, after, operands, element)


def exp_of_difference(b: Function, x: Value, greatest: Value) -> Value:
    """e^(x - greatest) for x <= greatest, as mathlib.exp_below_zero; NaN for inf - inf."""
    return mathlib.exp_below_zero(b, x - greatest)
