"""Quotients by one divisor, without the slow instruction: exact all the same.

With y = 1 / s rounded, q = x y, and two steps q <- q + y (x - q s), each remainder without error by a fused multiply-add, q is the
quotient rounded to nearest. Source: P. Markstein, IA-64 and Elementary Functions, chapter 8: the first step makes q one of the two
floats around the quotient, the second the nearest. It holds where y is 1 / s rounded to nearest, the significand of s is not all
ones, and nothing leaves the range of normal numbers: s is kept far from both ends. Remainders that underflow are those of quotients
near 0, which an integer does not show.
"""

from __future__ import annotations

import numpy as np

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import F32, I32
from sardonyx.codegen.emit.values import Register

__all__ = ["Divisor", "is_fit_divisor", "refined_quotient"]

_SIGNIFICAND = (1 << 23) - 1
_LEAST, _GREATEST = 2.0**-80, 2.0**80
_EXACT_BELOW = 2.0**20


def is_fit_divisor(value: float) -> bool:
    """Return whether quotients by a number, as float32, may be `refined_quotient`s."""
    divisor = np.float32(value)
    return bool(_LEAST <= divisor <= _GREATEST) and int(divisor.view(np.int32)) & _SIGNIFICAND != _SIGNIFICAND


def refined_quotient(b: Function, x: Register, divisor: Register, inverse: Register) -> Register:
    """Return x / divisor, rounded to nearest where it lies between 2^-20 and 2^20, near it elsewhere; NaN for NaN.

    Args:
        b: the function to write into.
        x: float32 lanes.
        divisor: one that is fit, in all lanes.
        inverse: 1 / divisor, rounded to nearest.
    """
    if not b.target.has_fma:
        return x / divisor
    first = found = x * inverse
    for _ in range(2):
        found = b.fma(b.fma(-found, divisor, x), inverse, found)
    return b.select(b.abs(first) < _EXACT_BELOW, found, first)


class Divisor:
    """A float32 that is known when the kernel runs, by which many numbers are divided."""

    __slots__ = ("_b", "_inverse", "is_fit", "value")

    def __init__(self, b: Function, value: Register) -> None:
        """Compute what all quotients share of `value`, a scalar; `is_fit` is whether `quotient` may be asked for."""
        self._b, self.value = b, value
        self._inverse = 1.0 / value
        self.is_fit = (value >= _LEAST) & (value <= _GREATEST) & (value.bits_as(I32) & _SIGNIFICAND).ne(_SIGNIFICAND)

    @staticmethod
    def pays(b: Function) -> bool:
        """Return whether the target has the fused multiply-add that it takes."""
        return b.target.has_fma

    def quotient(self, x: Register) -> Register:
        """Return x / value, as `refined_quotient` does.

        Raises:
            TypeError: x is not float32.
        """
        if x.type.scalar != F32:
            raise TypeError(f"quotients of {x.type.name}; expected float")
        lanes = x.type.lanes
        return refined_quotient(self._b, x, self.value.splat(lanes), self._inverse.splat(lanes))
