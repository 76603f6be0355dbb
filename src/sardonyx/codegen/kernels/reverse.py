"""Turn the first elements of sequences around.

Row (t, b) of the result is row (length - 1 - t, b) of the data where t is less than the length of sequence b, else row (t, b). A
length below 0 or beyond the steps is reported in the status word as the number of its sequence, plus 1.
"""

from __future__ import annotations

from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type

__all__ = ["write_reverse"]

DATA, LENGTHS, RESULT, STATUS = range(4)
"""The buffers of the kernel."""


def write_reverse(module: Module, symbol: str, element: Type, *, steps_first: bool) -> None:
    """Write the kernel `symbol`; parameters: sizes of the first two dimensions, elements of a row, how many of the first in a task.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: an integer of the size of the elements.
        steps_first: whether the first dimension counts steps and the second sequences, or the other way round.
    """
    with module.kernel(symbol) as b:
        first, second, inner, block = (b.param(place) for place in range(4))
        data, result, lengths = b.buffer(DATA, element), b.buffer(RESULT, element), b.buffer(LENGTHS, I64)
        steps, apart = (first, second) if steps_first else (second, b.const(I64, 1))
        with b.loop(b.begin, b.end) as task, b.loop(task * block, b.min((task + 1) * block, first)) as i, b.loop(0, second) as j:
            step, sequence = (i, j) if steps_first else (j, i)
            length = lengths.load(sequence)
            valid = (length >= 0) & (length <= steps)
            with b.when(~valid):
                b.buffer(STATUS, I64).store(sequence + 1)
            with b.when(valid):
                row = i * second + j
                source = row + b.select(step < length, length - 1 - step - step, step.like(0)) * apart
                target, origin = result.at(row * inner), data.at(source * inner)
                b.branch(inner.eq(1), lambda: target.store(origin.load()), lambda: copy_elements(b, target, origin, inner))
