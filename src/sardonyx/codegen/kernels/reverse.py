"""Turn the first elements of sequences around.

Row (t, b) of the result is row (length - 1 - t, b) of the data where t is less than the length of sequence b, else row (t, b). A
length below 0 or beyond the steps is reported in the status word as the number of its sequence, plus 1. A task is some sequences.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = ["write_reverse"]

DATA, LENGTHS, RESULT, STATUS = range(4)
"""The buffers of the kernel."""


def write_reverse(module: Module, symbol: str, element: Type, *, steps_first: bool) -> None:
    """Write the kernel `symbol`; parameters: steps, sequences, elements of a row, how many sequences are in a task.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: an integer of the size of the elements.
        steps_first: whether the first dimension counts steps and the second sequences, or the other way round.
    """
    with module.kernel(symbol) as b:
        steps, sequences, inner, block = (b.param(place) for place in range(4))
        data, result, lengths = b.buffer(DATA, element), b.buffer(RESULT, element), b.buffer(LENGTHS, I64)
        apart, between = (sequences * inner, inner) if steps_first else (inner, steps * inner)

        def move(sequence: Register, length: Register, copy: Callable[[Pointer, Pointer], None]) -> None:
            source, target = data.at(sequence * between), result.at(sequence * between)
            with b.loop(0, length) as step:
                copy(target.at(step * apart), source.at((length - 1 - step) * apart))
            with b.loop(length, steps) as step:
                copy(target.at(step * apart), source.at(step * apart))

        with b.loop(b.begin, b.end) as task, b.loop(task * block, b.min((task + 1) * block, sequences)) as sequence:
            length = lengths.load(sequence)
            valid = (length >= 0) & (length <= steps)
            with b.when(~valid):
                b.buffer(STATUS, I64).store(sequence + 1)
            with b.when(valid):
                b.branch(
                    inner.eq(1),
                    lambda: move(sequence, length, lambda target, origin: target.store(origin.load())),
                    lambda: move(sequence, length, lambda target, origin: copy_elements(b, target, origin, inner)),
                )
