"""Copy neighbouring elements from one place to another, without a loop over what no whole vector is left for.

Where masks are free, what is left is moved under one. Elsewhere a row that is as long as a register, or longer, ends with a
register that begins before its end and writes some elements twice; a shorter one with the next smaller size of memory access:

    11 bytes        [0 … 7]                     two accesses of 8 bytes
                       [3 … 10]
    70 bytes        [0 … 31] [32 … 63]          whole registers
                            [38 … 69]           and the last one
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import I16, I32, I64
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = ["copy_elements"]

_WORDS = (I16, I32, I64)
_NEAR_REGISTERS = 4
"""Registers of one turn of the loop."""


def copy_elements(b: Function, target: Pointer, source: Pointer, length: Register) -> None:
    """Copy `length` elements, which may be 0 or less, from `source` to `target`.

    Args:
        b: where to write.
        target: of integers of 8 to 64 bits, or floats; elements behind `length` stay as they are.
        source: of the same type; the two lie apart or are the same place.
        length: how many elements, as an int64.
    """
    if b.target.has_masks:
        for i, span in b.vectors(0, length, target.element):
            target.store(source.load(i, span), i, span)
        return
    _copy_by_registers(b, target, source, length)


def _copy_by_registers(b: Function, target: Pointer, source: Pointer, length: Register) -> None:
    lanes = b.lanes(target.element)

    def long() -> None:
        step, last = lanes * _NEAR_REGISTERS, length - lanes
        turns = length // step * step
        with b.loop(0, turns, step) as i:
            vectors = [source.load(i + number * lanes, lanes) for number in range(_NEAR_REGISTERS)]
            for number, vector in enumerate(vectors):
                target.store(vector, i + number * lanes, lanes)
        with b.loop(turns, last, lanes) as i:
            target.store(source.load(i, lanes), i, lanes)
        with b.when(turns < length):
            target.store(source.load(last, lanes), last, lanes)

    b.branch(length >= lanes, long, lambda: _copy_less(b, target, source, length, lanes // 2))


def _copy_less(b: Function, target: Pointer, source: Pointer, length: Register, lanes: int) -> None:
    """Copy fewer than 2 x `lanes` elements by two accesses of `lanes`, or of fewer."""
    if lanes <= 1:
        with b.when(length > 0):
            target.store(source.load())
        return

    bits = max(target.element.bits, 8) * lanes
    word = next((kind for kind in _WORDS if kind.bits == bits), None)

    def twice() -> None:
        places = b.const(I64, 0), length - lanes
        if word is None:
            parts = [source.load(place, lanes) for place in places]
        else:
            parts = [source.at(place).of(word).load(align=1) for place in places]
        for place, part in zip(places, parts, strict=True):
            if word is None:
                target.store(part, place, lanes)
            else:
                target.at(place).of(word).store(part, align=1)

    b.branch(length >= lanes, twice, lambda: _copy_less(b, target, source, length, lanes // 2))
