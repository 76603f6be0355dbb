"""Filters evenly spaced on the mel scale; ONNX MelWeightMatrix.

edges      numbers  ->  bands + 2 edges in float64, each a whole number of bins
filters    edges  ->  (bins, bands): what each filter takes of each bin, rising to its middle edge and falling behind it
"""

from __future__ import annotations

import math

from sardonyx.codegen.emit.mathlib import exp, log
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.narrow import from_narrow
from sardonyx.codegen.emit.types import F64, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.signal.classes import first_above
from sardonyx.codegen.kernels.signal.windows import from_double

__all__ = ["write_mel_edges", "write_mel_filters"]

_MELS, _HERTZ = 2595.0, 700.0
_ROUNDING = 2.0**-40
"""By how much an edge may fall below what it is exactly, relative to it."""


def write_mel_edges(module: Module, symbol: str, whole: Type, hertz: Type) -> None:
    """Write the kernel `symbol`: buffers length and rate, lowest and highest frequency, of these types, and edges. One task.

    Parameter: bands. Edge i is floor((length + 1) f_i / rate), where the mels of f_i are the lowest plus i of bands + 2 parts.
    """
    with module.kernel(symbol) as b, b.loop(b.begin, b.end):
        count = b.param(0) + 2
        low, high = (_mel(b, _wide(b, place, hertz)) for place in (2, 3))
        part = (high - low) / count.to(F64)
        factor = (_wide(b, 0, whole) + 1.0) / _wide(b, 1, whole)
        edges = b.buffer(4, F64)
        for i, span in b.vectors(0, count, F64):
            mels = low + (b.iota(I64, span.lanes) + i).to(F64) * part
            frequency = (exp(b, mels * (math.log(10) / _MELS)) - 1.0) * _HERTZ
            edges.store(b.call_math("floor", frequency * factor * (1.0 + _ROUNDING)), i, span)


def _wide(b: Kernel, place: int, kind: Type) -> Register:
    found = b.buffer(place, kind).load()
    return (from_narrow(b, found) if kind.is_narrow else found).to(F64)


def _mel(b: Kernel, hertz: Register) -> Register:
    return log(b, hertz / _HERTZ + 1.0) * (_MELS / math.log(10))


def write_mel_filters(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers edges and filters, of `kind`. Parameter: bands. A task is a bin.

    Edges ascend or descend. Where they ascend, a bin is part of the filters between those that end before it and those that begin
    behind it.
    """
    with module.kernel(symbol) as b:
        bands, edges = b.param(0), b.buffer(0, F64)
        is_ascending = edges.load(0) <= edges.load(bands + 1)
        with b.loop(b.begin, b.end) as task:
            row, number = b.buffer(1, kind).at(task * bands), task.to(F64)
            for i, span in b.vectors(0, bands, kind):
                row.store(b.const(kind.vector(span.lanes), 0), i, span)
            ended = b.max(first_above(b, edges, bands + 2, number - 0.5) - 2, 0)
            begun = b.min(first_above(b, edges, bands + 2, number), bands)
            first, last = b.select(is_ascending, ended, ended.like(0)), b.select(is_ascending, begun, bands)
            for i, span in b.vectors(first, last, F64):
                row.store(from_double(b, _weight(b, edges.at(i), number, span), kind), i, span)


def _weight(b: Kernel, edges: Pointer, number: Register, span: Span) -> Register:
    """Return what filters take of a bin, the first of which begins at the first edge."""
    left, centre, right = (edges.load(place, span) for place in range(3))
    rising = b.select(centre > left, (number - left) / b.max(centre - left, 1.0), left.like(1.0))
    falling = (right - number) / b.max(right - centre, 1.0)
    before = b.select(left <= number, rising, left.like(0.0))
    behind = b.select(right > number, falling, left.like(0.0))
    return b.select(centre >= number, before, behind)
