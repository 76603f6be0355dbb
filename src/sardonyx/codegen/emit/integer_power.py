"""Whole powers of integers, for vectors: by squares of the base, one for each bit of the largest exponent of a vector.

What does not fit wraps around, modulo 2 to the number of bits. A negative power is the reciprocal, truncated: 1 and -1 keep their
size, all else is 0, but for 0 itself, whose infinite reciprocal is the least integer, as processors convert it.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import Kind
from sardonyx.codegen.emit.values import Register

__all__ = ["integer_power"]


def integer_power(b: Function, x: Register, y: Register) -> Register:
    """Return x to the power y, of integers of one type, for every pair of them."""
    base, left, found = b.variable(x), b.variable(y), b.variable(x.like(1))
    with b.repeat() as loop:
        found.set(b.select((left.value & 1).eq(0), found.value, found.value * base.value))
        left.set(_half(b, left.value))
        loop.stop_if(~b.any_lane(left.value.ne(0)))
        base.set(base.value * base.value)
    return found.value if x.type.kind is Kind.UNSIGNED else b.select(y < 0, _reciprocal(b, x, y), found.value)


def _half(b: Function, y: Register) -> Register:
    """Return half of each exponent; 0 for negative ones."""
    return y >> 1 if y.type.kind is Kind.UNSIGNED else b.max(y, 0) >> 1


def _reciprocal(b: Function, x: Register, y: Register) -> Register:
    sign = b.select((y & 1).eq(0), x.like(1), x.like(-1))
    found = b.select(x.eq(-1), sign, b.select(x.eq(1), x.like(1), x.like(0)))
    return b.select(x.eq(0), x.like(-(2 ** (x.type.bits - 1))), found)
