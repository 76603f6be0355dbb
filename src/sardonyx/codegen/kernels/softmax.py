"""Softmax and its kin, along rows or columns, with an expression where elements are written.

    read:   m = max x
    fold:   e = exp(x - m)                  s = sum e
    write:  after(e / s, operands)

A row stays in the first-level cache between the three passes: memory is read once and written once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.exponential import exp_below_zero
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.folds import MAX, MIN, SUM, Fold
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.lines import (
    FIRST_FREE,
    Along,
    ExtraOperand,
    Operands,
    Strip,
    Term,
    VectorPosition,
    strips,
    write_lines,
)
from sardonyx.codegen.kernels.reduce import position_of
from sardonyx.codegen.kernels.short_lines import packed_strips

__all__ = ["WAYS", "exp_of_difference", "write_softmax"]

X, Y, _FIRST_OPERAND = range(3)

_GREATEST = Fold("max", MAX.neutral, lambda b, found, value: b.max(found, value))
"""The greatest, in one instruction; NaN may get lost, which the exponential of the element itself brings back."""


Written: TypeAlias = Callable[[Kernel, Strip, Pointer, Pointer], Term]
"""From X, and Y, which may serve as scratch memory, to what the element of X at a place becomes."""


def write_softmax(
    module: Module,
    symbol: str,
    along: Along,
    way: str,
    *,
    after: ElementExpr,
    extra_operands: Sequence[ExtraOperand],
    kind: Type = F32,
) -> None:
    """Write the kernel `symbol`: buffers X, Y (which may be X if it is of its type) and those beside; parameters as `lines` says.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        along: what is normalized: rows, of one line each, or columns.
        way: how, one of WAYS.
        after: what is stored, of argument 0 (the normalized element) and the extra operands (from argument 1 on).
        extra_operands: the extra operands.
        kind: the type of what is normalized, F32 or F64.
    """
    with module.kernel(symbol) as b:
        x, y = b.buffer(X, kind), b.buffer(Y, after.type)
        operands = Operands(b, extra_operands, first_buffer=_FIRST_OPERAND, first_param=FIRST_FREE)
        each = strips if extra_operands else packed_strips
        for strip in each(b, along, kind):
            write_lines(strip, y, after, operands, WAYS[way](b, strip, x, y))


def _softmax(b: Kernel, strip: Strip, x: Pointer, y: Pointer) -> Term:
    """Compute e^(x - m) / s; the numerators are kept in Y where that is of the type of X, else computed again."""
    greatest, keeps = _greatest(strip, x), y.element == x.element

    def computed(place: VectorPosition) -> Register:
        return exp_of_difference(b, x.load(place.offset, place.span), greatest[place.number])

    def term(place: VectorPosition) -> Register:
        value = computed(place)
        if keeps:
            y.store(value, place.offset, place.span)
        return value

    factors = [1.0 / total for total in strip.fold(SUM, term, chains=1)]

    def numerator(place: VectorPosition) -> Register:
        return y.load(place.offset, place.span) if keeps else computed(place)

    return lambda place: numerator(place) * factors[place.number]


def _log_softmax(b: Kernel, strip: Strip, x: Pointer, y: Pointer) -> Term:
    """Compute x - m - log s."""
    greatest = _greatest(strip, x)

    def term(place: VectorPosition) -> Register:
        b.prefetch(y.at(place.offset), write=True)
        return exp_of_difference(b, x.load(place.offset, place.span), greatest[place.number])

    logs = [mathlib.log(b, total) for total in strip.fold(SUM, term, chains=1)]
    return lambda place: x.load(place.offset, place.span) - greatest[place.number] - logs[place.number]


def _greatest(strip: Strip, x: Pointer) -> list[Register]:
    return strip.fold(_GREATEST, lambda place: x.load(place.offset, place.span))


def _hardmax(b: Kernel, strip: Strip, x: Pointer, y: Pointer) -> Term:
    """Compute 1 at the first of the greatest, or of NaN, and 0 elsewhere."""
    greatest = strip.fold(MAX, lambda place: x.load(place.offset, place.span))
    where = functools.partial(position_of, b, strip, x, greatest, b.const(I64, MIN.neutral(I64)))
    first = strip.fold(MIN, where, I64)
    return lambda place: strip.position(place, I64).eq(first[place.number]).to(x.element)


WAYS: Mapping[str, Written] = {"hardmax": _hardmax, "log_softmax": _log_softmax, "softmax": _softmax}
"""How lines are normalized, by name."""


def exp_of_difference(b: Function, x: Register, greatest: Register) -> Register:
    """Return e^(x - greatest) for x <= greatest, as exp_below_zero where they are float32; NaN for inf - inf."""
    return mathlib.exp(b, x - greatest) if x.type.scalar == F64 else exp_below_zero(b, x - greatest)
