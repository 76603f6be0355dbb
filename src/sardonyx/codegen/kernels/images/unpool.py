"""Put elements where indices say, over zeros; ONNX MaxUnpool.

Elements are written in order by one task, so that of several for one place the last one stays. An index below 0 or beyond the
result is reported in the status word as its place, plus 1.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type

__all__ = ["write_unpool"]

X, INDICES, RESULT, STATUS = range(4)
"""The buffers of the kernel."""


def write_unpool(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol`; parameters: how many elements there are, and how many the result has.

    `element` is an integer of the size of the elements.
    """
    with module.kernel(symbol) as b:
        count, size = b.param(0), b.param(1)
        x, indices, result = b.buffer(X, element), b.buffer(INDICES, I64), b.buffer(RESULT, element)
        with b.loop(b.begin, b.end):
            for i, span in b.vectors(0, size, element):
                result.store(0, i, span)
            with b.loop(0, count) as i:
                place = indices.load(i)
                valid = (place >= 0) & (place < size)
                with b.when(valid):
                    result.store(x.load(i), place)
                with b.when(~valid):
                    b.buffer(STATUS, I64).store(i + 1)
