"""Random numbers. An element follows from its stream and its place alone, so that no vector, task or thread changes it.

A stream is a word of 64 bits; the bits of its element i are mix(stream + (i + 1) GAMMA), which is SplitMix64 (Steele, Lea, Flood:
"Fast splittable pseudorandom number generators", 2014). Where streams come from is a source of two words, a seed and how many
streams were taken:

    source: seed | taken      stream t = mix(seed + (t + 1) BETWEEN)      element i = mix(stream + (i + 1) GAMMA)
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.mathlib import cos, log
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.narrow import to_narrow
from sardonyx.codegen.emit.types import F32, F64, I32, I64, U64, Type
from sardonyx.codegen.emit.values import Register, Span

__all__ = ["DRAW_BLOCK", "even_at", "stream_of", "write_normal", "write_take_stream", "write_uniform"]

DRAW_BLOCK = 1 << 13
"""Elements of one task."""

_GAMMA, _BETWEEN = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95
"""Odd numbers: what lies between the states of neighbouring elements, and of neighbouring streams."""
_WORD = (1 << 64) - 1


def stream_of(seed: int) -> int:
    """Return the stream of a node that has a seed of 64 bits of its own."""
    found = (seed + _BETWEEN) & _WORD
    found = (found ^ (found >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    found = (found ^ (found >> 27)) * 0x94D049BB133111EB & _WORD
    return found ^ (found >> 31)


def write_take_stream(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: the second buffer gets the next stream of the source in the first, for each task."""
    with module.kernel(symbol) as b:
        source, stream = b.buffer(0, U64), b.buffer(1, U64)
        with b.loop(b.begin, b.end):
            taken = b.atomic_add(source.at(1), 1)
            stream.store(_mix(source.load(0) + (taken + 1) * _BETWEEN))


def write_uniform(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: the second buffer gets evenly distributed numbers of the stream in the first.

    They are u factor + addend, with u in [0, 1) of 24 bits, in float64 of 53, rounded after each step. Parameters: elements, then
    factor and addend as floats. 16-bit elements are computed in float32.
    """
    with module.kernel(symbol) as b:
        _write_elements(b, kind, lambda place, span: _even(b, _bits(b, place, span), _wide(kind)))


def write_normal(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: the second buffer gets numbers of a normal distribution of the stream in the first.

    They are z factor + addend, with z = sqrt(-2 log(u)) cos(2 pi v) (Box and Muller 1958), for u in (0, 1] and v in [0, 1): of 31
    and 24 bits of one element of the stream, in float64 of 53 bits each of two. Their absolute value is at most 6.7, or 8.7.
    Parameters and types as of `write_uniform`.
    """
    with module.kernel(symbol) as b:
        _write_elements(b, kind, lambda place, span: _normal(b, place, span, _wide(kind)))


def _wide(kind: Type) -> Type:
    return F64 if kind == F64 else F32


def _write_elements(b: Kernel, kind: Type, draw: Callable[[Register, Span], Register]) -> None:
    """Store what `draw` makes of the place of the first element of a vector and of its span."""
    wide, result = _wide(kind), b.buffer(1, kind)
    count, factor, addend = b.param(0), b.param_float(1, wide), b.param_float(2, wide)
    with b.loop(b.begin, b.end) as task:
        for place, span in b.vectors(task * DRAW_BLOCK, b.min((task + 1) * DRAW_BLOCK, count), wide):
            number = draw(place, span) * factor + addend
            result.store(number if kind == wide else to_narrow(b, number, kind), place, span)


def _mix(z: Register) -> Register:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


def _bits(b: Kernel, place: Register, span: Span, step: int = 1) -> Register:
    """Return the bits of every `step`-th element of the stream from `place` on."""
    first = b.buffer(0, U64).load() + (place.to(U64) + 1) * _GAMMA
    return _mix(b.iota(U64, span.lanes) * (step * _GAMMA & _WORD) + first)


def _even(b: Function, bits: Register, kind: Type) -> Register:
    """Return numbers of [0, 1): of the lowest bits of float32, so that `_normal` has the others, and of the highest of float64."""
    if kind == F64:
        return (bits >> 11).to(I64).to(F64) * 2.0**-53
    return (bits & 0xFFFFFF).to(I32).to(F32) * 2.0**-24


def even_at(b: Kernel, place: Register) -> Register:
    """Return the number of [0, 1) in float64 that is element `place` of the stream in the first buffer."""
    return _even(b, _bits(b, place, Span(1)), F64)


def _normal(b: Kernel, place: Register, span: Span, kind: Type) -> Register:
    if kind == F64:
        first, second = (_even(b, _bits(b, place * 2 + half, span, 2), F64) for half in range(2))
        above = first + 2.0**-54
    else:
        bits = _bits(b, place, span)
        above, second = ((bits >> 33).to(I32).to(F32) + 0.5) * 2.0**-31, _even(b, bits, F32)
    return b.sqrt(log(b, above) * -2.0) * cos(b, second * (2 * math.pi))
