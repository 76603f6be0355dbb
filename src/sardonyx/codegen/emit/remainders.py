"""Quotients of integers and remainders of floats, for vectors: processors have instructions for neither.

Both take the quotient of wider floats. That of two whole numbers of 32 bits differs from the next whole number by 2^-32 of its size
at least, that of two of 16 bits by 2^-16: rounded to float64 or float32 it is truncated to the right one.

x and y of float32 have 24 bits each, so that a quotient below 2^28 is 2^-24 or more away from the next whole number, and its
rounding in float64 passes none; q y and x - q y have no rounding error then.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import F32, F64, I32
from sardonyx.codegen.emit.values import Register

__all__ = ["float_remainder", "integer_quotient"]

_SMALL = 2.0**28


def integer_quotient(b: Function, x: Register, y: Register) -> Register:
    """Return x / y, truncated towards zero, of integers; y is not 0, nor -1 where x is the least integer."""
    if x.type.lanes == 1 or y.is_constant or x.type.bits > 32:
        return x // y
    wide = F64 if x.type.bits > 16 else F32
    return (x.to(wide) / y.to(wide)).to(x.type)


def float_remainder(b: Function, x: Register, y: Register) -> Register:
    """Return the remainder of x / y with the sign of x, exactly, as C's fmod."""
    if x.type.lanes == 1 or x.type.bits > 32:
        return x % y
    dividend, divisor = x.to(F64), y.to(F64)
    quotient = dividend / divisor
    is_small = b.abs(quotient) < _SMALL
    whole = b.select(is_small, quotient, 0).to(I32).to(F64)
    rest = b.select(whole.eq(0), dividend, dividend - whole * divisor).to(F32)
    found = b.variable(b.call_math("copysign", rest, x))
    with b.when(b.any_lane(~is_small)):
        found.set(x % y)
    return found.value
