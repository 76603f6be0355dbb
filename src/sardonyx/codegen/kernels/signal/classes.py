"""Draw classes by the logarithms of their weights, from a stream of random numbers (`random.py`).

    add_weights    logarithms (N, C)  ->  sums (N, C) in float64: of exp(x - max of the row), up to and with each class
    draw_classes   stream, sums (N, C)  ->  classes (N, S): the first whose sum exceeds u times the last one, u even in [0, 1)

Whatever the logarithms are, what is drawn is a class: where sums are NaN, the first or the last.
"""

from __future__ import annotations

from sardonyx.codegen.emit.mathlib import exp
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.narrow import from_narrow
from sardonyx.codegen.emit.types import F64, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.signal.random import DRAW_BLOCK, even_at

__all__ = ["first_above", "write_add_weights", "write_draw_classes"]


def write_add_weights(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: the second buffer gets sums of weights, whose logarithms of `kind` the first has.

    Parameter: classes. A task is one row.
    """
    with module.kernel(symbol) as b:
        classes = b.param(0)
        with b.loop(b.begin, b.end) as row:
            x, sums = b.buffer(0, kind).at(row * classes), b.buffer(1, F64).at(row * classes)
            greatest = b.variable(b.const(F64, float("-inf")))
            with b.loop(0, classes) as i:
                greatest.set(b.max(_wide(b, x, i, Span(1)), greatest.value))
            for i, span in b.vectors(0, classes, F64):
                sums.store(exp(b, _wide(b, x, i, span) - greatest.value), i, span)
            total = b.variable(b.const(F64, 0.0))
            with b.loop(0, classes) as i:
                total.add(sums.load(i))
                sums.store(total.value, i)


def _wide(b: Kernel, x: Pointer, place: Register, span: Span) -> Register:
    found = x.load(place, span)
    return (from_narrow(b, found) if found.type.is_narrow else found).to(F64)


def write_draw_classes(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: stream, sums, and the classes that are drawn, of `kind`.

    Parameters: all draws, those of a row, classes. A task is a block of draws.
    """
    with module.kernel(symbol) as b:
        count, samples, classes = b.param(0), b.param(1), b.param(2)
        result = b.buffer(2, kind)
        with (
            b.loop(b.begin, b.end) as task,
            b.loop(task * DRAW_BLOCK, b.min((task + 1) * DRAW_BLOCK, count)) as place,
        ):
            sums = b.buffer(1, F64).at(place // samples * classes)
            sought = even_at(b, place) * sums.load(classes - 1)
            result.store(b.min(first_above(b, sums, classes, sought), classes - 1).to(kind), place)


def first_above(b: Kernel, sums: Pointer, count: Register, sought: Register) -> Register:
    """Return how many of ascending sums are not above a number, by halves."""
    first, left = b.variable(b.const(I64, 0)), b.variable(count)
    with b.repeat() as halves:
        halves.stop_if(left.value < 1)
        half = left.value >> 1
        is_passed = sums.load(first.value + half) <= sought
        rest = left.value - half - 1
        first.set(b.select(is_passed, first.value + half + 1, first.value))
        left.set(b.select(is_passed, rest, half))
    return first.value
