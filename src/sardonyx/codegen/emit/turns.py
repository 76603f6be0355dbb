"""Sines and cosines of fractions of a turn, which are exact integers by integers."""

from __future__ import annotations

import math

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.exponential import polynomial
from sardonyx.codegen.emit.types import F64, I64
from sardonyx.codegen.emit.values import Register

__all__ = ["cosine_and_sine"]

_COSINE = tuple((-1) ** k / math.factorial(2 * k) for k in range(9))
_SINE = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(8))


def cosine_and_sine(b: Function, part: Register, whole: Register) -> tuple[Register, Register]:
    """Return the cosine and the sine of 2 pi part / whole, as float64.

    Method: the nearest quarter of a turn is taken off in integers; what is left, at most pi / 4 and an ulp, goes into the series to
    x^16. Error: 1.5 ulp; where the result is below 1/2, 2^-53.

    Args:
        b: where to write.
        part: int64, 0 to `whole`, of any number of lanes.
        whole: int64, 1 to 2^50.
    """
    whole = whole.splat(part.type.lanes)
    quarters = b.round_even(part.to(F64) * 4.0 / whole.to(F64)).to(I64)
    rest = part * 4 - quarters * whole
    angle = rest.to(F64) / whole.to(F64) * (math.pi / 2)
    square = angle * angle
    cosine, sine = polynomial(b, square, _COSINE), polynomial(b, square, _SINE) * angle
    odd, half = (quarters & 1).ne(0), (quarters & 2).ne(0)
    first, second = b.select(odd, -sine, cosine), b.select(odd, cosine, sine)
    return b.select(half, -first, first), b.select(half, -second, second)
