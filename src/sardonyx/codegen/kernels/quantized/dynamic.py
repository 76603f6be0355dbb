"""Quantize a tensor to uint8 by its own range, extended to 0: DynamicQuantizeLinear-11 of ONNX.

    write_range          x -> pieces: the least and greatest number of each, NaN where there is one
    write_quantize       x, pieces -> y, the scale (high - low) / 255, the zero point round(-low / scale)

Of zeros only, and where a number is NaN, the scale is 1 and the zero point 0. Pieces do not depend on the number of threads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.division import Divisor
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, F32, I32, U8
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["MOST_PIECES", "DynamicParams", "write_quantize", "write_range"]

MOST_PIECES = 64
"""Pieces that a tensor has at most: each task of the second kernel reads the ranges of all."""

_LEAST_PIECE = 1 << 14
_STEPS = 255.0
_UNROLLED = 4


@dataclass(frozen=True, slots=True)
class DynamicParams:
    """The integer parameters of both kernels; a task is a piece."""

    count: int
    """Numbers of the tensor."""

    @property
    def piece(self) -> int:
        """Numbers of a piece."""
        return max(_LEAST_PIECE, -(-self.count // MOST_PIECES))

    @property
    def pieces(self) -> int:
        """Pieces, at least one."""
        return -(-self.count // self.piece) or 1

    def words(self) -> list[int]:
        """Return the parameters as the kernels read them."""
        return [self.count, self.piece, self.pieces]


def write_range(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers x (float32) and the pieces' ranges, two float32 each; parameters as DynamicParams."""
    with module.kernel(symbol) as b:
        lanes = b.lanes(F32)
        zero = b.const(F32.vector(lanes), 0.0)
        with b.loop(b.begin, b.end) as task:
            first, end = _piece(b, task)
            ranges = [_Range(b, zero) for _ in range(_UNROLLED)]
            x, step = b.buffer(0, F32), _UNROLLED * lanes
            whole = first + (end - first) // step * step
            with b.loop(first, whole, step) as i:
                for place, part in enumerate(ranges):
                    part.take(x.load(i + place * lanes, lanes))
            with b.loop(whole, end, lanes) as i:
                ranges[0].take(x.load(i, Span(lanes, b.tail_mask(b.min(end - i, lanes), lanes))))
            for part in ranges[1:]:
                ranges[0].join(part)
            ranges[0].store(b.buffer(1, F32).at(task * 2))


class _Range:
    """The least and greatest number so far, of each lane, and whether one was NaN."""

    def __init__(self, b: Function, zero: Register) -> None:
        self._b = b
        self._low, self._high = b.variable(zero), b.variable(zero)
        self._missing = b.variable(b.const(BOOL.vector(zero.type.lanes), False))

    def take(self, x: Register) -> None:
        """Take a vector of numbers."""
        b = self._b
        self._low.set(b.min(x, self._low.value))
        self._high.set(b.max(x, self._high.value))
        self._missing.set(self._missing.value | b.is_nan(x))

    def join(self, other: _Range) -> None:
        """Take what another one has."""
        b = self._b
        self._low.set(b.min(other._low.value, self._low.value))
        self._high.set(b.max(other._high.value, self._high.value))
        self._missing.set(self._missing.value | other._missing.value)

    def store(self, place: Pointer) -> None:
        """Store the least and greatest of all lanes."""
        b = self._b
        missing = b.any_lane(self._missing.value)
        for index, number in enumerate((b.min_lanes(self._low.value), b.max_lanes(self._high.value))):
            place.store(b.select(missing, math.nan, number), index)


def write_quantize(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers x (float32), ranges, y (uint8), scale (float32) and zero point (uint8).

    Parameters as DynamicParams.
    """
    with module.kernel(symbol) as b:
        scale, zero, is_finite = _scale_of(b)
        b.buffer(3, F32).store(scale, 0)
        b.buffer(4, U8).store(zero.to(I32).to(U8), 0)
        with b.loop(b.begin, b.end) as task:
            piece = _piece(b, task)
            divisor = Divisor(b, scale)
            plain = functools.partial(_quantize_piece, b, piece, zero, lambda x: x / scale)
            if Divisor.pays(b):
                b.branch(divisor.is_fit & is_finite, functools.partial(_quantize_piece, b, piece, zero, divisor.quotient), plain)
            else:
                plain()


def _piece(b: Kernel, task: Register) -> tuple[Register, Register]:
    count, size = b.param(0), b.param(1)
    return task * size, b.min((task + 1) * size, count)


def _scale_of(b: Kernel) -> tuple[Register, Register, Register]:
    """Return the scale, the zero point as a float32, and whether all numbers are finite and one is not 0.

    Each task computes them of all ranges.
    """
    ranges, zero = b.buffer(1, F32), b.const(F32, 0.0)
    low, high = b.variable(zero), b.variable(zero)
    with b.loop(0, b.param(2)) as piece:
        least, greatest = ranges.load(piece * 2), ranges.load(piece * 2 + 1)
        _take(b, low, least, least < low.value)
        _take(b, high, greatest, greatest > high.value)
    width = high.value - low.value
    is_spread = high.value > low.value
    scale = b.select(is_spread, width / _STEPS, width.like(1.0))
    place = b.round_even(-low.value / scale)
    return scale, b.min(b.select(place > 0.0, place, 0.0), _STEPS), is_spread & (width < math.inf)


def _take(b: Function, extreme: Variable, number: Register, is_further: Register) -> None:
    """Let `extreme` hold the number if it is further out, or NaN; a NaN stays."""
    extreme.set(b.select(is_further | b.is_nan(number), number, extreme.value))


def _quantize_piece(b: Kernel, piece: tuple[Register, Register], zero: Register, quotient: Callable[[Register], Register]) -> None:
    x, y, lanes = b.buffer(0, F32), b.buffer(2, U8), b.lanes(F32)
    offset, (first, end) = zero.splat(lanes), piece
    for start, stop, is_whole in ((first, whole := first + (end - first) // lanes * lanes, True), (whole, end, False)):
        with b.loop(start, stop, lanes) as i:
            span = Span(lanes) if is_whole else Span(lanes, b.tail_mask(end - i, lanes))
            moved = b.round_even(quotient(x.load(i, span))) + offset
            number = b.min(b.select(moved > 0.0, moved, 0.0), _STEPS)
            y.store(number.to(I32).to(U8), i, span)
