"""Masks that end before the keys do."""

from __future__ import annotations

import math

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32

__all__ = ["write_whole_rows"]


def write_whole_rows(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers rows [R][own], rows [R][T], float32. Parameters: own, T. A task is a row.

    One number is repeated; behind more of them, fewer than T, come infinities that hide keys.
    """
    with module.kernel(symbol) as b:
        own, T = b.param(0), b.param(1)
        with b.loop(b.begin, b.end) as row:
            source, result = b.buffer(0, F32).at(row * own), b.buffer(1, F32).at(row * T)
            with b.when(own.eq(1)):
                number = source.load()
                for i, span in b.vectors(0, T, F32):
                    result.store(number if span.lanes == 1 else number.splat(span.lanes), i, span)
            with b.when(own.ne(1)):
                for i, span in b.vectors(0, own, F32):
                    result.store(source.load(i, span), i, span)
                for i, span in b.vectors(own, T, F32):
                    result.store(-math.inf, i, span)
