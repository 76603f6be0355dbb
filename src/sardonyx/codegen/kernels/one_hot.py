"""Put one value at the place that an index names along a new axis, and another everywhere else.

result[o, p, i] = values[1] where p is indices[o, i], else values[0]. An index outside the axis names no place.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type

__all__ = ["write_one_hot"]

INDICES, VALUES, RESULT = range(3)
"""The buffers of the kernel."""


def write_one_hot(module: Module, symbol: str, element: Type, index: Type, *, wraps: bool) -> None:
    """Write the kernel `symbol`; parameters: the length of the axis, and how many i there are. A task is one o.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: an integer of the size of the elements.
        index: the type of the indices: I32 or I64.
        wraps: whether a negative index counts from the end.
    """
    with module.kernel(symbol) as b:
        depth, inner = b.param(0), b.param(1)
        indices, result = b.buffer(INDICES, index), b.buffer(RESULT, element)
        off, on = b.buffer(VALUES, element).load(0), b.buffer(VALUES, element).load(1)
        with b.loop(b.begin, b.end) as o:
            plane = result.at(o * depth * inner)
            for place, span in b.vectors(0, depth * inner, element):
                plane.store(off, place, span)
            with b.loop(0, inner) as i:
                given = indices.load(o * inner + i).to(I64)
                position = b.select(given < 0, given + depth, given) if wraps else given
                with b.when((position >= 0) & (position < depth)):
                    plane.store(on, position * inner + i)
