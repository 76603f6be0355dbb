"""Turn the first elements of sequences around.

Row (t, b) of the result is row (length - 1 - t, b) of the data where t is less than the length of sequence b, else row (t, b). A
length below 0 or beyond the steps is reported in the status word as the number of its sequence, plus 1.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type

__all__ = ["write_reverse"]

DATA, LENGTHS, RESULT, STATUS = range(4)
"""The buffers of the kernel."""


def write_reverse(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol`.

    Parameters: rows, sequences, steps, rows from one sequence to the next and from one step to the next, elements of a row, rows in
    one task. `element` is an integer of the size of the elements.
    """
    with module.kernel(symbol) as b:
        rows, sequences, steps, by_sequence, by_step, inner, block = (b.param(place) for place in range(7))
        data, result, lengths = b.buffer(DATA, element), b.buffer(RESULT, element), b.buffer(LENGTHS, I64)
        with b.loop(b.begin, b.end) as task, b.loop(task * block, b.min((task + 1) * block, rows)) as row:
            sequence, step = row // by_sequence % sequences, row // by_step % steps
            length = lengths.load(sequence)
            valid = (length >= 0) & (length <= steps)
            with b.when(~valid):
                b.buffer(STATUS, I64).store(sequence + 1)
            with b.when(valid):
                source = row + b.select(step < length, length - 1 - step - step, step.like(0)) * by_step
                target, origin = result.at(row * inner), data.at(source * inner)
                for i, span in b.vectors(0, inner, element):
                    target.store(origin.load(i, span), i, span)
