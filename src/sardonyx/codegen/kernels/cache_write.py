"""Copy a cache with steps of an update written into it; ONNX TensorScatter.

    y[n, a, s, :] = cache[n, a, s, :], and y[n, a, (start[n] + t) % S, :] = update[n, a, t, :] for t < T

A start below 0, or beyond S - T where steps may not wrap around, is reported in the status word as the number of its batch, plus 1.
"""

from __future__ import annotations

from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type

__all__ = ["write_cache_write"]

CACHE, UPDATE, RESULT, STATUS, STARTS = range(5)
"""The buffers of the kernel."""


def write_cache_write(module: Module, symbol: str, element: Type, *, wraps: bool, reads_starts: bool) -> None:
    """Write the kernel `symbol`; parameters: how many a there are, S, T of 0 to S, elements behind the steps.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: an integer of the size of the elements.
        wraps: whether steps go on at the first one behind the last.
        reads_starts: whether there are starts; all are 0 else. A task is one a of one n.
    """
    with module.kernel(symbol) as b:
        outer, steps, length, inner = (b.param(place) for place in range(4))
        cache, update, result = (b.buffer(place, element) for place in (CACHE, UPDATE, RESULT))
        with b.loop(b.begin, b.end) as task:
            start = b.buffer(STARTS, I64).load(task // outer) if reads_starts else b.const(I64, 0)
            valid = start >= 0 if wraps else (start >= 0) & (start <= steps - length)
            with b.when(~valid):
                b.buffer(STATUS, I64).store(task // outer + 1)
            with b.when(valid):
                first = start % b.max(steps, 1)
                ahead = b.min(steps - first, length)
                target, source = result.at(task * steps * inner), update.at(task * length * inner)
                copy_elements(b, target, cache.at(task * steps * inner), steps * inner)
                copy_elements(b, target.at(first * inner), source, ahead * inner)
                copy_elements(b, target, source.at(ahead * inner), (length - ahead) * inner)
