"""The forms of the exponential of float32 that other functions are made of; `mathlib` has the plain one.

All reduce x to n ln 2 + r with |r| <= ln 2 / 2 and evaluate e^r - 1 as r + r^2 P(r), P the polynomial of `coefficients`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx.codegen.emit import coefficients
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import F32, I32
from sardonyx.codegen.emit.values import Register

__all__ = [
    "LN2_HIGH",
    "LN2_LOW",
    "SIGMOID_UNIT",
    "clamp",
    "exp_below_zero",
    "exp_of_sigmoid",
    "exp_scaled",
    "exp_within",
    "half_expm1_of_double",
    "polynomial",
    "power_of_two",
    "reduce_exp",
]

LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440054690583e-4  # the high part has 10 bits: its multiples by |n| < 2^14 are exact
_ROUNDER = 1.5 * 2**23  # added to a float32, it rounds it to an integer, which its low bits then hold
_ROUNDER_BITS = 0x4B400000


def polynomial(b: Function, x: Register, coefficients: Sequence[float]) -> Register:
    """Evaluate a polynomial by Horner's rule; coefficients of rising powers."""
    total = x.like(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = b.fma(total, x, coefficient)
    return total


def clamp(b: Function, x: Register, low: float, high: float) -> Register:
    """Return the value moved into [low, high]; NaN stays."""
    return b.max(x.like(low), b.min(x.like(high), x))


def power_of_two(b: Function, n: Register) -> Register:
    """Return 2^n for an int32 n of a normal float32."""
    return ((n + 127) << 23).bits_as(F32)


def reduce_exp(b: Function, x: Register) -> tuple[Register, Register]:
    """Return the integer n, as a float, and r with x = n ln 2 + r."""
    n = b.round_even(x * (1 / math.log(2)))
    return n, b.fma(n, -LN2_LOW, b.fma(n, -LN2_HIGH, x))


def exp_scaled(b: Function, x: Register, exponent: int) -> Register:
    """Return e^x times 2^exponent, without overflow in between."""
    n, r = reduce_exp(b, clamp(b, x, -105.0, 90.0))
    value = b.fma(r * r, polynomial(b, r, coefficients.EXP), r) + 1
    whole = n.to(I32) + exponent
    half = whole >> 1
    return value * power_of_two(b, half) * power_of_two(b, whole - half)


def exp_within(b: Function, x: Register) -> Register:
    """Return e^x for x in [-87, 88]."""
    shifted, near = _reduce(b, x, 127)
    scale = (shifted.bits_as(I32) << 23).bits_as(F32)
    return b.fma(near, scale, scale)


def exp_below_zero(b: Function, x: Register) -> Register:
    """Return the exponential of float32 numbers that are at most 0, in fewer instructions: what softmax needs.

    Method: as exp, with one scaling step: n is rounded by adding 1.5 * 2^23 and 127, which leaves the exponent of 2^n in the low
    bits. Error: 1.2 ulp where the result is normal. 0 where it is not, at -inf too; NaN stays.
    """
    shifted, near = _reduce(b, b.max(x.like(-104.0), x), 127)
    scale = (b.max(shifted.bits_as(I32), _ROUNDER_BITS) << 23).bits_as(F32)
    return b.fma(near, scale, scale)


def _reduce(b: Function, x: Register, bias: int) -> tuple[Register, Register]:
    """Return a number whose low bits are n + bias, with x = n ln 2 + r, and e^r - 1."""
    shifted = b.fma(x, 1 / math.log(2), _ROUNDER + bias)
    n = shifted - (_ROUNDER + bias)
    r = b.fma(n, -LN2_LOW, b.fma(n, -LN2_HIGH, x))
    return shifted, b.fma(r * r, polynomial(b, r, coefficients.EXP), r)


SIGMOID_UNIT = 2.0**-24
"""What `exp_of_sigmoid` multiplies by."""


def exp_of_sigmoid(b: Function, x: Register) -> Register:
    """Return e^x times SIGMOID_UNIT in float32, which neither overflows nor becomes denormal: x is moved into [-20, 104] first.

    Beyond, SIGMOID_UNIT / (SIGMOID_UNIT + e^x SIGMOID_UNIT) is 1 or less than half the least denormal. Error: 1.2 ulp; NaN stays.
    """
    shifted, near = _reduce(b, clamp(b, x, -20.0, 104.0), 127 - 24)
    scale = (shifted.bits_as(I32) << 23).bits_as(F32)
    return b.fma(near, scale, scale)


def half_expm1_of_double(b: Function, x: Register) -> Register:
    """Return (e^(2 x) - 1) / 2 for float32 numbers from 0 on, in few instructions: what the hyperbolic tangent needs.

    Method: 2 x = n ln 2 + 2 r, with n below 30, so that ln 2 in one part is enough; as expm1 then, with the factors of 2 in the
    coefficients. Error: 1.7 ulp. x is moved below 10 first, NaN stays, zeros become 0.
    """
    x = b.min(x.like(10.0), x)
    shifted = b.fma(x, 2 / math.log(2), _ROUNDER + 127)
    r = b.fma(shifted - (_ROUNDER + 127), -math.log(2) / 2, x)
    near = b.fma(r * r, polynomial(b, r, [number * 2.0 ** (power + 1) for power, number in enumerate(coefficients.EXP)]), r)
    scale = (shifted.bits_as(I32) << 23).bits_as(F32)
    return b.fma(scale, near, b.fma(scale, 0.5, -0.5))
