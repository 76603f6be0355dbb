"""Quotients by one divisor, without the slow instruction: exact all the same.

With y = 1 / s rounded, q = x y, and two steps q <- q + y (x - q s), each remainder without error by a fused multiply-add, q is the
quotient rounded to nearest. Source: P. Markstein, IA-64 and Elementary Functions, chapter 8: the first step makes q one of the two
floats around the quotient, the second the nearest. It holds where y is 1 / s rounded to nearest, the significand of s is not all
ones, and nothing leaves the range of normal numbers: s is kept far from both ends. Remainders that underflow are those of quotients
near 0, which an integer does not show.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import F32, I32
from sardonyx.codegen.emit.values import Register

__all__ = ["Divisor"]

_SIGNIFICAND = (1 << 23) - 1
_LEAST, _GREATEST = 2.0**-80, 2.0**80


class Divisor:
    """A float32 by which many numbers are divided."""

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
        """Return x / value rounded to nearest where it lies between 2^-20 and 2^40; near 0 below, NaN where x is not finite.

        Raises:
            TypeError: x is not float32.
        """
        if x.type.scalar != F32:
            raise TypeError(f"quotients of {x.type.name}; expected float")
        b, lanes = self._b, x.type.lanes
        divisor, inverse = self.value.splat(lanes), self._inverse.splat(lanes)
        found = x * inverse
        for _ in range(2):
            found = b.fma(b.fma(-found, divisor, x), inverse, found)
        return found
